"""All replicates of a density computed together: each equals a separate run, without
interaction."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from support.runs.configured import component, draw_normal, load
from support.small.small_problems import advance
from support.targets.known_targets import correlated_gaussian

from components.inference.sgmcmc import repulsion, svgd
from components.maths.particles import interactions
from runner.execution.rng import Streams

STEPS = 25
R = 3
METHODS = {
    "sgld": [{"schedule": "polynomial"}],
    "sgld_r": [{"bandwidth": "median"}, {"bandwidth": 1.5, "repulsion_until": 12}],
    "svgd": [{"bandwidth": "median"}, {"bandwidth": 1.5, "scaling": "adagrad"}],
    "sgdm_r": [{"bandwidth": "median"}],
    "adam_nr": [{"bandwidth": 1.5}],
    "sghmc": [{}],
    "recipe": [{}, {"dynamics": "hamiltonian", "metric": "potential", "updates": "together"}],
    "psgld": [{"correction": True}],
    "santa": [{"step_size": 0.001, "refine": False}, {"step_size": 0.001}],
    "adam_noise": [{}],
    "sgd_momentum": [{"resample_every": 3}],
}
REPULSIVE = ["sgld_r", "svgd", "sgdm_r", "adam_nr"]
CASES = [(name, keys) for name, several in METHODS.items() for keys in several]


@dataclass
class Empty:
    """Density with only the number of replicates."""

    replicates: int
    kind: str = "density"

    def batches(self, batch_kind, rng, start, stop):
        for step in range(start + 1, stop + 1):
            yield step, None


class SideBySide(torch.Generator):
    """Several generators; each draws its consecutive part of the first dimension."""

    parts: list[torch.Generator]


def split_draw(draw):
    """Wrap torch.randn or torch.rand to accept a ``SideBySide``."""

    def draw_by_part(*shape, generator, **like):
        if not isinstance(generator, SideBySide):
            return draw(*shape, generator=generator, **like)
        rows, *rest = shape[0] if isinstance(shape[0], tuple) else shape
        n = len(generator.parts)
        return torch.cat([draw((rows // n, *rest), generator=g, **like) for g in generator.parts])

    return draw_by_part


def fold_streams(n):
    """Streams that combine those of n seeds."""
    rng = Streams(0)
    reference = [Streams(seed) for seed in range(n)]
    for name in ("init", "noise"):
        generator = SideBySide()
        generator.parts = [getattr(streams, name) for streams in reference]
        setattr(rng, name, generator)
    return rng


def sample_draws(name, replicates, rng, keys):
    """Draws of all replicates after ``STEPS`` steps."""
    defaults = {"chains": 4, "step_size": 0.05, "thinning": 1, "burn_in": 5}
    sampler = component("inference", name, **defaults | keys)
    state = sampler.init(correlated_gaussian(), Empty(replicates), rng)
    for _ in range(STEPS):
        state, info = sampler.step(state, None, rng)
    assert torch.as_tensor(info["log_joint"]).shape == (() if replicates == 1 else (replicates,))
    return sampler.posterior(state)


def largest_difference(name, keys):
    """Largest difference between R joint replicates and R separate runs with the same starts and
    noise."""
    folded = sample_draws(name, R, fold_streams(R), keys)
    assert folded.replicates == R
    assert folded.draws.shape == (4 * R, STEPS - 5, 2)
    worst = 0.0
    for r in range(R):
        reference = sample_draws(name, 1, Streams(r), keys)
        mine = folded.select_replicate(r)
        assert torch.equal(mine.start, reference.start)
        assert mine.replicates == 1
        worst = max(worst, float((mine.draws - reference.draws).abs().max()))
    return worst


@pytest.fixture
def _side_by_side(monkeypatch):
    for name in ("randn", "rand"):
        monkeypatch.setattr(torch, name, split_draw(getattr(torch, name)))


@pytest.mark.usefixtures("_side_by_side")
@pytest.mark.parametrize(("name", "keys"), CASES)
def test_replicates_match_separate_runs(name, keys):
    assert largest_difference(name, keys) < 1e-9


@pytest.mark.usefixtures("_side_by_side")
@pytest.mark.parametrize("name", REPULSIVE)
def test_repulsion_across_replicates_is_detected(name, monkeypatch):
    def interact_globally(theta, replicates, bandwidth):
        return interactions.Interaction(theta, *interactions.kernel(theta, bandwidth))

    monkeypatch.setattr(repulsion, "among", interact_globally)
    monkeypatch.setattr(svgd, "among", interact_globally)
    assert largest_difference(name, METHODS[name][0]) > 1e-3


@pytest.mark.usefixtures("_side_by_side")
def test_jitter_of_one_replicate_leaves_the_others(monkeypatch):
    """The kernel of the second replicate is singular: only its factor has a larger jitter."""
    theta = draw_normal(3, 4, 2)
    theta[1] = theta[1, :1]
    noise, used = interactions.among(theta.flatten(0, 1), 3, 2.0).noise(
        fold_streams(3).noise, 1e-17
    )
    assert used > 1e-17
    for r in (0, 2):
        reference, noise_alone = interactions.among(theta[r], 1, 2.0).noise(Streams(r).noise, 1e-17)
        assert noise_alone == 1e-17
        torch.testing.assert_close(noise.unflatten(0, (3, 4))[r], reference)


def test_replicates_have_scores_figures_and_files(tmp_path):
    problem, rng = load("mixture_of_gaussians_2d", replicates=3)
    sampler = component("inference", "sgld_r", chains=4, step_size=0.3, burn_in=2, thinning=1)
    state = sampler.init(component("model", "target_density").build(problem, rng), problem, rng)
    assert problem.score(sampler.posterior(state), rng) == {}
    state, info = advance(sampler, state, problem, rng, 0, 12)
    assert {info[name].shape for name in ("log_joint", "grad_norm", "bandwidth", "neighbours")} == {
        (3,)
    }
    posterior = sampler.posterior(state)
    scores = problem.score(posterior, rng)
    for r in range(3):
        reference = problem.score(posterior.select_replicate(r), rng)
        assert reference.keys() == scores.keys()
        for name, value in reference.items():
            assert scores[name].shape == (3,)
            assert float(scores[name][r]) == value, name
    assert len({float(v) for v in scores["error_mean"]}) == 3
    draws = problem.draw(posterior, rng)
    first = problem.draw(posterior.select_replicate(0), rng)
    assert draws.keys() == first.keys()
    lines = [figure["trace"].axes[0].get_lines() for figure in (draws, first)]
    assert [len(some) for some in lines] == [4, 4]
    assert all((a.get_ydata() == b.get_ydata()).all() for a, b in zip(*lines, strict=True))

    import xarray

    (path,) = posterior.artefacts(tmp_path)
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert tree.posterior.sizes == {"chain": 4, "draw": 10}
        assert (tree.posterior["x1"].values == posterior.values[:4, :, 0].numpy()).all()
