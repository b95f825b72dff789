"""A posterior and its problem together as ArviZ's InferenceData: what ``az.loo`` and ``az.compare`` read.

Groups beside those of ``posteriors.inference_data``, of the same C chains and N draws:

    log_likelihood        log p(y_i | θ_s) of every label that was learnt from [C, N, …]
    observed_data         y [rows], or [rows, tasks]; where several tasks have labels missing, a list of those that are there
    posterior_predictive  ỹ_i ~ p(y | x_i, θ_s) [C, N, …]

Of a structural series i is a time and p(y_t | y_<t, θ) what is said of it beforehand, the states summed out (of Student's
t given the precisions).  Draws with weights are drawn anew by their weights, as one chain.  Labels are in the problem's units.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.posteriors import HoldsDraws, HoldsModule, Redraws, SeriesDraws
from components.contracts.predictive import GaussianMixture, Predictive
from components.contracts.problems import Rows
from components.contracts.roles import Problem
from components.contracts.streams import Rng
from components.posteriors.draws import Draws
from components.posteriors.inference_data import Groups, groups_of
from components.posteriors.structural import StructuralDraws
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.trouble import Misfit, Shortfall

if TYPE_CHECKING:
    from xarray import DataTree

MOST_NUMBERS = 10_000_000  # of a group, 80 MB in float64: more draws are thinned
AT_ONCE = 4_000_000  # of a predictive that is held at once
DRAWS = 1000  # asked of a posterior that draws anew whenever it predicts
FEWEST = 25  # draws, of whose tail ``az.loo`` makes a Pareto distribution: it takes a fifth of them, and five at least
STREAM = 9_000  # of the evaluation's fresh generators, the first that is used here


Predicting = Callable[[Tensor], Predictive]  # of inputs x [B, D]


@dataclass(frozen=True)
class Pointwise:
    """What S draws say of the n labels that were learnt from."""

    name: str
    log_likelihood: Tensor  # [S, n]
    observed: Tensor | None  # [n]; None: it is not one number
    drawn: Tensor | None  # of the predictive [S, n]; None: nothing draws them
    axes: dict[str, list[Any]]  # dimensions that the n make up, and their coordinates


def inference_groups(problem: Problem, posterior: object, rng: Rng) -> DataTree:
    """All groups, of the first replicate where several are computed at once.

    Raises:
        Misfit: the posterior holds no draws of parameters, or no single observations have a likelihood given them.
    """
    if isinstance(posterior, HoldsDraws):
        draws = posterior.of_replicate(0)
        if not isinstance(draws, Draws) or not draws.n_draws:
            raise Misfit("no draw is kept yet; take more steps, or lower inference.burn_in")
        draws = _thinned(_unweighted(draws, rng), _observations(problem, draws))
        groups, shape = groups_of(draws), (draws.n_chains, draws.n_draws)
        _add(groups, _pointwise(problem, draws, rng), shape)
        return groups.tree()
    if isinstance(problem, Supervised) and isinstance(posterior, Redraws) and not isinstance(posterior, HoldsModule):
        return _of_networks(problem, posterior, rng)
    if isinstance(posterior, SeriesDraws):
        raise Misfit(
            "the likelihood of single observations is not known given the parameters; their draws are in posterior.nc"
        )
    why = "sums the function out of each of its samples, which are" if isinstance(posterior, HoldsModule) else "holds"
    raise Misfit(
        f"a {type(posterior).__name__} {why} no draws of parameters; a sampler keeps them (inference=nuts, sgld, …)"
    )


def _observations(problem: Problem, draws: Draws) -> int:
    """How many labels were learnt from.

    Raises:
        Misfit: the problem has none that are independent given the parameters."""
    if isinstance(draws, StructuralDraws):
        return draws.series.y.shape[1]
    if isinstance(problem, Supervised):
        return int(problem.train.mask.sum())
    known = isinstance(draws.model, LogJoint)
    if known and isinstance(problem, Unlabelled) and isinstance(problem.train, Rows) and not problem.redrawn:
        return problem.train.n_rows
    raise Misfit(
        f"a {problem.kind} problem has here no observations, one by one, whose likelihood is known given the parameters; "
        "its draws alone are in posterior.nc"
    )


def _unweighted(draws: Draws, rng: Rng) -> Draws:
    if draws.log_weights is None:
        return draws
    rows = torch.multinomial(draws.weights, len(draws.flat), replacement=True, generator=rng.at("evaluation", STREAM))
    return replace(draws, draws=draws.flat[rows][None], start=draws.start[:1], stats={}, log_weights=None)


def _thinned(draws: Draws, n: int) -> Draws:
    """Evenly, until what is said of n observations can be held.

    Raises:
        Misfit: hardly a draw would be left, or there are no more."""
    every = max(1, -(-draws.n_chains * draws.n_draws * n // MOST_NUMBERS))
    index = np.arange(draws.n_draws)[every - 1 :: every]
    _count(draws.n_chains * len(index), "keep more draws")
    if every == 1:
        return draws
    told = f"every {every}th draw alone, {len(index)} of {draws.n_draws}: all would be more than 80 MB"
    warnings.warn(told, Shortfall, stacklevel=2)
    part: dict[str, Any] = {"draws": draws.draws[:, index]}
    part["stats"] = {name: value[:, index] for name, value in draws.stats.items()}
    if isinstance(draws, StructuralDraws) and draws.precisions is not None:
        part["precisions"] = draws.precisions[:, index]
    return replace(draws, **part)


def _pointwise(problem: Problem, draws: Draws, rng: Rng) -> Pointwise:
    if isinstance(draws, StructuralDraws):
        return of_series(draws, rng)
    if isinstance(problem, Supervised):
        return of_labels(problem, lambda x: draws.predictive(draws.flat, x), len(draws.flat), rng)[0]
    assert isinstance(problem, Unlabelled), "``_observations`` refuses what is neither"
    return of_rows(problem, draws)


def of_labels(problem: Supervised, predictive: Predicting, n_draws: int, rng: Rng) -> tuple[Pointwise, Tensor]:
    """What S draws say of the training labels that are there, and f, of which they say it: means or logits [S, B, …].

    Raises:
        Misfit: a draw's predictive is itself a mixture."""
    x, y, mask = problem.train.x, problem.train.y, problem.train.mask
    generator = rng.at("evaluation", STREAM + 1)
    size = max(1, AT_ONCE // (n_draws * problem.n_tasks * problem.n_classes))
    parts = []
    with torch.no_grad():
        for rows, labels in zip(x.split(size), y.split(size), strict=True):
            parts.append(_said(predictive(rows), labels, n_draws, generator))
    log_likelihood, drawn, f = (torch.cat(values, 1) for values in zip(*parts, strict=True))
    axes: dict[str, list[Any]]
    tasks = problem.task_names or [str(t) for t in range(problem.n_tasks)]
    if problem.n_tasks == 1:
        axes = {"row": mask[:, 0].nonzero()[:, 0].tolist()}
    elif bool(mask.all()):
        axes = {"row": list(range(len(x))), "task": tasks}
    else:
        axes = {"label": [f"{row}/{tasks[task]}" for row, task in mask.nonzero().tolist()]}
    return Pointwise("y", log_likelihood[:, mask], y[mask], drawn[:, mask], axes), f


def _said(said: Predictive, y: Tensor, n_draws: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """log p(y | x, θ), draws of y and f, [S, B, T] each; f of classes [S, B, T, K]."""
    if isinstance(said, GaussianMixture):
        f, (S, *_) = said.mu, said.mu.shape
        normal = torch.randn(said.mu.shape, generator=generator, dtype=said.mu.dtype, device=said.mu.device)
        log_likelihood, drawn = _normal(y, said.mu, said.v), said.mu + said.v.sqrt() * normal
    else:
        f, (S, *_) = said.logits, said.logits.shape
        log_probs = said.logits.log_softmax(-1)  # [S, B, T, K]
        places = y.clamp_min(0).expand(S, *y.shape)  # anything where the label is missing
        log_likelihood = log_probs.gather(-1, places.unsqueeze(-1)).squeeze(-1)
        drawn = torch.multinomial(log_probs.exp().flatten(0, 2), 1, generator=generator).view(log_likelihood.shape)
    if n_draws != S:
        raise Misfit("what one draw of its parameters predicts is itself a mixture, whose parts are not told apart")
    return log_likelihood, drawn, f


def _normal(y: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """log N(y | mean, variance)."""
    return -0.5 * (math.log(2 * math.pi) + variance.log() + (y - mean).square() / variance)


def of_series(draws: StructuralDraws, rng: Rng) -> Pointwise:
    """What is said of each time that is seen from those before it."""
    series = draws.series
    seen, y = draws.of.design(series).seen, series.y[0, :, 0]
    seen = seen[: len(y)]
    mean, variance = (value[:, : len(y)][:, seen] for value in draws.beforehand(series))
    generator = rng.at("evaluation", STREAM + 1)
    normal = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
    times = series.dates[: len(y)] or range(1, len(y) + 1)
    axes: dict[str, list[Any]] = {"time": [time for time, there in zip(times, seen.tolist(), strict=True) if there]}
    y = y[seen].to(mean)
    return Pointwise("y", _normal(y, mean, variance), y, mean + variance.sqrt() * normal, axes)


def of_rows(problem: Unlabelled, draws: Draws) -> Pointwise:
    """What is said of rows without labels; nothing draws them."""
    train = problem.train
    assert isinstance(draws.model, LogJoint), "``_observations`` refuses another"
    assert isinstance(train, Rows), "and words"
    with torch.no_grad():
        size = max(1, AT_ONCE // max(1, train.n_rows))
        values = torch.cat([draws.model.log_likelihood(theta, train) for theta in draws.flat.split(size)])
    observed = train.x.flatten() if train.x.numel() == train.n_rows else None
    return Pointwise("x", values, observed, None, {"row": list(range(train.n_rows))})


def _of_networks(problem: Supervised, posterior: Redraws, rng: Rng) -> DataTree:
    """Of networks, or functions, that are drawn anew or are few: what they say at the training rows stands for them, ``f``."""
    labels = problem.train.y.numel() * problem.n_classes
    held = posterior.some(max(FEWEST, min(DRAWS, MOST_NUMBERS // labels)), None)

    def predictive(x: Tensor) -> Predictive:
        return held.predict(x, rng.at("evaluation", STREAM + 2))

    with torch.no_grad():
        first = predictive(problem.train.x[:1])
    n_draws = len(first.mu if isinstance(first, GaussianMixture) else first.logits)
    _count(n_draws, "take more networks")
    said, f = of_labels(problem, predictive, n_draws, rng)
    f = f.squeeze(2) if problem.n_tasks == 1 else f
    names = ["input", *(["of_task"] if problem.n_tasks > 1 else []), *(["class"] if problem.target != "real" else [])]
    groups = Groups({"posterior": {"f": _numpy(f)[None]}}, {"f": names})
    _add(groups, said, (1, n_draws))
    return groups.tree()


def _count(n_draws: int, mend: str) -> None:
    """Warns of few draws.

    Raises:
        Misfit: there is one, or none."""
    if n_draws < 2:
        raise Misfit(f"there is {n_draws} draw of what can be drawn {FEWEST} times and more; {mend}")
    if n_draws < FEWEST:
        warnings.warn(f"{n_draws} draws: az.loo asks for {FEWEST} or more; {mend}", Shortfall, stacklevel=3)


def _add(groups: Groups, said: Pointwise, shape: tuple[int, int]) -> None:
    """The three groups of data."""
    lengths = [len(axis) for axis in said.axes.values()]
    groups.dims[said.name] = list(said.axes)
    groups.coords |= said.axes
    groups.values["log_likelihood"] = {said.name: _numpy(said.log_likelihood.double()).reshape(*shape, *lengths)}
    if said.drawn is not None:
        groups.values["posterior_predictive"] = {said.name: _numpy(said.drawn).reshape(*shape, *lengths)}
    if said.observed is not None:
        groups.values["observed_data"] = {said.name: _numpy(said.observed).reshape(lengths)}


def _numpy(value: Tensor) -> np.ndarray:
    return value.detach().cpu().numpy()
