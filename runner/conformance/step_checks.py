"""Checks of a component on a few steps: steps, finite values, random numbers, seeds, checkpoints,
replicates.

Each function returns its result in words or raises ``NonConformanceError``.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from components.contracts.plugins.global_streams import GLOBAL_STREAM_FIXES, drawn_from, stand
from components.contracts.problems import BATCH_KINDS_BY_PROBLEM
from components.contracts.user_code import format_code_location
from components.metrics.names import base_name
from runner.compose.job import Job
from runner.conformance.disturbances import other_global_streams, shifted_clocks
from runner.conformance.outcomes import NonConformanceError
from runner.conformance.rehearsal import Content, Rehearsal, begin, content_of, find_difference
from runner.execution.rng import Streams
from runner.execution.scores import plain

STEPS = 4
SHORT_SERIES = 60  # steps: some attackers of filters need the last one
# diagnostics that are undefined for few draws or constant chains
UNDEFINED_FOR_FEW_DRAWS = frozenset(
    {"ess", "ess_tail", "rhat", "rhat_predictions", "e_bfmi", "weight_ess", "pareto_k", "z_max"}
)
# scores that depend on more than the seed
MEASURED_TIMES = frozenset({"milliseconds", "total_seconds", "variance_seconds"})


@dataclass
class StepTrial:
    """Runs of one job for the checks."""

    make_job: Callable[[], Job]  # builds new components at each call
    cls: type  # class of the component under test

    @property
    def where(self) -> str:
        """File and line of the component."""
        return format_code_location(self.cls)

    def run(self, replicate: int = 0) -> Rehearsal:
        """Start a run.

        It has four steps, or fewer if the method needs fewer, or all steps of a short series.
        """
        rehearsal = begin(self.make_job(), replicate)
        rehearsal.advance(self.count_steps(rehearsal))
        return rehearsal

    @staticmethod
    def count_steps(rehearsal: Rehearsal) -> int:
        """Number of steps of a run."""
        inference = rehearsal.job.inference
        enough = inference.max_useful_steps
        length = rehearsal.problem.length(inference.requires.batch_kind)
        steps = length if length is not None and length <= SHORT_SERIES else STEPS
        return steps if enough is None else min(steps, enough)

    @cached_property
    def undisturbed(self) -> Rehearsal:
        """Reference run after its last step."""
        return self.run()

    @cached_property
    def content(self) -> Content:
        """Content of a checkpoint after the last step of the reference run."""
        return self.undisturbed.content

    @cached_property
    def scores(self) -> dict[str, Any]:
        """Scores of the reference run."""
        self.content  # noqa: B018 (evaluated first, because scores advance the random streams)
        return plain(self.undisturbed.assessment().scores)


def find_broken_promise(rehearsal: Rehearsal) -> str:
    """Error message for a declaration of the method that does not hold on its problem, or empty.

    Declarations that are verified at each call are not repeated here."""
    inference = rehearsal.job.inference
    kind = rehearsal.problem.kind
    if inference.requires.batch_kind not in BATCH_KINDS_BY_PROBLEM[kind]:
        return f"inference={inference.name} requires {inference.requires.batch_kind} from a {kind} problem"
    if lacks := rehearsal.missing_from(rehearsal.posterior()):
        return f"inference={inference.name}: the posterior lacks {', '.join(lacks)}"
    return ""


def check_steps(trial: StepTrial) -> str:
    """Check that data load, the model is built, steps are taken, and the posterior is scored."""
    scores = trial.scores  # evaluated before a posterior can change the state
    rehearsal = trial.undisturbed
    if message := find_broken_promise(rehearsal):
        raise NonConformanceError(f"{message} ({trial.where})")
    return f"{rehearsal.step} steps, {len(scores)} scores"


def check_finite(trial: StepTrial) -> str:
    """Check that values of steps and scores are finite."""
    rehearsal = trial.undisturbed
    for number, info in enumerate(rehearsal.infos, 1):
        if name := find_not_finite(plain(info)):
            raise NonConformanceError(f"step {number}: {name} is not finite ({trial.where})")
    scores = {
        name: score
        for name, score in trial.scores.items()
        if base_name(name) not in UNDEFINED_FOR_FEW_DRAWS
    }
    if name := find_not_finite(scores):
        value = scores[name]
        raise NonConformanceError(f"the score {name} is {value}, not finite ({trial.where})")
    return "values of steps and scores are finite"


def find_not_finite(values: Mapping[str, Any]) -> str | None:
    """Name of the first value that is NaN or infinite."""
    for name, value in values.items():
        numbers = torch.as_tensor(value, dtype=torch.float64).flatten().tolist()
        if not all(map(math.isfinite, numbers)):
            return name
    return None


def check_random_numbers(trial: StepTrial) -> str:
    """Check that the global random streams of the process are unchanged."""
    state_before = stand()
    trial.run().assessment()
    if stream := drawn_from(state_before):
        raise NonConformanceError(
            f"{stream} global random stream is used or seeded; "
            f"{GLOBAL_STREAM_FIXES[stream]} ({trial.where})"
        )
    return "the global random streams of Python, NumPy and PyTorch are unchanged"


def check_same_seed(trial: StepTrial) -> str:
    """Check that the result depends only on the seed, not on global random streams or clocks."""
    disturbances: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "two runs with the same seed differ, because of a clock, a variable of the module or the "
        "order of a set": nullcontext,
        "the result depends on the global random state": other_global_streams,
        "the result depends on the clock": shifted_clocks,
    }
    for cause, disturbed in disturbances.items():
        with disturbed():
            other = trial.run()
            content = other.content
            scores = plain(other.assessment().scores)
        name = find_difference(trial.content, content) or _find_other_score(trial.scores, scores)
        if name:
            raise NonConformanceError(
                f"{cause} ({name}); take all random numbers from rng ({trial.where})"
            )
    return "bit-identical when repeated, with other global random streams, with shifted clocks"


def _find_other_score(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Name of the first score that differs; NaN equals NaN."""
    names = [name for name in one | other if base_name(name) not in MEASURED_TIMES]
    return next((name for name in names if repr(one.get(name)) != repr(other.get(name))), None)


