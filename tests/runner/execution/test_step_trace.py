"""Values of steps that checks read: as they were given, in little memory."""

import tracemalloc

from runner.execution.scores import StepTrace

NAMES = frozenset({"elbo", "ess"})


def test_what_is_kept_comes_back_whatever_its_layout():
    given = [
        (1, {"elbo": -3.5}),
        (10, {"elbo": -2.5, "ess": 4.0}),
        (20, {"ess": [1.0, 2.0], "elbo": -1.5}),
        (30, {"ess": [3.0, 4.0], "elbo": float("inf")}),
        (40, {"ess": []}),
        (50, {"elbo": 0.1 + 0.2}),
    ]
    trace = StepTrace(NAMES)
    for step, values in given:
        trace.append(step, values | {"loss": 7.0})
    trace.append(60, {"loss": 1.0})
    assert list(trace) == given == list(trace)


def test_a_million_numbers_take_eight_bytes_each():
    """And nothing at all if no name of a step is kept."""
    sizes = {}
    for name in ("elbo", "loss"):
        trace = StepTrace(NAMES)
        tracemalloc.start()
        for step in range(100_000):
            trace.append(step, {name: float(step)})
        sizes[name] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert sizes["loss"] < 2_000
    assert 16 * 100_000 <= sizes["elbo"] < 20 * 100_000  # a list of dicts has 300 bytes each
