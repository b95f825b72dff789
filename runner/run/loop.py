"""The one training loop: a minibatch, an observation, a Gibbs sweep and a game episode are all "a batch".

for step, batch in problem.batches("minibatch", rng, start, stop):
    state, info = inference.step(state, batch, rng)
    # every k steps: record, evaluate, checkpoint; nothing else lives here
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from components.contracts.roles import Evasion
from components.trouble import DataUnavailable, Misfit, NumericalTrouble
from runner import console
from runner.compose.config import Job
from runner.mistakes import ConfigError, RunFailure
from runner.record.record import Record, disk_failure, now
from runner.record.tracking import Mirror
from runner.run import checkpoint, replicates
from runner.run.announcements import Announcements
from runner.run.artefacts import write_artefacts
from runner.run.assembly import load_problem, total_steps
from runner.run.divergence import check_finite
from runner.run.rng import Streams
from runner.run.signals import Interrupted, Received, noted_signals

PUSH_EVERY = 30.0  # seconds between pushes to MLflow while a run goes
Scores = dict[str, Any]


class Pruned(Exception):
    """A sweep gave this run up after an evaluation."""


def plain(values: dict[str, Any]) -> Scores:
    """Tensors as numbers, or as lists where replicates are a dimension."""
    return {k: v.detach().cpu().tolist() if isinstance(v, torch.Tensor) else v for k, v in values.items()}


class Run:
    """One job on its way: its record, its mirror in MLflow, its display."""

    def __init__(self, job: Job, on_evaluation: Callable[[int, Scores], None] | None = None):
        self.job, self.settings, self.on_evaluation = job, job.settings, on_evaluation
        self.record = Record.open(job)
        if taken := replicates.take_over(self.record, job):
            console.out.print(taken, markup=False)
        self.mirror = Mirror(self.record.folder, Path(self.settings.output_dir)) if self.settings.tracking else None
        self.loops = 1 if job.dataset.vectorised else self.settings.replicates
        self.announcements = Announcements()
        self.was_done = self.record.state == "done"

    # -- one replicate -------------------------------------------------------------------------------------------------
    def _resume(self, state: Any, rng: Streams, replicate: int) -> tuple[Any, int, float]:
        """The newest whole checkpoint of this replicate poured into a fresh state: (state, step, seconds)."""
        found = checkpoint.load_newest(self.record.folder / "checkpoints", self.job.signature)
        if found is None:
            self.record.rewind(replicate, -1)
            return state, 0, 0.0
        facts, tensors, complaints = found
        for complaint in complaints:
            console.announce("Corrupt checkpoint", f"{complaint}\nThe one before it is used.")
        if not facts or facts["replicate"] != replicate:
            self.record.rewind(replicate, -1)
            return state, 0, 0.0
        state, streams = checkpoint.restore(facts, tensors, state)
        rng.restore(streams)
        self.record.rewind(replicate, facts["step"])
        console.out.print(f"resumed at step {facts['step']} of replicate {replicate + 1}", markup=False)
        return state, facts["step"], facts["seconds"]

    def _checkpoint(self, state: Any, rng: Streams, step: int, replicate: int, seconds: float) -> None:
        facts = {"step": step, "replicate": replicate, "seconds": seconds, "signature": self.job.signature}
        checkpoint.save_checkpoint(self.record.folder / "checkpoints", state, rng.state(), facts)
        self.record.flush()

    def replicate(self, replicate: int, received: Received, live: list[console.Live]) -> Scores:
        """Trains and scores one replicate (or, with vectorised data, all of them at once)."""
        settings, inference, record = self.settings, self.job.inference, self.record
        rng = Streams(settings.seed, replicate, torch.device(settings.device))
        with self.announcements.shown_once():
            problem = load_problem(self.job, rng)
        total = total_steps(self.job, problem)
        model = self.job.model.build(problem, rng)
        try:
            state = inference.init(model, problem, rng)
        except NumericalTrouble as error:  # nothing has diverged: where it starts was a mistake in what was asked for
            raise ConfigError(f"replicate {replicate + 1} cannot start: {error}") from error
        state, start, before = self._resume(state, rng, replicate)
        if replicate == 0 and hasattr(problem, "describe"):
            console.facts(problem.describe())
        if not live:
            live.append(console.Live(total, self.loops))
        else:
            live[0].restart(replicate)
        began, pushed, step = time.monotonic(), time.monotonic(), start
        with self._profiler() as profiler:
            for step, batch in problem.batches(inference.sees, rng, start, total):
                try:
                    state, info = inference.step(state, batch, rng)
                    saving = step % settings.checkpoint_every == 0 or step == total or bool(received)
                    if step % settings.record_every == 0 or saving or step == 1:
                        shown = plain(info)
                        check_finite(shown, self.job)
                        record.line(step, replicate, before + time.monotonic() - began, "train", shown)
                        live[0].update(step, replicate, {k: _mean(v) for k, v in shown.items()})
                except NumericalTrouble as error:
                    raise NumericalTrouble(
                        f"step {step}, replicate {replicate + 1}: {error.quantity}", error.mend
                    ) from error
                if settings.eval_every and step % settings.eval_every == 0 and step < total:
                    with self.announcements.shown_once(shortfalls=False):  # few draws are no news before the end
                        scores = plain(problem.score(inference.posterior(state), rng))
                    self._evaluated(step, replicate, before + time.monotonic() - began, "evaluation", scores, live[0])
                if saving or received:
                    if not saving:  # the signal came during the evaluation: nobody has looked at this step
                        check_finite(plain(info), self.job)
                    self._checkpoint(state, rng, step, replicate, before + time.monotonic() - began)
                if received:
                    raise Interrupted(received[0], step)
                if self.mirror and time.monotonic() - pushed > PUSH_EVERY:
                    record.flush()
                    self.mirror.push()
                    pushed = time.monotonic()
                if profiler is not None:
                    profiler.step()
        posterior = inference.posterior(state)
        with self.announcements.shown_once(), received.acted_on_at_once(total):
            scores, figures, tables = self._assess(problem, posterior, rng, figures=replicate == 0)
        self._evaluated(total, replicate, before + time.monotonic() - began, "final", scores, live[0])
        if replicate == 0:
            write_artefacts(record.folder, figures, tables, self.job)
            if hasattr(posterior, "artefacts"):  # any posterior may write files of its own into the run's folder
                with self.announcements.shown_once():
                    written = posterior.artefacts(record.folder)
                record.save(artefacts=[str(path.relative_to(record.folder)) for path in written or []])
        return scores

    def _assess(self, problem: Any, posterior: Any, rng: Streams, figures: bool) -> tuple[Scores, dict, dict]:
        """Final scores, security evaluation under an evasion attacker, figures and tables."""
        scores: Scores = plain(problem.score(posterior, rng))
        drawn: dict[str, Any] = problem.draw(posterior, rng) if figures else {}
        tables: dict[str, Any] = {}
        if isinstance(problem.attacker, Evasion):
            from components.evaluation import security

            attacked, attack_figures, tables = security.evaluate(problem, posterior, rng)
            scores |= plain(attacked)
            drawn |= attack_figures
        return scores, drawn, tables

    def _evaluated(self, step: int, replicate: int, seconds: float, phase: str, scores: Scores, live: Any) -> None:
        self.record.line(step, replicate, seconds, phase, scores)
        self.record.flush()
        live.evaluated(step, replicate, {k: _mean(v) for k, v in scores.items()})
        if self.on_evaluation is not None and replicate == 0:
            self.on_evaluation(step, {k: _mean(v) for k, v in scores.items()})

    @contextmanager
    def _profiler(self) -> Iterator[Any]:
        if self.settings.debug != "profile":
            yield None
            return
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            yield profiler
        console.out.print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20), markup=False)
        profiler.export_chrome_trace(str(self.record.folder / "profile.json"))

    # -- the whole run -------------------------------------------------------------------------------------------------
    def go(self) -> dict[str, list[float]]:
        """All replicates; the record's state says how it ended.

        Raises:
            Interrupted, Pruned, RunFailure, NumericalTrouble: after the record and the last good checkpoint are safe.
        """
        record = self.record
        torch.set_num_threads(self.settings.threads)
        live: list[console.Live] = []
        began = time.monotonic()
        before = record.facts["seconds"]
        record.save(state="running", error=None, vectorised=self.job.dataset.vectorised)
        ending: dict[str, Any] = {"state": "failed"}
        try:
            with noted_signals() as received:
                for replicate in range(self.loops):
                    if str(replicate) not in record.facts["finished"]:
                        scores = self.replicate(replicate, received, live)
                        record.facts["finished"][str(replicate)] = scores
                        record.save(seconds=before + time.monotonic() - began)
            ending = {"state": "done", "result": self._gather()}
        except Interrupted as error:
            ending = {"state": "interrupted", "error": str(error)}
            raise
        except KeyboardInterrupt:
            ending = {"state": "interrupted", "error": "interrupted inside a step; the last checkpoint is kept"}
            raise
        except NumericalTrouble as error:
            ending = {"state": "diverged", "error": str(error)}
            raise
        except Pruned as error:
            ending = {"state": "interrupted", "error": f"pruned: {error}"}
            raise
        except OSError as error:
            failure = disk_failure(error, record.folder)
            ending["error"] = str(failure)
            raise failure from None
        except Misfit as error:
            ending["error"] = str(error)
            raise ConfigError(str(error)) from None
        except (ConfigError, RunFailure, DataUnavailable) as error:
            ending["error"] = str(error)
            raise
        except Exception as error:
            ending["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            for display in live:
                display.stop()
            self._end(ending, before + time.monotonic() - began)
        return record.facts["result"]

    def _gather(self) -> dict[str, list[float]]:
        """Each metric's value per replicate."""
        finished = self.record.facts["finished"]
        if self.job.dataset.vectorised:
            return {k: v if isinstance(v, list) else [v] for k, v in finished["0"].items()}
        return {k: [finished[str(r)][k] for r in range(self.loops)] for k in finished["0"]}

    def _end(self, ending: dict[str, Any], seconds: float) -> None:
        try:
            self.record.flush()
            self.record.save(**ending, ended=now(), seconds=seconds)
            if self.mirror:
                self.mirror.push()
        except OSError as error:  # a full disk must not hide what happened before
            console.complain(str(disk_failure(error, self.record.folder)))
        finally:
            self.record.close()


def _mean(value: Any) -> float:
    return sum(value) / len(value) if isinstance(value, list) else float(value)


def run(job: Job, on_evaluation: Callable[[int, Scores], None] | None = None) -> tuple[Run, dict[str, list[float]]]:
    """Runs a job, or, when its record says it is done, reads its result."""
    going = Run(job, on_evaluation)
    if going.was_done:
        going.record.close()
        return going, going.record.facts["result"]
    return going, going.go()
