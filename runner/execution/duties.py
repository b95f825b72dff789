"""Duties after the steps of a run.

In this order: record, evaluate, keep, stop if asked to, push, profile.
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
from runner.execution.signals import RunInterruptedError
from runner.record.record import Record
from runner.terminal import printer
from runner.tracking.handover import Handover

# seconds between checks that new records await MLflow, and that a process pushes them
PUSH_INTERVAL_SECONDS = 30.0
FIRST_EVALUATION = 0.01  # share of the budget


def record_information(course: Course) -> StepCallback:
    """A line every ``record_every`` steps, at the first, and at each that is to leave a checkpoint.
    Not where a signal came: a run that was stopped has the lines of one that was not.

    Raises:
        NumericalError: what it says is not finite.
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
    """Rule for the steps that are evaluated: every so many, or those with which the cost passes one
    of 24 points spaced geometrically from a hundredth of the budget to its end."""
    if isinstance(every, int):
        return lambda step: not step.number % every
    points = [FIRST_EVALUATION ** (1 - i / (EVALUATIONS - 1)) for i in range(EVALUATIONS)]
    passed = bisect_right(points, course.meter.spent)

    def passes(step: Step) -> bool:
        nonlocal passed
        before = passed
        passed = bisect_right(points, course.meter.spent)
        return passed > before

    return passes


def evaluate(course: Course, every: int | str) -> StepCallback:
    """Scores after some steps but the last, after which the run is scored in full."""
    inference = course.job.method
    is_due = evaluation_rule(course, every)

    def evaluate_now(step: Step) -> None:
        if not is_due(step) or step.last:
            return
        # few draws are not reported before the end
        with (
            course.usage.phase("evaluations"),
            course.announcements.show_new_warnings(shortfalls=False),
            course.meter.clock(False),
        ):
            with course.meter.making():
                posterior = inference.posterior(step.state)
            scores = plain(course.problem.score(posterior, course.rng))
            all_scores = course.watch.scores_under_attack(
                course.problem, posterior, course.rng, scores
            )
        course.report_evaluation(step.number, "evaluation", scores, all_scores)

    return evaluate_now


def regular_checkpoint_rule(course: Course) -> Callable[[Step], bool]:
    """Rule for the steps that leave a checkpoint in any run.

    True every ``checkpoint_every`` steps and at the last step.
    """
    every = course.job.settings.checkpoint_every
    return lambda step: step.last or not step.number % every


@contextmanager
def save_checkpoints(course: Course, kept: Callable[[Step], bool]) -> Iterator[StepCallback]:
    """Keep the state that the next step needs.

    It is copied immediately, and written while the following steps run: a disk takes as
    long to confirm a file as a sampler takes for ten draws.  At the last step, and after a
    signal, the run waits for the disk.

    Raises:
        NumericalError: a signal came, this step had not been checked, and it is not
            finite.
        OSError: this checkpoint, or the one before, could not be written.
    """
    job = course.job
    record = course.record
    replicate = course.rng.replicate
    going: Future[None] | None = None

    def write(taken: checkpoint.StateCopy) -> None:
        # first: a resumed run does not write the earlier lines again
        record.sync()
        checkpoint.save_checkpoint(record.folder / "checkpoints", taken, course.blocks)

    def save(step: Step) -> None:
        nonlocal going
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
        if going is not None:
            going.result()
        record.flush()
        with course.usage.phase("saving"):
            taken = checkpoint.snapshot(step.state, course.rng.state(), facts)
            going = executor.submit(write, taken)
            if step.last or course.stopping:
                going.result()

    with ThreadPoolExecutor(1) as executor:
        yield save


def stop_when_asked(course: Course) -> StepCallback:
    """Ends the run after a signal, or where it was given up; the step has been kept.

    Raises:
        RunInterruptedError: a signal came.
        RunPrunedError: a sweep gave it up.
    """

    received = course.received
    watch = course.watch

    def stop(step: Step) -> None:
        if received:
            raise RunInterruptedError(received[0], step.number)
        if watch.given_up is not None:
            raise watch.given_up

    return stop


def push(record: Record, handover: Handover) -> StepCallback:
    """Write new lines to disk every half a minute; the pusher finds them there."""
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
    """Under ``debug=profile``: the steps taken inside are timed, shown by operation and left in
    profile.json."""
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
    """The list, in its order."""
    keeps = regular_checkpoint_rule(course)
    received = course.received
    watch = course.watch
    settings = course.job.settings

    def is_kept(step: Step) -> bool:
        """True also after a signal, or if the run was given up; evaluated after every step."""
        return keeps(step) or bool(received) or watch.given_up is not None

    with (
        profile(settings.debug == "profile", course.record) as profiling,
        save_checkpoints(course, is_kept) as save,
    ):
        yield [
            record_information(course),
            *([evaluate(course, settings.eval_every)] if settings.eval_every else []),
            save,
            stop_when_asked(course),
            *([push(course.record, course.handover)] if course.handover else []),
            *profiling,
        ]