def check_checkpoint(trial: StepTrial) -> str:
    """Check that a resumed run is bit-identical to an uninterrupted one."""
    total = trial.undisturbed.step
    stop = max(1, total // 2)
    with tempfile.TemporaryDirectory() as place:
        interrupted = begin(trial.make_job())
        interrupted.advance(stop)
        try:
            interrupted.save(Path(place))
        except TypeError as error:
            raise NonConformanceError(f"{error} ({trial.where})") from None
        resumed = begin(trial.make_job())
        resumed.restore(Path(place))
    if name := find_difference(interrupted.content, resumed.content):
        raise NonConformanceError(f"a checkpoint loses {name} ({trial.where})")
    resumed.advance(total)
    if name := find_difference(trial.content, resumed.content):
        raise NonConformanceError(
            f"resumed after step {stop} of {total}, {name} differs from the uninterrupted run; keep "
            f"everything that the next step needs in the state ({trial.where})"
        )
    return f"resumed after step {stop} of {total}: bit-identical"


def check_replicates(trial: StepTrial) -> str:
    """Check that replicates with draws from rng differ."""
    first = trial.run()
    other = trial.run(replicate=1)
    unused = Streams(first.job.settings.seed).state()
    draws = any(not torch.equal(state, unused[name]) for name, state in first.rng.state().items())
    if not draws:
        return "does not use the random streams of rng"
    if find_difference(content_of(first.state), content_of(other.state)) is None:
        raise NonConformanceError(
            f"replicates 1 and 2 are identical; take random numbers from rng and do not set seeds ({trial.where})"
        )
    return "replicates 1 and 2 differ"


StepCheck = Callable[[StepTrial], str]
STEP_CHECKS: dict[str, StepCheck] = {
    "steps": check_steps,
    "finite": check_finite,
    "random numbers": check_random_numbers,
    "same seed": check_same_seed,
    "checkpoint": check_checkpoint,
    "replicates": check_replicates,
}
