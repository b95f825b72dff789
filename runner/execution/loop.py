"""The one training loop.

A minibatch, an observation, a series, a Gibbs sweep and an episode are all "a batch".

    for step in steps(inference, problem, state, rng, start, stop, meter):
        for duty in duties:
            duty(step)

The actions every k steps, other than the training itself, are a list:
``runner.execution.duties``.
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
    """One step of training, done."""

    number: int  # the first is 1
    state: S  # input of the next step
    info: Info
    last: bool
    looked_at: bool = False  # its information has been checked to be finite


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
    """Trains: step start+1, when the first is asked for, to step stop, or to the one after which
    the budget of ``meter`` is spent.

    Raises:
        NumericalError: naming the step.
    """
    if start and meter.is_spent(start):
        return
    for number, batch in problem.batches(inference.requires.batch_kind, rng, start, stop):
        resume(meter.costs)
        try:  # no context manager: each step would pay for it
            state, info = inference.step(state, batch, rng)
        except NumericalError as error:
            raise add_error_location(error, number, rng.replicate, inference) from error
        finally:
            pause()
        yield Step(number, state, info, last=number == stop or meter.is_spent(number))
        if meter.ended:
            return


def train(going: Iterable[Step[S]], duties: Iterable[StepCallback], state: S) -> S:
    """The state after the last step; each is followed by all duties, in their order."""
    for step in going:
        for duty in duties:
            duty(step)
        state = step.state
    return state
