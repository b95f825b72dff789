"""Fits of a calibration: simulate a data set, fit the posterior, rank the true values."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from typing import Any

from runner.compose.resolve import ResolvedConfig, resolve_words

Row = dict[str, Any]  # line of ranks.jsonl: data_set, ranks by quantity or error, seconds
TIES = 3  # number of the random stream that breaks ties
ONCE = "run the command once for each"


@dataclass(frozen=True)
class RankSettings:
    """Settings that determine the ranks."""

    draws: int  # L; ranks are 0 … L
    inputs: int  # held-out rows at which predictions are ranked


class Fitter:
    """Simulator and fitter of the data sets of one config.

    Args:
        resolved: the config; its seed and a data set's number determine all random numbers.
    """

    def __init__(self, resolved: ResolvedConfig, settings: RankSettings):
        from runner.compose.job import build

        self.job = build(resolved)
        self.settings = settings

    def _streams(self, replicate: int) -> Any:
        from runner.execution.rng import Streams

        return Streams(self.job.settings.seed, replicate, self.job.settings.device)

    @cached_property
    def template(self) -> tuple[Any, Any]:
        """The dataset's problem, and the model built on it.

        Raises:
            ConfigMismatchError: the model cannot simulate it.
        """
        import torch

        from components.evaluation.calibration.simulated import check_simulates
        from runner.execution.assembly import build_model, load_problem

        torch.set_num_threads(self.job.settings.threads)
        rng = self._streams(0)
        problem = load_problem(self.job, rng)
        model = build_model(self.job, problem, rng)
        check_simulates(model, problem, self.job.model.name)
        return problem, model

    def fit(self, data_set: int) -> Row:
        """Ranks for the data set with number ``number``, counted from 0, or an error message if the
        fit diverges.

        Raises:
            ConfigMismatchError: the components are incompatible, or too few draws are kept.
        """
        from components.errors import NumericalError

        began = time.monotonic()
        row: Row = {"data_set": data_set}
        try:
            row["ranks"] = self._rank(data_set)
        except NumericalError as error:
            row["error"] = str(error)
        return row | {"seconds": round(time.monotonic() - began, 3)}

    def _rank(self, data_set: int) -> dict[str, int]:
        from components.evaluation.calibration.quantities import compute_quantities, rank
        from components.evaluation.calibration.simulated import check_prior, simulate
        from runner.execution.assembly import build_model, total_steps
        from runner.execution.costs import CostMeter
        from runner.execution.loop import steps, train

        problem, model = self.template
        rng = self._streams(data_set)
        simulated = simulate(model, problem, self.settings.inputs, rng)
        fitted = build_model(self.job, simulated.problem, rng)
        check_prior(model, fitted, simulated.theta, self.job.model.name)
        method = self.job.inference
        state = method.init(fitted, simulated.problem, rng)
        total = total_steps(self.job, simulated.problem)
        training = steps(method, simulated.problem, state, rng, 0, total, CostMeter())
        state = train(training, (), state)
        posterior = method.posterior(state)
        generator = rng.evaluation
        quantities = compute_quantities(simulated, posterior, self.settings.draws, generator)
        ties = rng.at("data", TIES)
        return {name: rank(values, ties) for name, values in quantities.items()}


_FITTER: list[Fitter] = []  # the fitter of a worker process


def _begin_worker(words: list[str], settings: RankSettings) -> None:
    _FITTER[:] = [Fitter(resolve_words(words, ONCE), settings)]


def _fit_in_worker(data_set: int) -> Row:
    return _FITTER[0].fit(data_set)


def fit_all(fitter: Fitter, words: list[str], data_sets: Iterable[int], jobs: int) -> Iterator[Row]:
    """Rows of these data sets in order of completion, computed by ``jobs`` processes."""
    if jobs == 1:
        yield from map(fitter.fit, data_sets)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin_worker, (words, fitter.settings))
    try:
        for done in as_completed([pool.submit(_fit_in_worker, number) for number in data_sets]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)
