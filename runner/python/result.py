"""A recorded run: its scores, posterior and problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.errors import ConfigError
from runner.python.score import Score
from runner.record.checks import combine_checks
from runner.record.facts import Facts, RunState, read_config
from runner.report.compared_record import ComparedRecord
from runner.statistics.standard_error import mean_se

if TYPE_CHECKING:
    import pandas as pd
    from xarray import DataTree

    from components.contracts.predictive import Predictive
    from components.contracts.roles import Problem
    from runner.python.export.restored import RestoredRun


@dataclass(frozen=True)
class Result:
    """A recorded run; files are read, and the posterior is rebuilt, once and at first use.

    The examples below use this ``result``.

    Example:
        >>> from runner import load, run
        >>> result = run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False)
        >>> result.record.parts[:2]
        ('outputs', 'cavi_probit')
        >>> result.compared.step is None  # a finished run
        True
    """

    record: Path  # folder of the record
    was_done: bool  # True if it was finished before this call
    # facts, settings and scores, as read by ``runner compare``
    compared: ComparedRecord = field(repr=False)
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
        """Signature of the run; a unique prefix identifies it.

        Example:
            >>> load(result.id[:8]).id == result.id
            True
        """
        return str(self.compared.facts["signature"])

    @property
    def experiment(self) -> str:
        """Name of the experiment; ``custom`` for a run without one.

        Example:
            >>> result.experiment
            'cavi_probit'
        """
        return str(self.compared.facts["experiment"])

    @property
    def state(self) -> RunState:
        """State: done, running, interrupted, diverged, failed or pending.

        Example:
            >>> result.state
            'done'
        """
        state: RunState = self.compared.facts["state"]
        return state

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Final scores by name, ``rmse/task`` for a part's score.

        An unfinished run has the scores of its last evaluation.

        Example:
            >>> print(result.scores["accuracy"])
            0.75 ± 0.1
        """
        return {
            name: Score(*mean_se(values), tuple(values))
            for name, values in self.compared.result.items()
        }

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Recorded values, one per row: replicate, step, phase, metric, value.

        Phases are train, evaluation and final.

        Example:
            >>> result.metrics.query("phase == 'final' and metric == 'accuracy'").value.tolist()
            [0.85, 0.65]
        """
        from runner.python.frames import recorded_values

        return recorded_values(self.record)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """Checks of the run and of its attack: about, check, passed (None if not checked), detail.

        Example:
            >>> result.checks.loc[0, ["about", "check", "passed"]].tolist()
            ['run', 'scores are finite', True]
        """
        import pandas as pd

        return pd.DataFrame(
            combine_checks(self.compared.facts), columns=["about", "check", "passed", "detail"]
        )

    @cached_property
    def config(self) -> Facts:
        """Complete, resolved config.

        Example:
            >>> result.config["steps"], result.config["model"]["name"]
            (20, 'probit_regression')
        """
        return read_config(self.record)

    @property
    def facts(self) -> Facts:
        """Content of run.json: times, versions, hardware, the commit.

        Example:
            >>> result.facts["replicates"], result.facts["data"]
            (2, 'binary_simulation')
        """
        return self.compared.facts

    @cached_property
    def _restore(self) -> RestoredRun:
        from runner.python.export.restored import restore_record

        return restore_record(self.record, self.compared.facts, self._data_dir)

    @property
    def posterior(self) -> Any:
        """Result of inference (``components.contracts.posteriors``), rebuilt from the newest
        checkpoint.

        It belongs to the last of several sequentially computed replicates; ``replicate`` is its
        number.

        Raises:
            ConfigError: the data do not exist, or the config names modules that are not imported.
            RunFailure: no checkpoint is readable by this version.

        Example:
            >>> result.posterior.values.shape  # chains, draws, parameters
            torch.Size([2, 20, 4])
        """
        return self._restore.posterior

    @property
    def problem(self) -> Problem:
        """Problem of the posterior's replicate, with reloaded data.

        Raises:
            ConfigError: see ``posterior``.
            RunFailure: see ``posterior``.

        Example:
            >>> result.problem.train.x.shape
            torch.Size([20, 3])
        """
        return self._restore.problem

    @property
    def replicate(self) -> int:
        """Replicate of the posterior, counted from 0.

        Raises:
            ConfigError: see ``posterior``.
            RunFailure: see ``posterior``.

        Example:
            >>> result.replicate
            1
        """
        return self._restore.replicate

    def predict(
        self, x: Any, *, replicate: int | None = None, variant: str | None = None
    ) -> Predictive:
        """Posterior predictive at inputs.

        Args:
            x: inputs [B, D] in the units of ``problem.test.x``: a tensor, an array, a frame.
            replicate: one of several replicates trained side by side, from 0.
            variant: name of one of several variants trained side by side
                (``inference.alphas``).

        Returns:
            A mixture of normals (``mean``, ``variance`` [B, T], ``quantile``) in the units of
            ``problem.test.y``, or of class probabilities (``probs`` [B, T, C], ``guess``).

        Raises:
            ConfigError: the posterior does not predict labels, x has a different number of
                inputs, or a replicate or variant must be selected; see also ``posterior``.
            RunFailure: see ``posterior``.

        Example:
            >>> predictive = result.predict([[0.5, -1.0, 0.0], [-2.0, 0.0, 0.0]])
            >>> predictive.probs.shape, predictive.guess.tolist()
            (torch.Size([2, 1, 2]), [[1], [0]])
        """
        from runner.python.export.answers import predict_labels

        return predict_labels(self._restore, x, replicate, variant, self.experiment)

    def export(self, path: str | PathLike[str]) -> Path:
        """Write the fitted model to one file that predicts without the data or the record.

        The file is a zip with weights in safetensors, config, columns and a model card.  Training
        rows are included only if the posterior requires them.  ``load_model`` reads it.

        Args:
            path: file to write.

        Returns:
            The path.

        Raises:
            ConfigError: the posterior makes no predictions for new inputs, or requires files; see
                also ``posterior``.
            RunFailure: see ``posterior``.

        Example:
            >>> from runner import load_model
            >>> model = load_model(result.export("model.zip"))
            >>> x = [[0.5, -1.0, 0.0], [-2.0, 0.0, 0.0]]
            >>> bool((model.predictive(x).probs == result.predict(x).probs).all())
            True
        """
        from runner.python.export.write_model import write_model

        target = Path(path)
        write_model(self._restore, self.record, self.compared, target)
        return target

    def inference_data(self) -> DataTree:
        """ArviZ's InferenceData of the run; requires ``pip install 'bayes-runner[arviz]'``.

        With a group log_likelihood it supports ``az.loo`` and ``az.compare``.

        Returns:
            The available groups among posterior, sample_stats, log_likelihood, observed_data
            and posterior_predictive, for the training rows or the training series.

        Raises:
            ConfigError: the posterior has no draws of parameters, functions or states; see also
                ``posterior``.
            RunFailure: see ``posterior``.

        Example:
            >>> sorted(result.inference_data().children)
            ['log_likelihood', 'observed_data', 'posterior', 'posterior_predictive']
        """
        from components.errors import ConfigMismatchError
        from components.evaluation.inference_groups import inference_groups

        try:
            return inference_groups(self.problem, self.posterior, self._restore.rng)
        except ConfigMismatchError as error:
            raise ConfigError(f"inference_data: {error}") from None
