"""Exact samplers use all rows at every step, for any batch size."""

import pytest
import torch
from support.runs.configured import component
from support.small.small_problems import advance, real

from runner.execution.rng import Streams


@pytest.mark.parametrize(
    "name", ["gibbs", "hmc", "importance_sampling", "mala", "nuts", "random_walk_mh"]
)
def test_draws_do_not_depend_on_batch_size(name):
    keys = {"gibbs": {"burn_in": 3}, "importance_sampling": {}}.get(name, {"warmup": 3})

    def sample_in_batches(batch_size):
        problem = real(n=12, n_inputs=2, n_tasks=1, missing=0.0, batch_size=batch_size)
        rng = Streams(0)
        sampler = component("inference", name, chains=2, **keys)
        state = sampler.init(
            component("model", "linear_regression").build(problem, rng), problem, rng
        )
        state, _ = advance(sampler, state, problem, rng, 0, 8)
        return sampler.posterior(state).draws

    assert sample_in_batches(None).shape[1] >= 5
    assert torch.equal(sample_in_batches(None), sample_in_batches(3))
    assert component("inference", "sgld").requires.batch_kind == "minibatch"
