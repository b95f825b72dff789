"""Compare a run on the CPU with the same run on another device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from contract.partners import Run, runs, runs_of
from matplotlib.figure import Figure
from support.runs.configured import CONF
from support.runs.exported_families import HOUSES, TEXTS, TRAIN, fit
from support.runs.sketched import save_sketch

from components import registry
from components.errors import NumericalError
from components.figures import attempts
from runner import FittedModel, load_model
from runner.compose.job import Job
from runner.errors import ConfigError, RunFailure
from runner.execution.execute import run
from runner.execution.storage import artefacts


class LeftOutError(Exception):
    """A figure, a table or a file of a run could not be made."""


def draw_strictly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures without writing them; a failing figure stops the run, instead of a warning."""

    def fail(what: str, error: BaseException) -> None:
        raise LeftOutError(f"{what}: {error}") from error

    for module in (attempts, artefacts):
        monkeypatch.setattr(module, "warn_not_shown", fail)
    monkeypatch.setattr(Figure, "savefig", save_sketch)


# gradient estimators for Bernoulli variables require these models
OF_BERNOULLI = {
    "arm",
    "arms",
    "disarm",
    "double_cv",
    "gumbel_softmax",
    "nvil",
    "rebar",
    "relax",
    "relax_rebar",
    "rodeo",
    "vimco",
}
Scores = dict[str, list[float]]
SHORT = ["steps=6", "record_every=1", "eval_every=3", "checkpoint_every=3"]


def every_run() -> dict[str, Run]:
    """Small runs by name: each inference method on each kind of problem, and each component."""
    methods = (run for name in registry.names("inference") for run in runs_of("inference", name))
    return {str(run): run for run in (*methods, *runs())}


def score(make_job: Callable[..., Job], *overrides: str) -> Scores | str:
    """Scores of a run by name, one for each replicate, or the error of a rejected run."""
    try:
        return run(make_job(*overrides))[1]
    except (ConfigError, RunFailure, NumericalError) as error:
        return str(error)


def is_refused(result: Scores | str, device: str) -> bool:
    """True if the error of a rejected run names the device."""
    return isinstance(result, str) and f"device={device}" in result


def compare_devices(
    make_job: Callable[..., Job],
    device: str,
    overrides: Sequence[str],
    tolerance: Callable[[str], float],
) -> None:
    """Check that a run has equal scores on the CPU and a device, or is rejected on both.

    Raises:
        AssertionError: the scores differ."""
    cpu, other = (score(make_job, *overrides, f"device={where}") for where in ("cpu", device))
    if isinstance(cpu, str):  # a method that refuses float32 refuses it on both
        is_refused_alike = isinstance(other, str) if device == "cuda" else other == cpu
        assert is_refused_alike, f"on the CPU: {cpu}"
        pytest.skip(f"not on the CPU either: {cpu}")
    if is_refused(other, device):
        pytest.skip(str(other))
    assert isinstance(other, dict), other
    assert list_differences(other, cpu, tolerance) == {}


def list_differences(
    ours: Scores, theirs: Scores, tolerance: Callable[[str], float]
) -> dict[str, tuple[float, float]]:
    """Scores that differ by more than the tolerance of their name, relative and absolute."""
    return {
        name: (first, other)
        for name in theirs
        for first, other in zip(ours[name], theirs[name], strict=True)
        if "seconds" not in name and not is_close(first, other, tolerance(name))
    }


def is_close(ours: float, theirs: float, tolerance: float) -> bool:
    """True if two scores agree; NaN agrees with NaN."""
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)


def every_experiment() -> dict[str, list[str]]:
    """Overrides of each experiment in smoke mode, and of each gradient estimator, by name."""
    names = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
    keys = {name: [f"+experiment={name}"] for name in names}
    for name in registry.names("gradient"):
        base = "vargrad_dvae" if name in OF_BERNOULLI else "bbvi_logistic"
        keys[f"gradient {name}"] = [f"+experiment={base}", f"inference.gradient={name}"]
    return {name: [*keys[name], "smoke=true"] for name in keys}


def choose_one_per_family(cases: Mapping[str, Run]) -> set[str]:
    """Names of runs, the first of each family of each role."""
    names: dict[tuple[str, str], str] = {}
    for name, case in sorted(cases.items()):
        for role, component in case.choice:
            file = registry.file(role, component)
            if file is not None:
                names.setdefault((role, file.parent.name), name)
    return set(names.values())


def short_run(family: str, overrides: Sequence[str]) -> list[str]:
    """Overrides of a run of six steps; an attack on a filter requires a run over the whole
    series."""
    whole = ["dataset.n_steps=6"] if family.endswith("-spoofing") else []
    return [*overrides, *whole, *SHORT]


def compare_exports(folder: Path, family: str, device: str, tolerance: float) -> None:
    """Check that a family's model, trained on the CPU or on a device, has the same predictions on
    both as the CPU's on the CPU.

    Raises:
        AssertionError: the predictions differ."""
    results = {}
    for trained in ("cpu", device):
        home = folder / trained
        home.mkdir()
        file = fit(home, family, device=trained).export(home / "model.zip")
        for loaded in ("cpu", device):
            model = load_model(file, device=loaded)
            results[trained, loaded] = model.predict(new_rows(home, model))
    whole = results.pop(("cpu", "cpu"))
    for where, frame in results.items():
        assert list(frame) == list(whole), where
        numbers = whole.select_dtypes("number")
        values = frame[list(numbers)].to_numpy()
        np.testing.assert_allclose(values, numbers, tolerance, tolerance, err_msg=str(where))
        others = [name for name in whole if name not in numbers]
        assert (frame[others] == whole[others]).all(axis=None), where


def new_rows(folder: Path, model: FittedModel) -> Path | None:
    """New rows for a model, in the form that its family requires."""
    if model.answers == "forecasts":
        return None
    if model.answers == "topics":
        return folder / "data" / TEXTS
    lines = (folder / "data" / HOUSES).read_text().splitlines()
    cells = [line.split(",")[:3] for line in [lines[0], *lines[1 + TRAIN :]]]
    rows = folder / "rows.csv"
    rows.write_text("\n".join(",".join(row) for row in cells) + "\n")
    return rows
