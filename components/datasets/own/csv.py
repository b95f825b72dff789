"""A user's own table: rows of a CSV or Parquet file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor

from components.contracts.problems import Kind, Rows, Target, Values
from components.contracts.roles import BetweenZeroAndOne, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.datasets.own.class_labels import ClassList, class_labels, name_classes
from components.datasets.own.columns import (
    ColumnRules,
    Dates,
    EncodedColumn,
    check_gaps,
    encode,
)
from components.datasets.own.gaps import GapRule, apply_gap_rule
from components.datasets.own.input_units import Bounds, ImageShape, convert_inputs, describe_columns
from components.datasets.own.number_marks import Decimal
from components.datasets.own.own_file import OwnFile
from components.datasets.own.own_problems import OwnTable, UnlabelledTable
from components.datasets.own.table_facts import class_facts, input_facts
from components.datasets.own.text_table import TextTable, read_table
from components.datasets.tables.raw_units import check_squares, is_constant
from components.errors import ConfigMismatchError, DamagedFileError
from components.figures.supervised.calibration import calibration
from components.figures.supervised.predictions import predictions
from components.figures.variational.clusters import clusters
from components.problems.input_columns import InputColumns
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.registry import register

LABEL_ADVICE = "add it to dataset.missing, or set dataset.labels to binary or classes"

Indices = NDArray[np.int64]
MOST_CLASSES: dict[Target, float] = {"real": 0, "binary": 2, "classes": np.inf}  # by labels
# y [N, T], mask of observed labels, names of tasks, mean and sd of real labels, classes
Labels = tuple[Tensor, Tensor, list[str], tuple[Tensor, Tensor] | None, list[str]]


class UsableTable(NamedTuple):
    """A validated table."""

    table: TextTable
    columns: dict[str, EncodedColumn]  # of inputs
    train: Indices
    test: Indices
    split_rule: str
    labels: Labels | None


@register("dataset", "csv")
class Csv(OwnFile[Supervised | Unlabelled]):
    """A user's table: rows of a CSV file with column names in its first line, or of Parquet.

    Every column of ``targets`` is a task, and a missing cell an unobserved label; or ``task`` names
    the column with the task of a row's single label; without ``targets`` rows have no labels, and
    their distribution is learnt.  ``labels`` is the type of the labels, which determines the
    compatible models: real, binary or classes.  ``classes`` lists the classes in a network's order,
    including classes that do not occur in the file (1-12: the labels 1 … 12; a number C: 0 … C − 1,
    if a label is 0).  Input columns hold numbers, true or false, or at most 30 texts (one input for
    each except the first); the interpretation of each column is reported.  Test rows are selected
    by the column ``split`` (cells train and test), by the column ``fold`` (replicate r is tested on
    the r-th fold), or at random.  Inputs and real labels are standardised by the training rows, as
    in the built-in sets, and scores are in standardised units; with ``standardise: false`` both
    keep the units of the columns, ``bounds`` are the limits of the inputs, and ``image_shape``
    declares that each row is an image.  x [N, D], y [N, T].

    Raises:
        DataUnavailableError: the file does not exist.
        DamagedFileError: the file is not a table.
        ConfigMismatchError: a column does not exist, a cell is invalid, classes do not match
            ``labels``, a split is empty, or there are more replicates than folds.

    Source: Shafranovich (2005), RFC 4180.
    """

    kind = "supervised"

    labels: Target
    targets: list[str]
    classes: ClassList | None
    task: str | None
    inputs: list[str] | None
    exclude: list[str]
    split: str | None
    fold: str | None
    test_share: BetweenZeroAndOne
    delimiter: Annotated[str, Field(min_length=1, max_length=1)]
    decimal: Decimal | None
    encoding: str | None
    missing: list[str]
    gaps: GapRule
    dates: Dates | None
    batch_size: PositiveInt | None
    standardise: bool
    bounds: Bounds | None
    image_shape: ImageShape | None

    @model_validator(mode="after")
    def _fits(self) -> Csv:
        if self.task is not None and not self.targets:
            raise ValueError("task: requires labels, but dataset.targets=[]; remove task")
        if self.split is not None and self.fold is not None:
            raise ValueError("split, fold: both select the test rows; remove one of them")
        if self.task is not None and len(self.targets) > 1:
            raise ValueError("task: requires exactly one label column; name one in dataset.targets")
        if self.bounds is not None and self.standardise:
            raise ValueError(
                "bounds: refer to the units of the columns; also set dataset.standardise=false"
            )
        if len(name_classes(self.classes)) > MOST_CLASSES[self.labels]:
            raise ValueError(
                f"classes: dataset.labels={self.labels} allows at most "
                f"{MOST_CLASSES[self.labels]}; set it to classes, or leave dataset.classes out"
            )
        if self.gaps == "keep" and self.targets:
            raise ValueError(
                "gaps: keep requires rows without labels (dataset.targets=[]); set dataset.gaps=impute or drop"
            )
        return self

    def problem_kind(self) -> Kind:
        return "supervised" if self.targets else "unlabelled"

    def value_kind(self) -> Values | None:
        if self.targets:
            return None
        return "incomplete" if self.gaps == "keep" else "real"

    def target_kind(self) -> Target | None:
        return self.labels if self.targets else None

    def folds(self, data_dir: Path) -> int | None:
        if self.fold is None:
            return None
        with suppress(DamagedFileError, ConfigMismatchError):  # reported by ``load``
            fold_names = set(self._table(data_dir).column(self.fold, "fold"))
            return len(fold_names - {None})
        return None

    def _table(self, data_dir: Path) -> TextTable:
        return read_table(
            self.file(data_dir),
            self.delimiter,
            self.missing,
            self.exclude,
            self.decimal,
            self.encoding,
        )

    def _input_names(self, table: TextTable) -> list[str]:
        """Input columns.

        Raises ConfigMismatchError if there are none, or one has another use."""
        other_uses = {"task": self.task, "split": self.split, "fold": self.fold}
        used = [("targets", name) for name in self.targets]
        used += [(key, name) for key, name in other_uses.items() if name is not None]
        for key, name in used:
            table.column(name, key)  # check first, because a misspelt name would become an input
        taken = {name for _, name in used}
        unused = [name for name in table.names if name not in taken]
        names = unused if self.inputs is None else self.inputs
        if both := [name for name in names if name in taken]:
            raise ConfigMismatchError(
                f"dataset.inputs: {both[0]} is already used (as targets, task, split or fold); remove it here"
            )
        if not names:
            raise ConfigMismatchError(
                f"dataset.inputs: {table.file} has no column left for inputs; list some"
            )
        return names

    def _read(self, rng: Rng, data_dir: Path) -> UsableTable:
        """Read and validate the table.

        Raises ConfigMismatchError for the first error in the file."""
        table = self._table(data_dir)
        names = self._input_names(table)
        table = apply_gap_rule(table, names, self.gaps)
        split = self._rows(table, rng)
        rules = ColumnRules(split[0], self.gaps, self.dates)
        for name in names:
            check_gaps(table, name, self.gaps)
        encoded = {name: encode(table, name, rules) for name in names}
        labels = self._labels(table, split[0]) if self.targets else None
        return UsableTable(table, encoded, *split, labels)

    def load(self, rng: Rng, setting: Setting) -> Supervised | Unlabelled:
        table, encoded, train_rows, scored, split_rule, labels = self._read(rng, setting.data_dir)
        columns = {name: column.values for name, column in encoded.items()}
        x, input_mean, input_scale = convert_inputs(
            table, columns, train_rows, self.standardise, self.bounds, self.image_shape
        )
        described = InputColumns(
            tuple(column.column for column in encoded.values()),
            input_mean,
            input_scale,
            table.decimal,
            tuple(self.missing),
        )
        about = table.facts | {
            "columns": describe_columns(
                {name: column.taken_for for name, column in encoded.items()}
            ),
            "test rows": f"{len(scored):,} ({split_rule})",
        }
        about |= input_facts(table, encoded, train_rows, scored)
        if labels is None:
            x = setting.place(x)
            return UnlabelledTable(
                name=self.identity(setting.data_dir, setting.offline),
                values="incomplete" if self.gaps == "keep" else "real",
                train=Rows(x[train_rows], 1.0),
                test=Rows(x[scored], 1.0),
                batch_size=self.batch_size,
                image_shape=self.image_shape,
                figures=[clusters],
                about=about | {"values": "standardised" if self.standardise else "raw units"},
                columns=described,
                lines=[table.lines[row] for row in (*train_rows, *scored)],
            )
        y, mask, tasks, scale, classes = labels
        real = self.labels == "real"
        train, test = (
            labelled_rows(x[rows], y[rows], setting, mask[rows]) for rows in (train_rows, scored)
        )
        y_mean, y_std = (None, None) if scale is None else (setting.place(v) for v in scale)
        return OwnTable(
            name=self.identity(setting.data_dir, setting.offline),
            target=self.labels,
            train=train,
            test=test,
            batch_size=self.batch_size,
            n_classes=1 if real else len(classes),
            class_names=classes,
            task_names=tasks,
            y_mean=y_mean,
            y_std=y_std,
            figures=[predictions, calibration] if real else [calibration],
            evaluation_chunk=100,
            bounds=self.bounds,
            image_shape=self.image_shape,
            input_units="standardised" if self.standardise else "raw units",
            input_names=described.input_names,
            input_scale=input_scale,
            columns=described,
            about=about
            | (
                {}
                if real
                else class_facts(
                    y, mask, tasks, classes, train_rows, scored, self.classes is not None
                )
            ),
        )

    def _rows(self, table: TextTable, rng: Rng) -> tuple[Indices, Indices, str]:
        """Training and test rows, and a description of the split.

        Raises ConfigMismatchError for an invalid split."""
        n = table.n_rows
        if self.split is not None:
            cells = [
                None if cell is None else cell.lower() for cell in table.column(self.split, "split")
            ]
            if other := [row for row, cell in enumerate(cells) if cell not in ("train", "test")]:
                raise ConfigMismatchError(
                    f"{table.where(other[0])}: {self.split} is {cells[other[0]]!r}; write train or test"
                )
            tested = np.array([cell == "test" for cell in cells])
            split_rule = f"given by {self.split}"
        elif self.fold is not None:
            folds = table.complete_column(self.fold, "fold", "row")
            values = sorted({*folds}, key=lambda text: (len(text), text))
            if rng.replicate >= len(values):
                raise ConfigMismatchError(
                    f"replicates: {self.fold} has only {len(values)} folds; lower replicates to this number"
                )
            tested = np.array([fold == values[rng.replicate] for fold in folds])
            split_rule = f"{self.fold} {values[rng.replicate]}"
        else:
            order = torch.randperm(n, generator=rng.data).numpy()
            tested = np.zeros(n, dtype=bool)
            tested[order[: min(max(1, round(self.test_share * n)), n - 1)]] = True
            split_rule = "drawn from the seed"
        train_rows = np.flatnonzero(~tested)
        scored = np.flatnonzero(tested)
        if len(train_rows) < 2 or len(scored) == 0:
            raise ConfigMismatchError(
                f"{table.file}: {len(train_rows)} training rows and {len(scored)} test rows; at "
                f"least 2 training rows and 1 test row are required"
            )
        return train_rows, scored, split_rule

    def _labels(self, table: TextTable, kept: Indices) -> Labels:
        """y [N, T], the mask of observed labels, the names of the tasks, mean and sd of real
        labels, and the classes of others.

        Raises ConfigMismatchError for invalid labels."""
        classes: list[str] = []
        if self.labels == "real":
            y = torch.from_numpy(
                np.stack([table.numbers(name, "targets", LABEL_ADVICE) for name in self.targets], 1)
            )
            mask = ~y.isnan()
        else:
            numbers, classes = class_labels(
                table, self.targets, self.labels == "binary", self.classes
            )
            y = torch.from_numpy(numbers)
            mask = y >= 0
        tasks = list(self.targets)
        if self.task is not None:
            task_cells = table.complete_column(self.task, "task", "label")
            tasks = sorted({*task_cells})
            member = torch.tensor([[task == name for name in tasks] for task in task_cells])
            y = y.expand(-1, len(tasks))
            mask = mask & member
        observed = [y[kept, t][mask[kept, t]] for t in range(len(tasks))]
        for values, task in zip(observed, tasks, strict=True):
            if len(values) < 2:
                raise ConfigMismatchError(
                    f"dataset.targets: task {task} has {len(values)} training labels; at least 2 are needed"
                )
        scale = None
        if self.labels == "real":
            mean, sd = _moments(observed, tasks)
            if self.standardise:
                scale = (mean, sd)
                y = (y - mean) / sd
        return torch.where(mask, y, 0), mask, tasks, scale, classes


def _moments(observed: list[Tensor], tasks: list[str]) -> tuple[Tensor, Tensor]:
    """Mean and sd of the observed labels of each task [T].

    Raises ConfigMismatchError for constant labels."""
    for values, task in zip(observed, tasks, strict=True):
        check_squares(values.unsqueeze(1), [f"the label of task {task}"])
        if bool(is_constant(values.unsqueeze(1))):
            raise ConfigMismatchError(
                f"dataset.targets: the labels of task {task} are all equal; remove the task"
            )
    mean = torch.stack([values.mean() for values in observed])
    sd = torch.stack([values.std(correction=0) for values in observed])
    return mean, sd
