"""A filter or chain that is checkpointed and resumed in new objects ends in the same state as an
uninterrupted one."""

import pytest
import torch
from support.runs.configured import component, load
from support.small.small_problems import advance

from runner.execution import checkpoint
from runner.execution.storage import blocks

SEQUENCE = ("wiener_velocity", {"n_steps": 30, "replicates": 3}, "linear_gaussian_ssm")
DENSITY = ("mixture_of_gaussians_2d", {}, "target_density")


def setup(dataset, keys, model, inference, options):
    problem, rng = load(dataset, seed=4, **keys)
    if problem.kind == "sequence":
        problem = problem.attack(component("attacker", "gaussian_contamination"), rng)
    method = component("inference", inference, **options)
    return (
        problem,
        rng,
        method,
        method.init(component("model", model).build(problem, rng), problem, rng),
    )


def advance_chains(problem, rng, method, state, start, stop):
    state, _ = advance(method, state, problem, rng, start, stop)
    return state


@pytest.mark.parametrize(
    ("what", "inference", "options"),
    [
        (SEQUENCE, "kalman", {}),
        (SEQUENCE, "bootstrap_filter", {"particles": 50, "resample_below": 0.5}),
        (SEQUENCE, "beta_bootstrap_filter", {"particles": 50}),
        (DENSITY, "sgld", {"burn_in": 5, "thinning": 3, "schedule": "polynomial"}),
        (DENSITY, "sgld_r", {"burn_in": 5, "thinning": 3, "repulsion_until": 20}),
        (DENSITY, "sgdm_r", {"burn_in": 5, "thinning": 3}),
        (DENSITY, "adam_nr", {"burn_in": 5, "thinning": 3, "adapt": "burn_in"}),
        (DENSITY, "svgd", {"burn_in": 5, "thinning": 3, "scaling": "adagrad"}),
        (DENSITY, "random_walk_mh", {"warmup": 10, "thinning": 2}),
        (DENSITY, "mala", {"warmup": 10, "covariance": "diagonal"}),
        (DENSITY, "importance_sampling", {"chains": 20}),
        # stopped inside its window, steps 3 to 22
        (DENSITY, "hmc", {"chains": 5, "warmup": 24, "mass": "dense"}),
        (DENSITY, "nuts", {"chains": 5, "warmup": 24, "mass": "diagonal"}),
    ],
)
@pytest.mark.parametrize("stopped", [3, 17])
def test_resumed_is_bit_identical(tmp_path, monkeypatch, what, inference, options, stopped):
    problem, rng, method, state = setup(*what, inference, options)
    whole = problem.score(method.posterior(advance_chains(problem, rng, method, state, 0, 30)), rng)

    monkeypatch.setattr(blocks, "BLOCK_BYTES", 600)  # bytes: stored draws fill several blocks
    problem, rng, method, state = setup(*what, inference, options)
    held = blocks.RowBlocks()
    done = 0
    for step in (stopped // 2, stopped - 1, stopped):
        state = advance_chains(problem, rng, method, state, done, step)
        done = step
        facts = {"step": step, "replicate": 0, "signature": "s"}
        checkpoint.save_checkpoint(tmp_path, checkpoint.snapshot(state, rng.state(), facts), held)

    problem, rng, method, state = setup(*what, inference, options)
    facts, tensors, _ = checkpoint.load_newest(tmp_path, "s")
    state, streams = checkpoint.restore(facts, tensors, state)
    rng.restore(streams)
    resumed = problem.score(
        method.posterior(advance_chains(problem, rng, method, state, stopped, 30)), rng
    )
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        assert torch.equal(torch.as_tensor(value), torch.as_tensor(resumed[name])), name
