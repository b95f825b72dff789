"""Duties after each step of a run.

In this order: record, evaluate, save checkpoints, stop if requested, push, profile.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from runner.catalogue.settings import EVALUATIONS
from runner.execution import checkpoint
from runner.execution.course import Course
from runner.execution.divergence import check_finite
from runner.execution.loop import Step, StepCallback
from runner.execution.scores import plain
from runner.record.record import Record
from runner.terminal import printer
from runner.tracking.handover import Handover

# seconds between checks that a process is uploading new records to MLflow
PUSH_INTERVAL_SECONDS = 30.0
FIRST_EVALUATION = 0.01  # share of the budget before the first evaluation


def record_information(course: Course) -> StepCallback:
    """Record diagnostics at the first step, every ``record_every`` steps and at regular checkpoints.

    Checkpoints after a signal add no line, so that an interrupted run has the same lines as an
    uninterrupted one.

    Raises:
        NumericalError: a diagnostic is not finite.
    """
    every = course.job.settings.record_every
    inference = course.job.inference
    replicate = course.rng.replicate
    keeps = regular_checkpoint_rule(course)

    def record(step: Step) -> None:
        if step.number % every and step.number != 1 and not keeps(step):
            course.live.advance(step.number)
            return
        metrics = plain(step.info)
        check_finite(metrics, inference, step.number, replicate)
        step.looked_at = True
        course.record.line(step.number, replicate, course.seconds, "train", metrics)
        course.live.update(step.number, replicate, metrics)

    return record


def evaluation_rule(course: Course, every: int | str) -> Callable[[Step], bool]:
    """Rule for the steps that are evaluated: every ``every`` steps, or when the cost passes one of 24
    points spaced geometrically from 1 % of the budget to its end."""
    if isinstance(every, int):
        return lambda step: not step.number % every
    points = [FIRST_EVALUATION ** (1 - i / (EVALUATIONS - 1)) for i in range(EVALUATIONS)]
    passed = bisect_right(points, course.meter.spent)

    def passes(step: Step) -> bool:
        nonlocal passed
        previous = passed
        passed = bisect_right(points, course.meter.spent)
        return passed > previous

    return passes


def evaluate(course: Course, every: int | str) -> StepCallback:
    """Intermediate scores; the last step is skipped because the full evaluation follows."""
    inference = course.job.method
    is_due = evaluation_rule(course, every)

    def evaluate_now(step: Step) -> None:
        if not is_due(step) or step.last:
            return
        # warnings of too few draws appear only at the end
        with (
            course.usage.phase("evaluations"),
            course.run.announcements.show_new_warnings(shortfalls=False),
            course.meter.clock(False),
        ):
            with course.meter.making():
                posterior = inference.posterior(step.state)
            scores = plain(course.problem.score(posterior, course.rng))
            all_scores = course.run.watch.scores_under_attack(
                course.problem, posterior, course.rng, scores
            )
        course.report_evaluation(step.number, "evaluation", scores, all_scores)

    return evaluate_now


def regular_checkpoint_rule(course: Course) -> Callable[[Step], bool]:
    """Rule for regular checkpoints: every ``checkpoint_every`` steps and at the last step."""
    every = course.job.settings.checkpoint_every
    return lambda step: step.last or not step.number % every


@contextmanager
def save_checkpoints(course: Course, kept: Callable[[Step], bool]) -> Iterator[StepCallback]:
    """Save the state that the next step requires.

    It is copied immediately and written while the following steps run, because flushing a file
    takes as long as ten draws of a sampler.  At the last step and after a signal the run waits
    for the disk.

    Raises:
        NumericalError: after a signal, diagnostics of an unchecked step are not finite.
        OSError: this checkpoint or the previous one could not be written.
    """
    job = course.job
    record = course.record
    replicate = course.rng.replicate
    pending: Future[None] | None = None

    def write(taken: checkpoint.StateCopy) -> None:
        # first, because a resumed run does not repeat earlier lines
        record.sync()
        checkpoint.save_checkpoint(record.folder / "checkpoints", taken, course.blocks)

    def save(step: Step) -> None:
        nonlocal pending
        if not kept(step):
            return
        if not step.looked_at:
            check_finite(plain(step.info), job.inference, step.number, replicate)
        facts = {
            "step": step.number,
            "replicate": replicate,
            "seconds": course.seconds,
            "signature": job.signature,
            "code": record.code,
            "costs": course.meter.state(),
        }
        if pending is not None:
            pending.result()
        record.flush()
        with course.usage.phase("saving"):
            taken = checkpoint.snapshot(step.state, course.rng.state(), facts)
            pending = executor.submit(write, taken)
            if step.last or course.stopping:
                pending.result()

    with ThreadPoolExecutor(1) as executor:
        yield save


def stop_when_asked(course: Course) -> StepCallback:
    """End the run after a signal or pruning; the step has been saved."""
    return lambda step: course.run.stop_if_asked(course.received, step.number)


def push(record: Record, handover: Handover) -> StepCallback:
    """Flush new lines to disk every 30 seconds for the MLflow pusher."""
    clock = time.monotonic
    pushed = clock()

    def push_now(_: Step) -> None:
        nonlocal pushed
        if clock() - pushed > PUSH_INTERVAL_SECONDS:
            record.flush()
            handover.begin()
            pushed = clock()

    return push_now


@contextmanager
def profile(on: bool, record: Record) -> Iterator[list[StepCallback]]:
    """Profile steps under ``debug=profile``: print times by operation and write profile.json."""
    if not on:
        yield []
        return
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    with profiled(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        yield [lambda _: profiler.step()]
    printer.out.print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20))
    profiler.export_chrome_trace(str(record.folder / "profile.json"))


@contextmanager
def duties(course: Course) -> Iterator[list[StepCallback]]:
    """Duties in the order of execution."""
    keeps = regular_checkpoint_rule(course)
    settings = course.job.settings

    def is_kept(step: Step) -> bool:
        """True for regular checkpoints, after a signal, and if the run was pruned."""
        return keeps(step) or course.stopping

    with (
        profile(settings.debug == "profile", course.record) as profiling,
        save_checkpoints(course, is_kept) as save,
    ):
        yield [
            record_information(course),
            *([evaluate(course, settings.eval_every)] if settings.eval_every else []),
            save,
            stop_when_asked(course),
            *([push(course.record, handover)] if (handover := course.run.handover) else []),
            *profiling,
        ]
