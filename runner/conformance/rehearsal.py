"""A few steps of a run in memory: built, stepped, checkpointed and resumed without a record."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from components.contracts.plugins.protocols import missing
from components.evaluation.assess import assess
from components.evaluation.assessment import Assessment
from components.evaluation.replayed import PosteriorProvenance
from runner.compose.job import Job
from runner.execution import checkpoint
from runner.execution.assembly import build_model, hide_truth, load_problem
from runner.execution.rng import Streams
from runner.execution.storage.packing import Tensors

Content = tuple[str, Tensors]  # content of a checkpoint: skeleton as JSON, tensors


@dataclass
class Rehearsal:
    """A replicate of a job: its problem, components and state."""

    job: Job
    rng: Streams
    problem: Any
    model: Any
    state: Any
    infos: list[dict[str, Any]] = field(default_factory=list)  # diagnostics of the steps
    step: int = 0

    @property
    def content(self) -> Content:
        """Skeleton and tensors of a checkpoint of the current state and random streams."""
        return content_of(self.state, self.rng.state())

    def advance(self, stop: int) -> None:
        """Take steps up to and including step ``stop``."""
        inference = self.job.inference
        kind = inference.requires.batch_kind
        for _, batch in self.problem.batches(kind, self.rng, self.step, stop):
            self.state, info = inference.step(self.state, batch, self.rng)
            self.infos.append(info)
        self.step = stop

    def save(self, folder: Path) -> None:
        """Write a checkpoint."""
        facts = {"step": self.step, "replicate": self.rng.replicate, "signature": "rehearsal"}
        copy = checkpoint.snapshot(self.state, self.rng.state(), facts)
        checkpoint.save_checkpoint(folder, copy)

    def restore(self, folder: Path) -> None:
        """Restore the newest checkpoint."""
        facts, tensors, complaints = checkpoint.load_newest(folder, "rehearsal")
        assert complaints == [], "; ".join(complaints)
        assert facts, "no checkpoint was written"
        self.state, streams = checkpoint.restore(facts, tensors, self.state)
        self.rng.restore(streams)
        self.step = facts["step"]

    def posterior(self) -> object:
        """Posterior of the current state."""
        return self.job.inference.posterior(self.state)

    def missing_from(self, posterior: object) -> list[str]:
        """Words that the method provides for this problem and that its posterior lacks."""
        return missing(posterior, self.job.inference.provided(self.problem.kind))

    def assessment(self) -> Assessment:
        """Scores and checks of the posterior, also under attack if the job has an attacker."""
        made_by = PosteriorProvenance(self.model, self.job.inference)
        job = self.job
        posterior = self.posterior()
        return assess(self.problem, posterior, job.attacker, job.threat, self.rng, False, made_by)


def begin(job: Job, replicate: int = 0) -> Rehearsal:
    """Load the data, build the model and initialise the state of a replicate."""
    rng = Streams(job.settings.seed, replicate)
    problem = load_problem(job, rng)
    model = build_model(job, problem, rng)
    state = job.inference.init(model, hide_truth(problem, job.inference), rng)
    return Rehearsal(job, rng, problem, model, state)


def content_of(thing: object, streams: Tensors | None = None) -> Content:
    """Skeleton and copies of the tensors of a state, a batch or inputs, and of random streams."""
    taken = checkpoint.snapshot(thing, streams or {}, {})
    return json.dumps(taken.skeleton), taken.tensors | taken.traces


def find_difference(one: Content, other: Content) -> str | None:
    """Name of the first value that differs between two checkpoints, or None."""
    if one[1].keys() != other[1].keys():
        return ", ".join(sorted(one[1].keys() ^ other[1].keys()))
    for name, tensor in one[1].items():
        if not _is_identical(tensor, other[1][name]):
            return name
    return None if one[0] == other[0] else "a number or string of the state"


def _is_identical(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point() and not one.is_complex():
        return torch.equal(one, other)
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(
        one.nan_to_num(), other.nan_to_num()
    )
