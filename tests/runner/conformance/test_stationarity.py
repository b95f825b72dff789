"""A sampler that leaves its target invariant passes; each broken one fails."""

import pytest
from support.runs.configured import component
from support.targets.broken_samplers import BROKEN, broken_sampler

from runner.conformance import stationarity
from runner.conformance.outcomes import NonConformanceError, NotCheckedError
from runner.execution.rng import Streams

# the others take less than a second each
SLOW = (
    "mala: stale",
    "hmc: energy",
    "nuts",
    "sgld_r",
    "sgdm_r",
    "adam_nr",
    "psgld: noise",
    "svgd",
)
SAMPLERS = {
    name: (name, {})
    for name in (
        "random_walk_mh",
        "mala",
        "gibbs",
        "importance_sampling",
        "sgld",
        "sghmc",
        "hmc",
        "nuts",
        "sgd_momentum",
        "psgld",
        "adam_noise",
        "santa",
        "recipe",
        "svgd",
        "sgdm_r",
        "adam_nr",
        "sgld_r",
    )
} | {f"hmc {way}": ("hmc", {"trajectory": way}) for way in ("fixed", "jittered")}


def mark_slow(names):
    return [pytest.param(n, marks=pytest.mark.slow) if n.startswith(SLOW) else n for n in names]


def check(method, seeds, monkeypatch):
    for seed in seeds:
        monkeypatch.setattr(stationarity, "Streams", lambda _, seed=seed: Streams(seed))
        detail = stationarity.check_stationarity(method, "sampler.py, line 1")
        assert "a skewed density" in detail


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize("mistake", mark_slow(BROKEN))
def test_broken_samplers_change_the_law(mistake, seed, monkeypatch):
    with pytest.raises(NonConformanceError, match=r"does not keep the distribution|diverges"):
        check(broken_sampler(mistake), [seed], monkeypatch)


@pytest.mark.parametrize("seeds", [[0], pytest.param(range(1, 10), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", mark_slow(SAMPLERS))
def test_our_samplers_preserve_the_law(name, seeds, monkeypatch):
    sampler, keys = SAMPLERS[name]
    check(component("inference", sampler, **keys), seeds, monkeypatch)


def test_methods_that_do_not_sample_are_not_checked():
    for name in ("map", "cavi"):
        with pytest.raises(NotCheckedError):
            stationarity.check_stationarity(component("inference", name), "")
