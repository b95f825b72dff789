"""A fixed network: steps do not change it, and one step is enough."""

import torch
from support.runs.configured import component, made_job
from support.small.small_problems import advance, classes

from runner.execution.assembly import load_problem, total_steps
from runner.execution.rng import Streams


def test_fixed_network_predicts_as_built():
    problem = classes()
    rng = Streams(0)
    network = component("model", "mlp", widths=[5]).build(problem, rng)
    outputs_before = network(problem.test.x).detach()
    fixed = component("inference", "fixed")
    state = fixed.init(network, problem, rng)
    state, _ = advance(fixed, state, problem, rng, 0, 3)
    posterior = fixed.posterior(state)
    assert torch.equal(posterior.predict(problem.test.x, rng.noise).logits[0], outputs_before)


def test_fixed_runs_one_step_by_default(tmp_path):
    for given, steps in (((), 1), (("steps=3",), 3)):
        job = made_job(tmp_path, "dataset=digits", "model=mlp", "inference=fixed", *given)
        assert total_steps(job, load_problem(job, Streams(0))) == steps
