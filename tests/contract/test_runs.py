"""Every component with its smallest compatible partners: built models offer the declared
capabilities, take steps, and survive a checkpoint."""

from __future__ import annotations

import pytest
import torch
from contract.partners import Run, runs

from components.contracts.costs.counts import Costs, counting
from components.contracts.plugins.protocols import missing
from components.contracts.posteriors import HoldsDraws
from components.contracts.problems import BATCH_KINDS_BY_PROBLEM
from components.metrics.names import base_name, score_names
from runner.conformance.rehearsal import begin, find_difference

STEPS = 2
# methods with steps that do not evaluate a model of data: they read weights, compute only in
# ``posterior``, draw from a prior, or simulate the statement of a theorem
WITHOUT_COST = {
    "fixed",
    "ridge_path",
    "function_draws",
    "posterior_concentration",
    "bernstein_von_mises",
    "stopping_rule",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", runs(), ids=str)
def test_run_fulfils_every_contract(run: Run, make_job, tmp_path):
    run.skip_without_packages()
    job = make_job(*run.overrides, "steps=4")
    inference = job.inference
    running = begin(job)
    kind = running.problem.kind
    assert inference.requires.batch_kind in BATCH_KINDS_BY_PROBLEM[kind]
    assert kind == job.dataset.problem_kind()
    assert missing(running.model, job.model.capabilities()) == [], (
        "a model does not offer its declared capabilities"
    )
    needed = inference.required_capabilities(kind, job.model.capabilities())
    assert missing(running.model, needed) == []

    costs = Costs()
    with counting(costs):
        running.advance(STEPS)
    counts = costs.counts()
    if inference.name not in WITHOUT_COST:
        assert counts, "it costs nothing that is counted: components.contracts.costs.counts"
    if kind == "density":
        assert counts.keys() & {"densities", "gradients"}
    for info in running.infos:
        assert all(isinstance(value, int | float | torch.Tensor) for value in info.values()), info
    running.save(tmp_path)
    resumed = begin(job)
    resumed.restore(tmp_path)
    assert find_difference(resumed.content, running.content) is None

    for job_run in (running, resumed):
        job_run.advance(STEPS + 1)
    assert find_difference(resumed.content, running.content) is None

    posterior = running.posterior()
    assert running.missing_from(posterior) == [], (
        f"{inference.name}: its posterior lacks these words"
    )
    assert not isinstance(posterior, HoldsDraws) or not posterior.draws.requires_grad
    scores = running.problem.score(posterior, running.rng)
    assert all(isinstance(value, int | float | torch.Tensor) for value in scores.values())
    assert {base_name(name) for name in scores} <= score_names(kind, job.threat is not None)
