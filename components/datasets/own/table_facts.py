"""Limitations of a user's table: constant or collinear inputs, and texts or classes that occur only
in test rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.datasets.own.collinear import name_collinear
from components.datasets.own.columns import EncodedColumn
from components.datasets.own.text_table import TextTable
from components.datasets.tables.raw_units import is_constant
from components.errors import ConfigMismatchError, list_names

Rows = NDArray[np.int64]
MOST = 5  # names listed on a line
MOST_CLASSES = 30  # classes that are all listed


def input_facts(
    table: TextTable, encoded: Mapping[str, EncodedColumn], kept: Rows, scored: Rows
) -> dict[str, str]:
    """Facts about inputs that are constant or collinear in the training rows, and about unseen
    texts."""
    out: dict[str, str] = {}
    unseen = []
    constant = []
    for name, column in encoded.items():
        if column.column.levels:
            cells = table.column(name, "inputs")
            train_texts = {str(cells[row]) for row in kept}
            tested = Counter(str(cells[row]) for row in scored)
            for level in sorted(tested.keys() & {*column.column.levels} - train_texts):
                rows = tested[level]
                unseen.append(f"{name} {level} in {rows:,} test row{'s' * (rows > 1)}")
            if len(train_texts) == 1:
                constant.append(name)
        elif bool(is_constant(torch.from_numpy(column.values[kept])).all()):
            constant.append(name)
    if constant:
        out["constant inputs"] = (
            f"{list_names(constant, MOST)}: no information; add them to dataset.exclude"
        )
    if unseen:
        out["texts without training rows"] = list_names(unseen, MOST)
    names = [name for column in encoded.values() for name in column.column.input_names]
    X = torch.from_numpy(np.concatenate([column.values for column in encoded.values()], 1)[kept])
    if pairs := name_collinear(X, names):
        out["collinear inputs"] = f"{pairs}; their weights are weakly identified"
    return out


def class_facts(
    y: Tensor,
    seen: Tensor,
    tasks: Sequence[str],
    classes: Sequence[str],
    kept: Rows,
    scored: Rows,
    given: bool,
) -> dict[str, str]:
    """Facts about the classes, and about classes that only the test rows of a task contain.

    Labels are y [N, T] where ``seen``.

    Args:
        given: the classes come from ``dataset.classes``, and rows may lack any of them.

    Raises:
        ConfigMismatchError: the training labels of a task are all equal.
    """
    only_tested = []
    for t, task in enumerate(tasks):
        learnt, tested = (set(y[rows, t][seen[rows, t]].tolist()) for rows in (kept, scored))
        if len(learnt) == 1 and not given:
            raise ConfigMismatchError(
                f"dataset.targets: the training labels of task {task} are all "
                f"{classes[learnt.pop()]!r}; remove it from dataset.targets, or hold out other "
                "rows (dataset.split, fold, test_share, or another seed)"
            )
        of_task = f" of {task}" if len(tasks) > 1 else ""
        only_tested += [f"{classes[c]}{of_task}" for c in sorted(tested - learnt)]
    out = {
        "classes": (
            ", ".join(classes) if len(classes) <= MOST_CLASSES else list_names(classes, MOST)
        )
        + {2: f" (log odds refer to {classes[1]})"}.get(
            len(classes), "" if given else " (dataset.classes gives another order)"
        )
    }
    if only_tested:
        out["classes without training rows"] = (
            f"{list_names(only_tested, MOST)}: only in test rows, which count in the scores"
        )
    return out
