"""A trace stores appended rows like a list of tensors, with memory proportional to the rows."""

import pytest
import torch

from components.contracts.traces import Trace


@pytest.mark.parametrize("begun", [0, 1, 5])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_trace_equals_list(begun, shape):
    rows = [torch.randn(shape, dtype=torch.float64) for _ in range(37)]
    whole = [row.clone() for row in rows]
    trace = Trace(torch.stack(rows[:begun]) if begun else None)
    for row in rows[begun:]:
        trace.append(row)
        row += 1  # a trace stores copies
    assert len(trace) == 37
    assert torch.equal(trace.rows, torch.stack(whole))
    for dim in range(len(shape) + 1):
        stacked = trace.stack_rows(dim)
        assert torch.equal(stacked, torch.stack(whole, dim))
        assert stacked.is_contiguous()


def test_trace_memory_is_at_most_twice_its_rows():
    trace = Trace()
    largest = 0.0
    for n in range(1, 1000):
        trace.append(torch.zeros(10))
        largest = max(largest, trace.rows.untyped_storage().nbytes() / (n * 40))
    assert largest <= 2


def test_expected_rows_are_allocated_once():
    trace = Trace(expected=5)
    trace.append(torch.zeros(2))
    first = trace.rows.data_ptr()
    for _ in range(5):
        assert trace.rows.data_ptr() == first
        trace.append(torch.ones(2))
    assert trace.rows.sum() == 10  # more rows than expected


def test_earlier_views_keep_their_rows():
    trace = Trace()
    trace.append(torch.zeros(2))
    rows_before = trace.rows
    for _ in range(5):
        trace.append(torch.ones(2))
    assert rows_before.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    "row", [torch.zeros(3), torch.zeros(()), torch.zeros(2, dtype=torch.float64)]
)
def test_row_of_wrong_shape_is_refused(row):
    trace = Trace()
    trace.append(torch.zeros(2))
    with pytest.raises(ValueError, match="after rows"):
        trace.append(row)
    assert len(trace) == 1


def test_empty_trace_has_no_shape():
    with pytest.raises(ValueError, match="no shape"):
        _ = Trace().rows
