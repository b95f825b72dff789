"""Pruning interface: reports the scores of evaluations to a callback, for example of a sweep.

Replicates are computed sequentially: after step t of replicate r the callback receives, as step
r · T + t of R · T in total, the mean over replicates 0 to r, with the final scores of replicates
before r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.contracts.roles import Problem
from components.contracts.streams import STREAMS
from runner.compose.job import Job
from runner.execution.rng import Streams
from runner.execution.scores import OnScores, Scores, means, plain
from runner.execution.signals import RunPrunedError


@dataclass
class Watch:
    """Callback of one run; ``given_up`` is set once the callback prunes the run."""

    job: Job
    on_scores: OnScores = None
    given_up: RunPrunedError | None = None

    def tell(
        self, step: int, of: int, replicate: int, scores: Scores, finished: dict[str, Scores]
    ) -> None:
        """Report the scores after a step of ``of`` steps, averaged with earlier replicates."""
        if self.on_scores is None:
            return
        each = [means(finished[str(r)]) for r in range(replicate) if str(r) in finished] + [
            means(scores)
        ]
        shared = {
            name: sum(values[name] for values in each) / len(each)
            for name in each[-1]
            if all(name in values for values in each)
        }
        try:
            self.on_scores(replicate * of + step, shared)
        except RunPrunedError as error:
            self.given_up = error

    def scores_under_attack(
        self, problem: Problem, posterior: Any, rng: Streams, scores: Scores
    ) -> Scores:
        """Intermediate scores, including those under attack if the objective is one of these.

        They are passed only to the callback; the record has them only at the end.  The random
        streams are restored.
        """
        objective = self.job.settings.objective
        attacker = self.job.attacker
        if (
            self.on_scores is None
            or objective is None
            or objective in scores
            or attacker is None
            or self.job.threat is None
        ):
            return scores
        from components.evaluation.assess import assess
        from components.evaluation.replayed import PosteriorProvenance

        saved_streams = {name: state.clone() for name, state in rng.state().items()}
        try:
            made_by = PosteriorProvenance(self.job.model, self.job.inference)
            return plain(
                assess(problem, posterior, attacker, self.job.threat, rng, False, made_by).scores
            )
        finally:
            rng.restore({name: saved_streams[name] for name in STREAMS})
