"""A replicate of a run: set up, resume, train, score and write files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from components.contracts.checks import CHECKED_STEP_INFO
from components.contracts.posteriors import WritesFiles
from components.contracts.progress import listen, report
from components.contracts.roles import FinishedRun, variant_info_names
from components.errors import BudgetSpentError, NumericalError
from components.models.networks.flat_network import FlatNetwork
from runner.errors import ConfigError, RunFailure
from runner.execution import checkpoint
from runner.execution.assembly import build_model, hide_truth, load_problem, total_steps
from runner.execution.course import Course
from runner.execution.data_digest import data_digest
from runner.execution.duties import duties
from runner.execution.loop import steps, train
from runner.execution.scores import Scores, plain
from runner.execution.screen import show_run as console
from runner.execution.screen.progress import Live
from runner.execution.storage.artefacts import (
    draw_training_curve,
    skip_artefact_on_error,
    write_artefacts,
    write_files,
    write_predictions,
)
from runner.record.checks import Kept, to_rows
from runner.record.facts import Facts
from runner.record.lines import read_lines
from runner.record.outcomes import write_outcomes
from runner.terminal import printer

if TYPE_CHECKING:
    from components.contracts.checks import Check
    from components.evaluation.assessment import Assessment


class Replicate(Course):
    """A replicate in progress, or all replicates if they are computed together.

    ``compute`` sets ``scores`` and ``checks``; ``write`` writes the files.
    """

    posterior: object
    assessment: Assessment
    run_checks: list[Check]
    scores: Scores

    @property
    def checks(self) -> list[Kept]:
        """Checks of the run and of the attack, as recorded."""
        return [*to_rows("run", self.run_checks), *to_rows("attack", self.assessment.checks)]

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Context of a phase of the run: counts its usage and shows its warnings."""
        with self.usage.phase(name), self.run.announcements.show_new_warnings():
            yield

    def compute(self) -> None:
        """Train, score and check the replicate, from its newest checkpoint if there is one."""
        state = self._set_up()
        self.run.is_removable = False
        self.run.begin_handover()
        state, start = self._resume(state)
        self._show_facts()
        if self.run.live is None:
            self.run.live = Live(self.total, self.job.loops)
        else:
            self.run.live.restart(self.rng.replicate)
        self.live = self.run.live
        inference = self.job.method
        with (
            self.usage.phase("training"),
            duties(self) as active_duties,
            self.meter.clock(True),
        ):
            running = steps(inference, self.problem, state, self.rng, start, self.total, self.meter)
            state = train(running, active_duties, state)
        self._score(state, self._note_budget())

    def _set_up(self) -> Any:
        """Load the data, build the model and return the initial state.

        Raises:
            ConfigError: the method has no valid initial state.
            RunFailure: the budget is spent before the first step.
        """
        inference = self.job.method
        with self._phase("set_up"):
            self.problem = load_problem(self.job, self.rng, self.job.n_together)
            self.total = total_steps(self.job, self.problem)
            self.model = build_model(self.job, self.problem, self.rng)
        try:
            with self._phase("set_up"), self.meter.running():
                return inference.init(self.model, hide_truth(self.problem, inference), self.rng)
        except NumericalError as error:  # an invalid start is not a divergence
            raise ConfigError(
                f"replicate {self.rng.replicate + 1} cannot start: {error}"
            ) from error
        except BudgetSpentError:
            self.meter.is_spent(0)
            self._note_budget()
            raise RunFailure("the budget is spent before the first step; raise it") from None

    def _resume(self, state: Any) -> tuple[Any, int]:
        """State and step of the newest undamaged checkpoint, or the given state and step 0.

        Costs, seconds and blocks of draws continue from the checkpoint.

        Raises:
            RunFailure: the checkpoint's state layout is incompatible with this version.
        """
        folder = self.record.folder / "checkpoints"
        number = self.rng.replicate
        facts, tensors, complaints = checkpoint.load_newest(folder, self.job.signature)
        step = facts["step"] if facts and facts["replicate"] == number else 0
        if complaints:
            used = (
                f"The previous one, of step {step}, is used."
                if step
                else "An earlier checkpoint does not exist: the run restarts."
            )
            printer.announce("Corrupt checkpoint", "\n".join([*complaints, used]))
        checkpoint.remove_later_checkpoints(folder, facts)
        changed = self.record.register_code_version(number, step)
        if changed:
            printer.out.print(f"note     the code has changed since this run began: {changed}")
        was_moved = False
        if step:
            try:
                state, streams = checkpoint.restore(facts, tensors, state, self.rng.device)
                was_moved = self.rng.restore(streams, step)
            except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
                raise RunFailure(
                    f"the checkpoint of step {step} is incompatible with this version of the code ({error!r:.200}); "
                    f"{changed or 'it may be damaged'}; resume with the version that wrote it, or restart with fresh=true"
                ) from error
        if message := self.record.rewind(number, step or -1):
            printer.announce("Damaged record", message)
        if step:
            self._continue_from(facts, was_moved)
        self.began = time.monotonic()
        return state, step

    def _continue_from(self, facts: Facts, moved: bool) -> None:
        """Restore costs, seconds and blocks of a checkpoint, which is from another device if
        ``moved``.
        """
        step = facts["step"]
        number = self.rng.replicate
        settings = self.job.settings
        if moved:
            location = {"replicate": number, "step": step, "device": settings.device}
            self.record.save(moved=[*self.record.facts.get("moved", []), location])
            printer.out.print(
                f"note     the checkpoint is from another device: random numbers after step {step} come from {self.rng.device}"
            )
        self.meter.load(facts["costs"])
        self.before = facts["seconds"]
        self.blocks = facts["blocks"]
        printer.out.print(f"resumed at step {step} of replicate {number + 1}/{settings.replicates}")

    def _show_facts(self) -> None:
        """Show the facts of the first replicate and record a digest of its data."""
        if self.rng.replicate:
            return
        frozen = self.model.facts if isinstance(self.model, FlatNetwork) else {}
        console.show_facts(self.problem.describe() | frozen)
        if "data_digest" not in self.record.facts:
            digest = data_digest(self.problem, self.job.config["dataset"])
            self.record.save(data_digest=digest)

    def _read_trace(self) -> list[tuple[int, Scores]]:
        """Recorded values for the checks, for each recorded step."""
        self.record.flush()
        names = {*variant_info_names(CHECKED_STEP_INFO, self.job.inference)}
        place = (self.rng.replicate, "train")
        return [
            (line["step"], {name: line["metrics"][name] for name in names & line["metrics"].keys()})
            for line in read_lines(self.record.folder)
            if (line["replicate"], line["phase"]) == place
        ]

    def _note_budget(self) -> int:
        """Last step; a budget that ended the training is recorded in run.json."""
        ended = self.meter.ended
        if ended is None:
            return self.total
        self.record.facts.setdefault("budget_ends", {})[str(self.rng.replicate)] = ended
        step: int = ended["step"]
        printer.out.print(
            f"note     budget.{ended['kind']}={ended['limit']} is exhausted: training ended after step {step} of {self.total}"
        )
        return step

    def _score(self, state: Any, last: int) -> None:
        """Score and check the posterior after the last step."""
        inference = self.job.method
        with self.usage.phase("final"), self.meter.making():
            self.posterior = inference.posterior(state)
        with (
            self._phase("final"),
            self.received.interrupt_immediately(last),
            listen(self.live.evaluating),
        ):
            from components.evaluation.assess import assess  # imported only for the evaluation
            from components.evaluation.replayed import PosteriorProvenance
            from components.evaluation.run_checks import run_checks

            self.assessment = assess(
                self.problem,
                self.posterior,
                self.job.attacker,
                self.job.threat,
                self.rng,
                figures=self.rng.replicate == 0,
                made_by=PosteriorProvenance(self.model, inference),
            )
            scores = plain(self.assessment.scores)
            report("checks of the run")
            trace = self._read_trace()
            self.run_checks = run_checks(
                FinishedRun(
                    self.problem, self.posterior, inference, state, scores, trace, self.rng
                ),
                smoke=self.job.settings.smoke,
                declared=self.job.config["model"].get("outputs") is not None,
            )
        costs = plain(self.assessment.costs)
        self.report_evaluation(last, "final", scores, costs=costs)
        self.scores = scores | self.meter.metrics() | costs

    def write(self) -> None:
        """Write predictions, figures, tables and files."""
        folder = self.record.folder
        number = self.rng.replicate
        settings = self.job.settings
        with self.run.announcements.show_new_warnings(), listen(self.live.evaluating):
            if self.assessment.outcomes:
                with skip_artefact_on_error(f"the outcomes of replicate {number + 1}"):
                    outcomes = {k: v.cpu().numpy() for k, v in self.assessment.outcomes.items()}
                    write_outcomes(folder, number, outcomes)
            if settings.keep_predictions:
                with skip_artefact_on_error(f"the predictions of replicate {number + 1}"):
                    write_predictions(folder, number, self.problem, self.posterior, self.rng)
            if number:
                return
            figures = (
                self.assessment.figures | draw_training_curve(folder) if settings.figures else {}
            )
            write_artefacts(folder, figures, self.assessment.tables, self.job)
            if settings.figures and isinstance(self.posterior, WritesFiles):
                self.record.facts["artefacts"] = write_files(folder, self.posterior)
