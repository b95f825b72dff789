"""Capabilities are complete: a model with only the members of the required ones works with every
inference method."""

from __future__ import annotations

import pytest
from contract.only import restrict
from contract.partners import Run, runs_of
from support.runs.sketched import SKETCH
from support.small.small_problems import advance

from components import registry
from components.contracts.capabilities import OwnInputs
from components.contracts.plugins.protocols import missing, to_word
from runner.execution.assembly import load_problem
from runner.execution.rng import Streams

PAIRS = [run for name in registry.names("inference") for run in runs_of("inference", name)]
LAID_OUT = set()  # name and titles of each figure of a problem, whose layout is checked once


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", PAIRS, ids=str)
def test_inference_uses_only_required_capabilities(run: Run, make_job):
    run.skip_without_packages()
    job = make_job(*run.overrides, "steps=3")
    rng = Streams(0)
    problem = load_problem(job, rng)
    real = job.model.build(problem, rng)
    needed = job.inference.required_capabilities(problem.kind, job.model.capabilities())
    stub = restrict(real, *sorted(needed, key=to_word))
    state = job.inference.init(stub, problem, rng)
    state, _ = advance(job.inference, state, problem, rng, 0, 2)
    posterior = job.inference.posterior(state)
    assert not missing(posterior, job.inference.provides)
    problem.score(posterior, rng)
    for name, figure in problem.draw(posterior, rng).items():
        key = (problem.name, name, *(axes.get_title() for axes in figure.axes))
        if key in LAID_OUT:
            figure.set_label(SKETCH)
        LAID_OUT.add(key)


def test_stub_has_only_protocol_members():
    class Rich:
        dim = 1
        names = ["x"]
        secret = 2

    stub = restrict(Rich(), OwnInputs)
    assert not hasattr(stub, "secret")
    assert not hasattr(stub, "dim")
