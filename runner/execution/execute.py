"""One job from its record to its end: every replicate loaded, trained, scored and written down."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from components.contracts.checks import CHECKED_STEP_INFO
from components.contracts.posteriors import WritesFiles
from components.contracts.progress import listen
from components.contracts.roles import variant_info_names
from components.errors import ConfigMismatchError, DataUnavailableError, NumericalError
from components.models.networks.flat_network import FlatNetwork
from runner.compose.config import Job
from runner.compose.devices import missing_float64_message
from runner.errors import ConfigError, RunFailure
from runner.execution import checkpoint, replicates
from runner.execution.artefacts import (
    draw_training_curve,
    skip_artefact_on_error,
    write_artefacts,
    write_checks,
    write_files,
    write_predictions,
)
from runner.execution.assembly import build_model, hide_truth, load_problem, total_steps
from runner.execution.blocks import RowBlocks
from runner.execution.costs import CostMeter
from runner.execution.data_digest import data_digest
from runner.execution.divergence import check_scores
from runner.execution.duties import ReplicateContext, duties
from runner.execution.loop import S, steps, train
from runner.execution.memory import out_of_memory_message
from runner.execution.rng import Streams
from runner.execution.scores import Scores, StepTrace, plain
from runner.execution.screen import show_run as console
from runner.execution.screen.announcements import Announcements
from runner.execution.screen.progress import Live
from runner.execution.signals import (
    ReceivedSignals,
    ReplicateDoneError,
    RunInterruptedError,
    RunPrunedError,
    capture_signals,
)
from runner.execution.watch import Watch
from runner.record.checks import Kept, to_rows
from runner.record.facts import gather_scores
from runner.record.files import digest_files, sync_files, warn_damage
from runner.record.lease import LeaseLostError
from runner.record.lines import read_lines
from runner.record.outcomes import write_outcomes
from runner.record.parts import PARTS, alone
from runner.record.record import Record, disk_failure, now
from runner.record.usage import UsageMeter
from runner.terminal import printer
from runner.tracking.handover import create_handover

if TYPE_CHECKING:
    from components.contracts.checks import Check
    from components.evaluation.assessment import Assessment


class Run:
    """One job on its way: its record, its way to MLflow, its display."""

    def __init__(
        self,
        job: Job,
        on_evaluation: Callable[[int, Scores], None] | None = None,
        command: Sequence[str] | None = None,
    ):
        """``command`` as in ``Record.open``."""
        self.job = job
        self.settings = job.settings
        self.watch = Watch(job, on_evaluation)
        self.usage = UsageMeter()
        self.record = Record.open(job, command)
        self.usage.before = self.record.facts.get("usage", {})
        if self.record.note:
            printer.announce("Damaged record", self.record.note)
        if takeover_note := replicates.take_over(self.record, job):
            printer.out.print(takeover_note)
        if gather_note := replicates.gather(self.record, job):
            printer.out.print(gather_note)
        self.alone = alone()
        self.handover = create_handover(self.settings, self.record.folder)
        # A record stores how its run began: a run with replicates in sequence goes on in sequence.
        self.vectorised = job.is_vectorised
        self.loops = 1 if self.vectorised else self.settings.replicates
        self.announcements = Announcements()
        self.was_done = self.record.state == "done"
        # A refused run leaves no record, unless it belongs to a study, which lists the refusal.
        self.is_removable = self.record.is_new and self.record.facts["study"] is None
        self.is_handover_due = False
        if (
            self.record.facts.get("data_state") != job.data_state
        ):  # the same data, found elsewhere: the next run shows it
            self.record.save(data_state=job.data_state)

    # -- one replicate
    # -------------------------------------------------------------------------------------------------
    def _resume(self, state: S, rng: Streams, meter: CostMeter) -> tuple[S, int, float, RowBlocks]:
        """The newest whole checkpoint of this replicate poured into a fresh state: (state, step,
        seconds, blocks); the costs go on from there, too.

        Raises:
            RunFailure: it is whole, and the code of today has another state to pour it into.
        """
        folder = self.record.folder / "checkpoints"
        facts, tensors, complaints = checkpoint.load_newest(folder, self.job.signature) or (
            {},
            {},
            [],
        )
        step = facts["step"] if facts and facts["replicate"] == rng.replicate else 0
        if complaints:
            used = (
                f"The one before, of step {step}, is used."
                if step
                else "There is none before it: it starts again."
            )
            printer.announce("Corrupt checkpoint", "\n".join([*complaints, used]))
        checkpoint.remove_later_checkpoints(folder, facts)
        changed = self.record.register_code_version(rng.replicate, step)
        if changed:
            printer.out.print(
                f"note     the code is not the one that this run began with: {changed}"
            )
        if not step:
            self._rewind(rng.replicate, -1)
            return state, 0, 0.0, RowBlocks()
        try:
            state, streams = checkpoint.restore(facts, tensors, state, rng.device)
            moved = rng.restore(streams, step)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise RunFailure(
                f"checkpoint of step {step} does not fit the state that the code of today has ({error!r:.200}); "
                f"{changed or 'it may be damaged'}; go on with the code it is of, or start again with fresh=true"
            ) from error
        self._rewind(rng.replicate, step)
        if moved:
            here = {"replicate": rng.replicate, "step": step, "device": self.settings.device}
            self.record.save(moved=[*self.record.facts.get("moved", []), here])
            printer.out.print(
                f"note     the checkpoint is of another device: random numbers from step {step} on are of {rng.device}",
            )
        meter.load(facts["costs"])
        replicate_text = f"replicate {rng.replicate + 1}/{self.settings.replicates}"
        printer.out.print(f"resumed at step {step} of {replicate_text}")
        return state, step, facts["seconds"], facts["blocks"]

    def _rewind(self, replicate: int, step: int) -> None:
        if message := self.record.rewind(replicate, step):
            printer.announce("Damaged record", message)

    def _show_progress(self, total: int, replicate: int, live: list[Live]) -> Live:
        """The display of the whole run, which each replicate starts again."""
        if live:
            live[0].restart(replicate)
        else:
            live.append(Live(total, self.loops))
        return live[0]

    def _start_trace(self, replicate: int, resumed: bool) -> StepTrace:
        """Values of a replicate that checks will need, with those from before it was resumed."""
        trace = StepTrace(frozenset(variant_info_names(CHECKED_STEP_INFO, self.job.inference)))
        for line in read_lines(self.record.folder) if resumed else ():
            if (line["replicate"], line["phase"]) == (replicate, "train"):
                trace.append(line["step"], line["metrics"])
        return trace

    def replicate(
        self, replicate: int, received: ReceivedSignals, live: list[Live]
    ) -> tuple[Scores, list[Kept], Callable[[], None]]:
        """Train, score and check one replicate, or all of them if computed simultaneously.

        The third value writes its predictions, figures, tables and files; the caller first
        keeps the other two.
        """
        job = self.job
        inference = self.job.method
        rng = Streams(self.settings.seed, replicate, torch.device(self.settings.device))
        with self.usage.phase("set_up"), self.announcements.show_new_warnings():
            problem = load_problem(job, rng, self.settings.replicates if self.vectorised else 1)
        total = total_steps(job, problem)
        meter = CostMeter(job.budget, self.settings.replicates if self.vectorised else 1)
        with self.usage.phase("set_up"), self.announcements.show_new_warnings():
            model = build_model(job, problem, rng)
        try:
            with (
                self.usage.phase("set_up"),
                self.announcements.show_new_warnings(),
                meter.running(),
            ):
                state = inference.init(model, hide_truth(problem, inference), rng)
        except (
            NumericalError
        ) as error:  # nothing has diverged: the start that was requested is invalid
            raise ConfigError(f"replicate {replicate + 1} cannot start: {error}") from error
        self.is_removable = False
        self._begin_handover()
        state, start, before, blocks = self._resume(state, rng, meter)
        if replicate == 0:
            frozen = model.facts if isinstance(model, FlatNetwork) else {}
            console.show_facts(problem.describe() | frozen)
            if "data_digest" not in self.record.facts:
                self.record.save(data_digest=data_digest(problem, job.config["dataset"]))
        course = ReplicateContext(
            job,
            self.record,
            self.handover,
            problem,
            rng,
            live=self._show_progress(total, replicate, live),
            announcements=self.announcements,
            received=received,
            watch=self.watch,
            meter=meter,
            usage=self.usage,
            total=total,
            before=before,
            blocks=blocks,
            trace=self._start_trace(replicate, resumed=start > 0),
        )
        with self.usage.phase("training"), duties(course) as active_duties, meter.clock(True):
            going = steps(inference, problem, state, rng, start, total, meter)
            state = train(going, active_duties, state)
        last = self._note_budget(meter, replicate, total)
        with self.usage.phase("final"), meter.making():
            posterior = inference.posterior(state)
        with (
            self.usage.phase("final"),
            self.announcements.show_new_warnings(),
            received.interrupt_immediately(last),
        ):
            from components.evaluation.assess import assess  # only the evaluation needs it
            from components.evaluation.replayed import PosteriorProvenance
            from components.evaluation.run_checks import run_checks

            made_by = PosteriorProvenance(model, inference)
            assessment = assess(
                problem,
                posterior,
                job.attacker,
                job.threat,
                rng,
                figures=replicate == 0,
                made_by=made_by,
                told=course.live.evaluating,
            )
            scores = plain(assessment.scores)
            course.live.evaluating("checks of the run", 0, 1)
            declared = job.config["model"].get("outputs") is not None
            checks = run_checks(
                problem,
                posterior,
                inference,
                state,
                scores,
                trace=course.trace,
                rng=rng,
                smoke=self.settings.smoke,
                declared=declared,
            )
        costs = plain(assessment.costs)
        course.report_evaluation(last, "final", scores, costs=costs)
        scores |= meter.metrics() | costs

        write = partial(self._write, course, posterior, assessment, checks)
        return scores, [*to_rows("run", checks), *to_rows("attack", assessment.checks)], write

    def _note_budget(self, meter: CostMeter, replicate: int, total: int) -> int:
        """The last step of a replicate; run.json keeps the limit of a budget that ended it."""
        if meter.ended is None:
            return total
        ends = self.record.facts.setdefault("budget_ends", {})
        ends[str(replicate)] = meter.ended
        step: int = meter.ended["step"]
        limit = f"budget.{meter.ended['kind']}={meter.ended['limit']}"
        printer.out.print(f"note     {limit} is spent: training ended after step {step} of {total}")
        return step

    def _write(
        self,
        course: ReplicateContext,
        posterior: object,
        assessment: Assessment,
        checks: list[Check],
    ) -> None:
        """Write predictions, figures, tables and files of a replicate."""
        folder = self.record.folder
        replicate = course.rng.replicate
        with self.announcements.show_new_warnings(), listen(course.live.evaluating):
            if assessment.outcomes:
                with skip_artefact_on_error(f"the outcomes of replicate {replicate + 1}"):
                    write_outcomes(
                        folder,
                        replicate,
                        {k: v.cpu().numpy() for k, v in assessment.outcomes.items()},
                    )
            if self.settings.keep_predictions:
                with skip_artefact_on_error(f"the predictions of replicate {replicate + 1}"):
                    write_predictions(folder, replicate, course.problem, posterior, course.rng)
            if replicate == 0:
                drawn = self.settings.figures
                figures = assessment.figures | draw_training_curve(folder) if drawn else {}
                write_artefacts(folder, figures, assessment.tables, self.job)
                write_checks(folder, checks)
                if drawn and isinstance(posterior, WritesFiles):
                    self.record.facts["artefacts"] = write_files(folder, posterior)

    def _keep(
        self,
        replicate: int,
        scores: Scores,
        checks: list[Kept],
        write: Callable[[], None],
        seconds: float,
    ) -> None:
        """Save scores and checks to disk before any figure is drawn.

        ``unwritten`` names the replicate with missing files: a run that continues makes them
        again from the last checkpoint.
        """
        facts = self.record.facts
        facts["finished"][str(replicate)] = scores
        facts.setdefault("checks", {})[str(replicate)] = checks
        self.record.sync()  # a replicate is finished only if its lines survive a power cut
        self.record.save(seconds=seconds, unwritten=replicate)
        with self.usage.phase("files"):
            write()
            sync_files(self.record.folder, facts.get("artefacts", []))
        del facts["unwritten"]
        self.usage.passes += 1
        if left_out := self.announcements.left_out:
            facts["left_out"] = sorted({*facts.get("left_out", ()), *left_out})
        self.record.save()

    # -- the whole run
    # -------------------------------------------------------------------------------------------------
    def go(self, signals: bool = True) -> dict[str, list[float]]:
        """All replicates; the record's state says how it ended.  ``signals=False`` leaves them to
        whoever runs this process.

        Raises:
            Interrupted, Pruned, RunFailure, NumericalError: after the record and the last good checkpoint are safe.
        """
        with capture_signals() if signals else nullcontext(ReceivedSignals()) as received:
            result = self._run_all_replicates(received)
            if received:  # the signal came during the last writes: the caller of this run must stop
                raise RunInterruptedError(received[0], None)
        return result

    def _run_all_replicates(self, received: ReceivedSignals) -> dict[str, list[float]]:
        """``go``, while signals are noted."""
        record = self.record
        torch.set_num_threads(self.settings.threads)
        live: list[Live] = []
        began = time.monotonic()
        before = record.facts["seconds"]
        record.save(state="running", error=None, vectorised=self.vectorised)
        self.is_handover_due = self.handover is not None
        ending: dict[str, Any] = {"state": "failed"}
        try:
            for replicate in range(self.loops):
                if self._is_missing(replicate) and self.alone in (None, replicate):
                    outcome = self.replicate(replicate, received, live)
                    self._keep(replicate, *outcome, before + time.monotonic() - began)
                self._stop_if_asked(received, replicate)
            if self.alone is not None:
                raise ReplicateDoneError(self.alone, self.loops)
            record.facts["result"] = gather_scores(record.facts["finished"], self.vectorised)
            check_scores(record.facts, self.job.inference, record.folder)
            record.sync()
            files = digest_files(record.folder, record.facts.get("artefacts", []))
            ending = {"state": "done", "files": files}
            shutil.rmtree(record.folder / PARTS, ignore_errors=True)  # the record is complete
        except (RunInterruptedError, NumericalError, RunPrunedError) as error:
            diverged = isinstance(error, NumericalError)
            stopped = "pruned" if isinstance(error, RunPrunedError) else "interrupted"
            ending = {"state": "diverged" if diverged else stopped, "error": str(error)}
            raise
        except KeyboardInterrupt:
            ending = {
                "state": "interrupted",
                "error": "interrupted inside a step; the last checkpoint is kept",
            }
            raise
        except OSError as error:
            failure = disk_failure(error, record.folder)
            ending["error"] = str(failure)
            raise failure from None
        except (ConfigMismatchError, ConfigError, DataUnavailableError) as error:
            ending = {"state": "failed", "error": str(error), "refused": self.is_removable}
            if isinstance(error, ConfigMismatchError):
                raise ConfigError(str(error)) from None
            raise
        except RunFailure as error:
            ending["error"] = str(error)
            raise
        except Exception as error:
            if exhausted := out_of_memory_message(error):
                ending["error"] = exhausted
                raise RunFailure(exhausted) from None
            if missing := missing_float64_message(error, self.settings.device):
                ending["error"] = missing
                raise RunFailure(missing) from None
            ending["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            for display in live:
                display.stop()
            self._end(ending, before + time.monotonic() - began)
        result: dict[str, list[float]] = record.facts["result"]
        return result

    def _begin_handover(self) -> None:
        if self.handover and self.is_handover_due:
            self.is_handover_due = False
            self.handover.begin()
            if (trouble := self.handover.trouble) is not None:
                printer.out.print(
                    f"MLflow   {trouble}: the run is recorded all the same", style="yellow"
                )

    def _is_missing(self, replicate: int) -> bool:
        """True if the scores or the files of a replicate are not written."""
        facts = self.record.facts
        return str(replicate) not in facts["finished"] or facts.get("unwritten") == replicate

    def _stop_if_asked(self, received: ReceivedSignals, replicate: int) -> None:
        """Stop before the next replicate after a signal that came while one was written, or if the
        run was given up.

        Raises:
            RunInterruptedError, RunPrunedError: it stops.
        """
        if replicate == self.loops - 1:
            return
        if received:
            raise RunInterruptedError(received[0], 0)
        if self.watch.given_up is not None:
            raise self.watch.given_up

    def _end(self, ending: dict[str, Any], seconds: float) -> None:
        try:
            if ending.pop("refused", False):
                self.record.remove()
                return
            self._begin_handover()
            self.record.sync()
            self.record.save(**ending, ended=now(), seconds=seconds, usage=self.usage.facts())
            if self.handover:
                self.handover.end()
        except OSError as error:  # a full disk must not hide what happened before
            printer.complain(str(disk_failure(error, self.record.folder)))
        except LeaseLostError as error:  # another process owns the files there
            if ending.get("error") != str(error):
                raise
        finally:
            self.record.close()


def run(
    job: Job, on_evaluation: Callable[[int, Scores], None] | None = None
) -> tuple[Run, dict[str, list[float]]]:
    """Runs a job, or, when its record says it is done, reads its result."""
    active_run = Run(job, on_evaluation)
    if active_run.was_done:
        active_run.record.close()
        warn_damage(job.folder, active_run.record.facts)
        return active_run, active_run.record.facts["result"]
    return active_run, active_run.go()


def rehearse(job: Job) -> Path:
    """Folder of a record with the lines of a job's first replicate; no artefact is written."""
    active_run = Run(job)
    live: list[Live] = []
    try:
        active_run.replicate(0, ReceivedSignals(), live)
        active_run.record.flush()
    finally:
        for display in live:
            display.stop()
        active_run.record.close()
    return active_run.record.folder
