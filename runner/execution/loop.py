"""The training loop of all inference methods.

A minibatch, an observation, a series, a Gibbs sweep or an episode is a "batch".

    for step in steps(inference, problem, state, rng, start, stop, meter):
        for duty in duties:
            duty(step)

Other actions, every k steps, are a list of duties: ``runner.execution.duties``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic

from typing_extensions import TypeVar

from components.contracts.costs.counts import pause, resume
from components.contracts.roles import Inference, Info, Problem
from components.errors import NumericalError
from runner.execution.costs import CostMeter
from runner.execution.divergence import add_error_location
from runner.execution.rng import Streams

S = TypeVar("S", default=Any)  # the state of an inference method


@dataclass(slots=True)
class Step(Generic[S]):
    """A completed training step."""

    number: int  # the first is 1
    state: S  # the input of the next step
    info: Info
    last: bool
    looked_at: bool = False  # True once its diagnostics were checked to be finite


StepCallback = Callable[[Step], None]


def steps(
    inference: Inference,
    problem: Problem,
    state: S,
    rng: Streams,
    start: int,
    stop: int,
    meter: CostMeter,
) -> Iterator[Step[S]]:
    """Generator of training steps, from start+1 to stop or until the budget of ``meter`` is spent.

    Raises:
        NumericalError: a step diverges.
    """
    if start and meter.is_spent(start):
        return
    for number, batch in problem.batches(inference.requires.batch_kind, rng, start, stop):
        resume(meter.costs)
        try:  # no context manager, which would slow every step
            state, info = inference.step(state, batch, rng)
        except NumericalError as error:
            raise add_error_location(error, number, rng.replicate, inference) from error
        finally:
            pause()
        yield Step(number, state, info, last=number == stop or meter.is_spent(number))
        if meter.ended:
            return


def train(going: Iterable[Step[S]], duties: Iterable[StepCallback], state: S) -> S:
    """Perform all duties, in order, after each step; return the final state."""
    for step in going:
        for duty in duties:
            duty(step)
        state = step.state
    return state
