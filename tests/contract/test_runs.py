"""Every component, with its smallest fitting partners: what is built offers what it says, steps,
and survives a checkpoint."""

from __future__ import annotations

import json

import pytest
import torch
from contract.partners import Run, runs

from components.contracts.capabilities import CAPABILITIES, missing
from components.contracts.posteriors import POSTERIORS
from components.contracts.problems import BATCH_KINDS_BY_PROBLEM
from runner.execution import checkpoint
from runner.execution.assembly import load_problem
from runner.execution.rng import Streams

STEPS = 2


def kept(state: object, rng: Streams) -> tuple[str, dict[str, torch.Tensor]]:
    """What a checkpoint would hold: its skeleton and its tensors, those of traces among them."""
    taken = checkpoint.snapshot(state, rng.state(), {})
    return json.dumps(taken.skeleton), taken.tensors | taken.traces


def assert_same(
    one: tuple[str, dict[str, torch.Tensor]], other: tuple[str, dict[str, torch.Tensor]]
) -> None:
    assert one[0] == other[0]
    assert one[1].keys() == other[1].keys()
    for name, tensor in one[1].items():
        assert torch.equal(tensor.nan_to_num(), other[1][name].nan_to_num()), name
        assert tensor.isnan().equal(other[1][name].isnan()), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", runs(), ids=str)
def test_the_whole_way(run: Run, make_job, tmp_path):
    run.skip_without_packages()
    job = make_job(*run.overrides, "steps=4")
    rng = Streams(job.settings.seed)
    problem = load_problem(job, rng)
    inference = job.inference
    assert inference.requires.batch_kind in BATCH_KINDS_BY_PROBLEM[problem.kind]
    assert problem.kind == job.dataset.poses()
    built = job.model.build(problem, rng)
    assert missing(built, job.model.capabilities()) == [], "a model does not offer what it says"
    assert (
        missing(built, inference.required_capabilities(problem.kind, job.model.capabilities()))
        == []
    )

    state = inference.init(built, problem, rng)
    seen = list(problem.batches(inference.requires.batch_kind, rng, 0, STEPS))
    for _, batch in seen:
        state, info = inference.step(state, batch, rng)
        assert all(isinstance(value, int | float | torch.Tensor) for value in info.values()), info
    before = kept(state, rng)
    facts = {"step": STEPS, "replicate": 0, "signature": "s"}
    checkpoint.save_checkpoint(tmp_path, checkpoint.snapshot(state, rng.state(), facts))

    fresh_rng = Streams(job.settings.seed)
    fresh_problem = load_problem(job, fresh_rng)
    fresh = inference.init(job.model.build(fresh_problem, fresh_rng), fresh_problem, fresh_rng)
    facts, tensors, complaints = checkpoint.load_newest(tmp_path, "s")
    assert complaints == []
    restored, streams = checkpoint.restore(facts, tensors, fresh)
    fresh_rng.restore(streams)
    assert_same(kept(restored, fresh_rng), before)

    one_more = list(problem.batches(inference.requires.batch_kind, rng, STEPS, STEPS + 1))
    again = list(fresh_problem.batches(inference.requires.batch_kind, fresh_rng, STEPS, STEPS + 1))
    for (_, batch), (_, same) in zip(one_more, again, strict=True):
        state, _ = inference.step(state, batch, rng)
        restored, _ = inference.step(restored, same, fresh_rng)
    assert_same(kept(restored, fresh_rng), kept(state, rng))

    posterior = inference.posterior(state)
    for word in inference.provides | inference.provides_by_kind.get(problem.kind, frozenset()):
        assert isinstance(posterior, POSTERIORS[word]), (
            f"{inference.name} gives {word}, and its posterior does not keep it"
        )
    scores = problem.score(posterior, rng)
    assert all(isinstance(value, int | float | torch.Tensor) for value in scores.values())


def test_every_word_is_a_protocol_that_somebody_asks_for():
    """A capability that no inference needs and no other part reads would be a promise to nobody."""
    from components import registry

    needed = {
        word
        for name in registry.names("inference")
        for word in registry.get("inference", name).requires.capabilities
    }
    offered = {
        word for name in registry.names("model") for word in registry.get("model", name).offers
    }
    assert needed <= set(CAPABILITIES)
    assert offered <= set(CAPABILITIES)
