"""``load`` and what it gives: a run that has been recorded, its scores, its posterior and its
problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.disk.yaml_limits import read_yaml
from runner.errors import ConfigError, RunFailure
from runner.record.checks import combine_checks
from runner.record.facts import RunState
from runner.record.record import find
from runner.report import compare as records
from runner.statistics.standard_error import mean_se

if TYPE_CHECKING:
    import pandas as pd
    from xarray import DataTree

    from components.contracts.predictive import Predictive
    from components.contracts.roles import Problem
    from runner.python.restored import RestoredRun
from runner.catalogue.plugins import refuse_unknown_modules
from runner.commands.resume import read_run_config
from runner.compose.config import Job, prepare


def rebuild_job(folder: Path, data_dir: str | None) -> Job:
    """Job of a record's run, ready to be loaded again.

    Users' code is imported only if the caller has already imported it.

    Raises:
        ConfigError: its config is damaged, or names modules that are not imported, or its
            data are missing.
    """
    import sys

    from runner.compose import guard

    cfg, experiment, modules = read_run_config(folder / "config.yaml")
    unknown = [module for module in modules if module not in sys.modules]
    refuse_unknown_modules(unknown, f"the record {folder}", f"import {', '.join(unknown)} first,")
    cfg.output_dir = str(folder.parent.parent)
    if data_dir is not None:
        cfg.data_dir = data_dir
    with guard.within():
        return prepare(cfg, experiment, None)


class Score(NamedTuple):
    """A metric over the replicates of a run."""

    mean: float
    se: float  # standard error of the mean; NaN of a single replicate
    values: tuple[float, ...]  # one a replicate

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if len(self.values) < 2 else f"{self.mean:.4g} ± {self.se:.2g}"


@dataclass(frozen=True)
class Result:
    """A recorded run.  What is read from disk, or rebuilt, is read when it is asked for, and
    once."""

    record: Path  # its folder
    was_done: bool  # it was recorded before this call, and nothing was computed
    # facts, settings and scores, as ``runner compare`` reads them
    compared: records.ComparedRecord = field(repr=False)
    _data_dir: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        headline = ", ".join(
            f"{name} {score}" for name, score in self.scores.items() if "/" not in name
        )
        suffix = "" if self.compared.step is None else f" at step {self.compared.step}"
        return (
            f"<{self.experiment}/{self.id[:8]} {self.state}{suffix}: {headline or 'no score yet'}>"
        )

    @property
    def id(self) -> str:
        """Signature of the run; a prefix is enough to name it."""
        signature: str = self.compared.facts["signature"]
        return signature

    @property
    def experiment(self) -> str:
        experiment: str = self.compared.facts["experiment"]
        return experiment

    @property
    def state(self) -> RunState:
        """done, running, interrupted, diverged, failed or pending."""
        state: RunState = self.compared.facts["state"]
        return state

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Final scores by name, ``rmse/task`` for a part's score.

        A run that is not done has the scores of its last evaluation.
        """
        return {
            name: Score(*mean_se(values), tuple(values))
            for name, values in self.compared.result.items()
        }

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """All that was recorded: replicate, step, phase (train, evaluation, final), metric,
        value."""
        from runner.python.frames import recorded_values

        return recorded_values(self.record)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """Checks of the run and of its attack: about, check, passed (None: not checked), detail."""
        import pandas as pd

        return pd.DataFrame(
            combine_checks(self.compared.facts), columns=["about", "check", "passed", "detail"]
        )

    @cached_property
    def config(self) -> dict[str, Any]:
        """The whole config, as it was resolved."""
        config: dict[str, Any] = read_yaml(self.record / "config.yaml")
        return config

    @property
    def facts(self) -> dict[str, Any]:
        """run.json: times, versions, hardware, the commit."""
        return self.compared.facts

    # ---- what was learnt ---------------------------------------------------------------------------------------------
    @cached_property
    def _restore(self) -> RestoredRun:
        from components.errors import DataUnavailableError, NumericalError
        from runner.terminal import printer

        try:
            from runner.python.restored import restore_run

            with printer.suppress_output():
                return restore_run(
                    rebuild_job(self.record, self._data_dir), self.record, self.compared.facts
                )
        except DataUnavailableError as error:
            raise ConfigError(str(error)) from None
        except NumericalError as error:
            raise RunFailure(f"{self.record}: {error}") from error

    @property
    def posterior(self) -> Any:
        """Result of inference (``docs/contracts.md``), rebuilt from the newest checkpoint.

        For several replicates that are computed one after the other it is the last one's;
        ``replicate`` gives its number.

        Raises:
            ConfigError, RunFailure: its data, or a checkpoint, do not exist.
        """
        return self._restore.posterior

    @property
    def problem(self) -> Problem:
        """The data, loaded again, as that replicate saw them.  Raises as ``posterior``."""
        return self._restore.problem

    @property
    def replicate(self) -> int:
        """Replicate of the posterior, counted from 0."""
        return self._restore.replicate

    def predict(
        self, x: Any, *, replicate: int | None = None, variant: str | None = None
    ) -> Predictive:
        """Posterior predictive at inputs x [B, D] (a tensor, an array, a frame).

        It is in the units of ``problem.test``: a mixture of normals (``mean``, ``variance``,
        ``quantile``) or of class probabilities (``probs``, ``guess``).

        If replicates, or variants (``inference.alphas``), were trained side by side,
        ``replicate`` and ``variant`` select one.

        Raises:
            ConfigError: it does not predict labels, x has another number of inputs, or no
                replicate or variant is selected; and as ``posterior``.
        """
        import numpy as np
        import torch

        from components.contracts.posteriors import Predicts
        from components.problems.supervised import Supervised

        problem, posterior, rng = self._restore.one(replicate, variant)
        if not isinstance(problem, Supervised) or not isinstance(posterior, Predicts):
            raise ConfigError(
                f"predict: {self.experiment} is a {problem.kind} problem, which has no labels to predict; ask its posterior, "
                f"a {type(posterior).__name__}"
            )
        like = problem.test.x
        inputs = x if isinstance(x, torch.Tensor) else torch.as_tensor(np.array(x))
        if inputs.ndim != 2 or inputs.shape[1] != problem.n_inputs:
            raise ConfigError(
                f"predict: x is {tuple(inputs.shape)}, and {self.experiment} has rows of {problem.n_inputs}"
            )
        with torch.no_grad():
            return problem.predictive_at(
                posterior, inputs if inputs is like else inputs.to(like), rng
            )

    def inference_data(self) -> DataTree:
        """ArviZ's InferenceData: of the groups posterior, sample_stats, log_likelihood,
        observed_data and posterior_predictive those that there are, of the training rows, or of the
        series seen: with log_likelihood ``az.loo`` and ``az.compare`` work on it.

        Raises:
            ConfigError: the posterior holds no draws of parameters, functions or states; and as ``posterior``."""
        from components.errors import ConfigMismatchError
        from components.evaluation.inference_groups import inference_groups

        try:
            return inference_groups(
                self.problem, self.posterior, self._restore.rng, self._restore.model
            )
        except ConfigMismatchError as error:
            raise ConfigError(f"inference_data: {error}") from None


def load_result(folder: Path, was_done: bool, data_dir: str | None = None) -> Result:
    """Content of the record in a folder.

    Raises:
        ConfigError: it cannot be read.
    """
    return Result(folder, was_done, records.load(folder), data_dir)


def load(
    record: str | PathLike[str],
    *,
    output_dir: str | PathLike[str] = "outputs",
    data_dir: str | PathLike[str] | None = None,
) -> Result:
    """A run that was recorded before, by its folder or by the beginning of its id, whoever ran it.

    ``data_dir`` says where its data files are now, if not where they were.

    Raises:
        ConfigError: there is no such run, or several begin so, or its record is damaged.
    """
    folder = find(str(record), Path(output_dir))
    return load_result(folder, was_done=True, data_dir=None if data_dir is None else str(data_dir))
