"""Sanity checks of a run, apart from the checks of its attack.

They detect chains that did not mix, filters that collapsed, steps that are too large, a
bound that still rises, and scores that are not numbers.  They are additional to the
scores and change none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch

from components.contracts.capabilities import CategoricalSeries, LogJoint
from components.contracts.checks import FINITE, Check, GradientResponsiveMethod, Trace
from components.contracts.posteriors import (
    FilteredStates,
    HoldsDraws,
    SeriesDraws,
)
from components.contracts.roles import Inference, Problem, variant_info_names
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.evaluation import limits
from components.evaluation.checks.class_predictions import class_checks, missing_checks
from components.evaluation.checks.gradient_cost import warn_of_cheaper_samples
from components.evaluation.checks.inner_filters import inner_filter_checks
from components.evaluation.checks.moments import moments_checks
from components.evaluation.stability import approximation_checks, largest_response
from components.inference.chains import Chains
from components.inference.partitions.partition_draws import PartitionDraws
from components.inference.variational.laboratory.measured import Measured
from components.metrics import diagnostics, undefined
from components.metrics.diagnostics import FEWEST_DRAWS
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.supervised import Supervised
from components.series.posteriors.filtered import Filtered
from components.series.posteriors.smoothed import SmoothedSeries
from components.series.sequence import Sequence

Scores = Mapping[str, Any]  # name -> number, or a list where replicates are a dimension

# Scores that compare predictions with test labels, scores of attacks without "robust_".
LABEL_SCORES = frozenset(
    {
        "accuracy",
        "nlpp",
        "log_likelihood",
        "ece",
        "auc",
        "rmse",
        "coverage90",
        "crps",
        "nlpp_of_law",
        "entropy",
    }
    | {"mean_accuracy", "mean_robust_accuracy", "worst_case_accuracy", "undefended_accuracy"}
    | {"undefended_robust_accuracy"}
)
MOST_NAMED = 3  # scores named in a line
EQUAL = 1e-6  # relative rounding error of an effective sample size of equal weights
STUCK_CHAINS_MESSAGE = "no chain ever moved, in any coordinate"
SHORT = "not in a smoke run, which is too short"


def run_checks(
    problem: Problem,
    posterior: object,
    inference: Inference[Any, Any, Any, Any],
    state: object,
    scores: Scores,
    trace: Trace,
    rng: Rng,
    smoke: bool,
    declared: bool = False,
) -> list[Check]:
    """All applicable checks of a finished run, by its type of posterior and recorded values.

    A smoke run has only its scores checked: nothing else is required after so few steps.
    A gradient that more samples of the plain one would undercut gives a warning: its scores
    are as good.
    ``declared`` as in ``class_checks``.
    """
    checks = [finite_scores(scores, problem), *missing_checks(problem, posterior, rng)]
    mixing = inference.mixes and isinstance(posterior, HoldsDraws | SeriesDraws | PartitionDraws)
    if smoke:
        converges = (
            mixing,
            isinstance(posterior, FilteredStates),
            isinstance(inference, GradientResponsiveMethod),
            _recorded_values(trace, "elbo"),
        )
        if any(converges):
            checks.append(Check("it has converged", None, SHORT))
        return checks
    checks += interval_checks(scores) + class_checks(problem, posterior, rng, declared)
    if isinstance(posterior, SeriesDraws):
        checks += inner_filter_checks(posterior.parameters)
    mixed = mixing_checks(posterior, scores) if mixing else []
    checks += [*mixed, *moments_checks(problem, posterior, inference, mixed)]
    weighted = isinstance(posterior, Filtered | SmoothedSeries) and posterior.ess is not None
    if isinstance(posterior, FilteredStates) or weighted:
        checks += particle_checks(trace, posterior)
        checks += observation_checks(posterior, problem)
    elif values := _recorded_values(trace, "elbo"):
        checks.append(bound_check(values))
    checks += discriminator_checks(trace, inference)
    if isinstance(posterior, Measured):
        checks.append(bias_check(posterior, scores))
    warn_of_cheaper_samples(problem, posterior, inference, state, scores, rng)
    checks += approximation_checks(problem, inference, state, rng)
    if isinstance(inference, GradientResponsiveMethod) and isinstance(state, Chains):
        checks.append(step_check(problem, inference, state, rng))
    return checks


def interval_checks(scores: Scores) -> list[Check]:
    """Check that each interval among the scores has a width; a plan from one value of its effects
    has no interval."""
    name = "intervals have a width"
    ends = [key.removesuffix("_lower95") for key in scores if key.endswith("_lower95")]
    widths = {
        key: np.subtract(scores[f"{key}_upper95"], scores[f"{key}_lower95"]).min() for key in ends
    }
    if empty := [key for key, width in widths.items() if width <= 0]:
        return [Check(name, False, f"{_names(empty)}: both ends are equal; keep more draws")]
    if "plan_gain" in scores and "plan_width90" not in scores:
        detail = (
            "the gain of the plan has no interval: it rests on one value of the effects, a point "
            "estimate; draws of them have one, as from inference=structural_gibbs"
        )
        return [Check(name, None, detail)]
    return [Check(name, True, f"{len(ends)} intervals")] if ends else []


def mixing_checks(posterior: object, scores: Scores) -> list[Check]:
    """``draws_checks`` of the parameters that a posterior holds draws of."""
    if isinstance(posterior, SeriesDraws):
        return draws_checks(posterior.parameters, scores)
    if isinstance(posterior, PartitionDraws):
        # few splits are accepted if few exist
        names = ("rhat", "ess", "ess_tail")
        compared = {name: scores[name] for name in names if name in scores}
        return draws_checks(posterior.summaries, compared)
    assert isinstance(posterior, HoldsDraws)
    return draws_checks(posterior, scores)


def discriminator_checks(trace: Trace, inference: Inference[Any, Any, Any, Any]) -> list[Check]:
    """``discriminator_check`` where every variant has recorded its discriminator."""
    names = variant_info_names(["discriminator_loss"], inference)
    judged = [_recorded_values(trace, name) for name in names]
    if not all(judged):
        return []
    return [discriminator_check([list(chain(*each)) for each in zip(*judged, strict=True)])]


def finite_scores(scores: Scores, problem: Problem) -> Check:
    """Check that every score of every replicate is a number.

    Exceptions are scores for which ``metrics.undefined`` gives a reason, and scores of
    tasks without test labels.
    """
    problem = problem.splits[0] if isinstance(problem, SupervisedReplicates) else problem
    classes = _has_classes(problem)
    failures: list[str] = []
    excused: dict[str, list[str]] = {}  # reason -> scores
    for name, values in scores.items():
        for r, value in enumerate(values if isinstance(values, list) else [values]):
            if math.isfinite(value):
                continue
            because = _missing_label_reason(name, value, problem) or undefined.reason(
                name, value, classes
            )
            if because is None:
                failures.append(
                    f"{name} {value}"
                    + (f" of replicate {r + 1}" if isinstance(values, list) else "")
                )
            elif name not in excused.setdefault(because, []):
                excused[because].append(name)
    if failures:
        more = f" and {len(failures) - MOST_NAMED} more" if len(failures) > MOST_NAMED else ""
        return Check(FINITE, False, ", ".join(failures[:MOST_NAMED]) + more)
    details = [
        f"{len(scores)} scores",
        *(f"{_names(names)} without a value: {why}" for why, names in excused.items()),
    ]
    return Check(FINITE, True, "; ".join(details))


def _names(names: list[str]) -> str:
    text = ", ".join(names[:MOST_NAMED])
    return f"{text} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else text


def _has_classes(problem: object) -> bool:
    """True if what is predicted are class numbers, which can have probability 0."""
    if isinstance(problem, Supervised):
        return problem.target != "real"
    return isinstance(problem, Sequence) and isinstance(problem.system, CategoricalSeries)


def _missing_label_reason(name: str, value: float, problem: object) -> str | None:
    """The reason of a score of labels that is NaN for want of them: its task has no test label, or
    no task has one."""
    if not isinstance(problem, Supervised) or not math.isnan(value):
        return None
    labelled = problem.test.mask.any(0).tolist()
    bare, _, part = name.partition("/")
    if not any(labelled) and bare.removeprefix("robust_") in LABEL_SCORES:
        return "no test row has a label"
    tasks = (
        task
        for task, is_labelled in zip(problem.task_names, labelled, strict=False)
        if not is_labelled
    )
    if any(part == task or part.startswith(f"{task}/") for task in tasks):
        return "no test row has a label of the task"
    return None


def _worst(scores: Scores, name: str, largest: bool) -> float:
    """The worst of all replicates, NaN if one has none."""
    values = scores[name] if isinstance(scores[name], list) else [scores[name]]
    return math.nan if any(math.isnan(v) for v in values) else (max if largest else min)(values)


def draws_checks(draws: HoldsDraws, scores: Scores) -> list[Check]:
    """Checks of chains or weighted draws by the scores of ``diagnostics.convergence``."""
    chains = draws.n_chains // draws.replicates
    n = draws.n_draws
    if draws.log_weights is not None:
        return [_check_pareto_k(scores, chains * n)]
    checks = []
    if n < FEWEST_DRAWS:
        detail = f"{n} draws a chain, {FEWEST_DRAWS} needed"
        ess = f"ESS is above {limits.ESS_PER_CHAIN} a chain"
        checks += [Check(f"R̂ is below {limits.RHAT:g}", None, detail), Check(ess, None, detail)]
    else:
        nested = "rhat_nested" in scores
        first = draws.select_replicate(0).start
        groups = (diagnostics.count_superchains(first) if nested else None) or chains
        checks.append(
            _check_nested_rhat(draws, scores, groups)
            if nested
            else _check_rhat(draws, scores, chains)
        )
        checks += [
            _ess(draws, scores, name, kind, groups, n * chains // groups)
            for name, kind in (("ess", "bulk"), ("ess_tail", "tail"))
        ]
    if "e_bfmi" in scores:
        value = _worst(scores, "e_bfmi", largest=False)
        name = f"E-BFMI is above {limits.E_BFMI:g}"
        checks.append(
            Check(name, value > limits.E_BFMI, f"{value:.2f}, the smallest of {chains} chains")
        )
    if "divergences" in scores:
        value = _worst(scores, "divergences", largest=True)
        checks.append(
            Check("no transition diverges", value == 0, f"{value:g} of {chains * n:,} draws")
        )
    if "acceptance_rate" in draws.stats:
        least = (
            limits.HAMILTONIAN_ACCEPTANCE
            if "energy" in draws.stats
            else limits.METROPOLIS_ACCEPTANCE
        )
        value = float(draws.stats["acceptance_rate"].double().mean(1).min())
        checks.append(
            Check(
                "enough proposals are accepted",
                value >= least,
                f"{value:.2f} of the worst of {draws.n_chains} chains, {least:g} required",
            )
        )
    return checks


def _check_rhat(draws: HoldsDraws, scores: Scores, chains: int) -> Check:
    name = f"R̂ is below {limits.RHAT:g}"
    if "rhat" not in scores:
        return Check(name, None, "1 chain, 2 needed; raise inference.chains")
    value = _worst(scores, "rhat", largest=True)
    if math.isnan(value):
        return Check(name, False, STUCK_CHAINS_MESSAGE)
    worst_name = (
        ""
        if value < limits.RHAT
        else diagnostics.format_worst_coordinate(draws, diagnostics.split_rhat, value)
    )
    return Check(
        name,
        value < limits.RHAT,
        f"{value:.4g}{worst_name}, the largest, of {chains} chains{diagnostics.describe_constant_coordinates(draws)}",
    )


def _check_nested_rhat(draws: HoldsDraws, scores: Scores, groups: int) -> Check:
    """Check of superchains: R̂ of single chains needs longer ones."""
    name = f"nested R̂ is below {limits.RHAT_NESTED:g}"
    value = _worst(scores, "rhat_nested", largest=True)
    if math.isnan(value):
        return Check(name, False, STUCK_CHAINS_MESSAGE)
    worst_name = ""
    if value >= limits.RHAT_NESTED:
        statistic = partial(diagnostics.nested_rhat, superchains=groups)
        worst_name = diagnostics.format_worst_coordinate(draws, statistic, value)
    rest = diagnostics.describe_constant_coordinates(draws)
    each = draws.n_chains // draws.replicates // groups
    detail = f"{value:.4g}{worst_name}, the largest, of {groups} superchains of {each} chains{rest}"
    return Check(name, value < limits.RHAT_NESTED, detail)


def _ess(draws: HoldsDraws, scores: Scores, name: str, which: str, chains: int, n: int) -> Check:
    """Check of ESS by chain, or by superchain where there are fewer of these."""
    unit = "chain" if chains * draws.replicates == draws.n_chains else "superchain"
    title = f"{which} ESS is above {limits.ESS_PER_CHAIN} a {unit}"
    if name not in scores:
        return Check(title, None, "not among the scores")
    total = _worst(scores, name, largest=False)
    if math.isnan(total):
        return Check(title, False, STUCK_CHAINS_MESSAGE)
    value = total / chains
    enough = value > limits.ESS_PER_CHAIN
    where = (
        ""
        if enough
        else diagnostics.format_worst_coordinate(
            draws, diagnostics.bulk_ess if name == "ess" else diagnostics.tail_ess, total
        )
    )
    return Check(title, enough, f"{value:.4g}{where}, the smallest, of {n:,} draws a {unit}")


def _check_pareto_k(scores: Scores, n: int) -> Check:
    name = "Pareto k̂ of the weights is below its limit"
    if "pareto_k" not in scores:
        return Check(name, None, f"{n} weights are too few")
    value = _worst(scores, "pareto_k", largest=True)
    most = limits.pareto_k(n)
    return Check(name, value < most, f"{value:.2f}, below {most:.2f} asked of {n:,} weights")


def _recorded_values(trace: Trace, name: str) -> list[list[float]]:
    """Values recorded under a name, a number for each replicate."""
    values = [record[name] for _, record in trace if name in record]
    return [value if isinstance(value, list) else [value] for value in values]


def particle_checks(trace: Trace, posterior: object = None) -> list[Check]:
    """Check of a particle filter's effective sample size at every time.

    For a posterior without it, as from an early record, only recorded times are checked.
    An exact filter has no such check.
    """
    ess = posterior.ess if isinstance(posterior, Filtered | SmoothedSeries) else None
    if ess is not None:
        values = ess.double().cpu().numpy().T
        times = list(range(1, ess.shape[1] + 1))
    else:
        values = np.array(_recorded_values(trace, "ess"))
        times = [step for step, record in trace if "ess" in record]
    if not len(values):
        return []
    least = values.min(1)  # [T], of the worst replicate
    is_degenerate = least < limits.LEAST_ESS
    detail = f"smallest ESS {least.min():.3g}"
    if is_degenerate.any():
        detail += (
            f", below {limits.LEAST_ESS:g} at {is_degenerate.sum()} of "
            f"{len(is_degenerate)} recorded times, first t = {times[is_degenerate.argmax()]}"
        )
    else:
        detail += f" at t = {times[least.argmin()]}, of {len(is_degenerate)} recorded times"
    return [Check("no particle carries half of the weight", not is_degenerate.any(), detail)]


def observation_checks(posterior: object, problem: Problem) -> list[Check]:
    """Check that a filter that can ignore an observation follows some of them.

    A robust loss saturates where all observations are far off.  Particles with equal
    weights for any observation have an effective sample size that never changes.
    """
    ess = posterior.ess if isinstance(posterior, Filtered | SmoothedSeries) else None
    weight = posterior.weight if isinstance(posterior, Filtered) else None
    if ess is not None:
        # the number of particles where some time has equal weights: a whole number
        most = ess.amax(1, keepdim=True)
        # [R, T]
        follows = (ess < most * (1 - limits.MIN_USED_SHARE)) | ~torch.isclose(
            most, most.round(), rtol=EQUAL, atol=0
        )
    elif weight is not None:
        follows = weight > limits.MIN_USED_SHARE
    else:
        return []
    if not isinstance(problem, Sequence) or follows.shape[1] < 2:
        return []
    is_observed = ~problem.missing[:, : follows.shape[1]].to(follows.device)
    number = (follows & is_observed).sum(1)
    n_observed = is_observed.sum(1)  # [R]
    worst = int((number / n_observed.clamp_min(1)).argmin())
    passed = bool(((number > 0) | (n_observed == 0)).all())
    detail = f"{int(number[worst])} of {int(n_observed[worst])} observations change the weights"
    detail += f", the fewest of {len(n_observed)} replicates" if len(n_observed) > 1 else ""
    if not passed:
        detail += "; they lie too far off for this loss: check the prior and the scale of the data"
    return [Check("the filter follows its observations", passed, detail)]


def bound_check(values: list[list[float]]) -> Check:
    """Check that the bound no longer rises.

    Compares the second half of the last fifth of the recorded values with its first half.
    """
    name = "the bound rises no more"
    window = len(values) // 10
    if window < limits.BOUND_LINES:
        needed = 10 * limits.BOUND_LINES
        return Check(
            name,
            None,
            f"{len(values)} recorded values, {needed} needed; raise steps or lower record_every",
        )
    before = np.array(values[-2 * window : -window])
    after = np.array(values[-window:])  # [window, R]
    gain = after.mean(0) - before.mean(0)
    noise = np.sqrt((before.var(0, ddof=1) + after.var(0, ddof=1)) / window)
    relative = gain / np.abs(after.mean(0))
    rising = (relative > limits.BOUND_GAIN) & (gain > limits.BOUND_NOISE * noise)
    worst = int(np.argmax(relative))
    detail = f"{gain[worst]:+.4g} ({relative[worst]:+.2%}) ± {noise[worst]:.2g} over the last tenth"
    return Check(name, not rising.any(), detail)


def discriminator_check(values: list[list[float]]) -> Check:
    """Check that a discriminator still confuses its two classes.

    Uses the last tenth of the recorded values; where replicates are a dimension, the
    replicate with the least confused discriminator counts.
    """
    each = np.mean(values[-max(1, len(values) // 10) :], 0)  # [R]
    loss = float(each.min())
    suffix = f", the smallest of {len(each)} replicates" if len(each) > 1 else ""
    detail = f"loss {loss:.3g} over the last tenth{suffix}, chance is {2 * math.log(2):.3g}"
    saturated = loss < limits.DISCRIMINATOR_LOSS
    if saturated:
        detail += "; its KL is no estimate, compare inference.discriminator=none"
    return Check(
        f"the discriminator's loss is above {limits.DISCRIMINATOR_LOSS:g}", not saturated, detail
    )


def bias_check(seen: Measured, scores: Scores) -> Check:
    """Check that estimators marked unbiased agree in mean with the first wherever measured."""
    name = "gradients marked unbiased have one mean"
    marked = [label for label, unbiased in zip(seen.labels, seen.unbiased, strict=True) if unbiased]
    if seen.labels[0] not in marked:
        return Check(
            name, None, f"the first, {seen.labels[0]}, is marked biased; put an unbiased one there"
        )
    p = [
        (float(value), f"{label} after {t} steps")
        for label in marked[1:]
        for t in seen.at
        if f"bias_p/{label}/{t}" in scores
        for value in np.atleast_1d(scores[f"bias_p/{label}/{t}"])
    ]
    if not p:
        return Check(name, None, "no other was measured")
    smallest, worst = min(p)
    corrected = min(1.0, smallest * len(p))
    return Check(
        name,
        corrected > limits.BIAS_P,
        f"smallest p {corrected:.2g}, corrected for {len(p)}: {worst}",
    )


def step_check(
    problem: Problem, inference: GradientResponsiveMethod[Any], state: Chains, rng: Rng
) -> Check:
    """The largest step since draws are kept against the curvature where the chains stand, on the
    last batch."""
    name = "steps are small against the curvature"
    model: LogJoint = state.model
    response = inference.response(state)
    assert isinstance(inference, Inference)
    _, batch = next(iter(problem.batches(inference.requires.batch_kind, rng, state.t - 1, state.t)))
    try:
        value = largest_response(model, state.theta, batch, response)
    except (RuntimeError, ConfigMismatchError) as error:  # the log joint is differentiable once
        return Check(name, None, f"no second derivative: {str(error).splitlines()[0]}")
    detail = f"step × curvature {value:.3g}, the path swings ever wider beyond {response.limit:.3g}"
    return Check(name, value < response.limit, detail)
