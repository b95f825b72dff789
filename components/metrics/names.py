"""Names of the scores that a run can have, before it has any, and the direction of each: the one
table that searches, studies and reports read.

Of "nlpp/task 2" the name is "nlpp"; what follows the stroke is a task, a parameter or a size of an
attack. A score of ``UNDIRECTED_SCORES`` is a fact (a mean, a number of clusters) or has a target
between two ends (a coverage): no search can follow it unless the user says where to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:  # callers that only ask for a direction need no torch
    from components.contracts.problems import Kind, Target

T = TypeVar("T")

_DRAWS = {
    "ess",
    "ess_tail",
    "rhat",
    "rhat_nested",
    "divergences",
    "acceptance",
    "e_bfmi",
    "weight_ess",
    "log_relative_variance",
    "pareto_k",
}
_DECISIONS = {
    "log_evidence",
    "expected_loss",
    "coverage",
    "penalty",
    "ridge_risk",
    "worst_risk",
    "bayes_risk",
    "dominates",
}
_GRADIENTS = {
    "trace",
    "trace_ratio",
    "norm_ratio",
    "minibatch_share",
    "bias",
    "bias_p",
    "bias_z",
    "total",
    "passes",
    "total_passes",
    "total_seconds",
    "milliseconds",
    "variance_seconds",
    "best_per_row",
    "best_context_free",
    "correction",
    "correction_q95",
    "kl",
    "kl_by_q",
    "bound_denominator",
}
_SALES = {
    "mape",
    "mape_zeros",
    "cumulative",
    "cumulative_observed",
    "one_ahead",
    "effect",
    "inclusion",
    "long_run",
    "true_found",
    "idle_kept",
    "per_unit",
    "per_unit_sd",
    "inputs_true_found",
    "inputs_idle_kept",
    "plan_gain",
    "plan_sd",
    "plan_gap",
    "plan_share",
    "equal_share",
    "plan_realised",
    "plan_excess",
    "plan_over_promised",
    "plan_coverage90",
    "plan_width90",
}
_DECISION_LOSSES = {"decision_loss", "decision_expected_loss", "decision_loss_plain"}
_REAL_SCORES = {"rmse", "crps", "coverage90", "error", "width90"}
_CLASS_SCORES = {"accuracy", "ece", "auc"}  # of supervised problems
_STOPPING = {"type_1_error", "tosses", "p_value", "posterior_null"}
_SLOPES = {
    "slope",
    "slope_error",
    "slope_spread",
    "slope_exact",
    "exponent",
    "spread_of_error",
}
_CONTRACTION = {"radius", "hellinger", *_SLOPES}
_PAC = {"pac_bound", "gibbs_risk", "gibbs_risk_train", "pac_kl"}
_SCORES_BY_KIND: dict[Kind, set[str]] = {
    "supervised": {"nlpp", "log_likelihood"}
    | _CLASS_SCORES
    | _REAL_SCORES
    | {
        "nelbo",
        "objective",
        "nlpp_of_law",
        "both_branches",
        "rhat_predictions",
        "modes",
        "largest_weight",
        "mean",
        "sd",
        "per_unit",
        "per_unit_sd",
        "flat_share",
        "log_slope_mean",
        "log_slope_sd",
    }
    | _DRAWS
    | _DECISIONS
    | _DECISION_LOSSES
    | _PAC
    | _CONTRACTION
    | _GRADIENTS,
    "unlabelled": {
        "nlpp",
        "ari",
        "clusters",
        "n_clusters",
        "mean",
        "sd",
        "objective",
        "nelbo",
        "nll_bound",
        "nll_ais",
        "ais_gain",
        "ais_acceptance",
        "weight_ess",
        "pareto_k",
        "perplexity",
        "neighbour_error",
        "amortisation_gap",
        "approximation_gap",
        "gap_rmse",
        "gap_nlpp",
        "gap_crps",
        "gap_coverage90",
    }
    | {"perplexity_truth", "topic_distance", "coherence", "elbo", "elbo_spread"}
    | _DRAWS
    | _DECISIONS
    | _STOPPING
    | {"total_variation", "hellinger", "slope", "exponent"}
    | _GRADIENTS,
    "density": _DRAWS
    | {
        "mean",
        "sd",
        "second_moment",
        "error_mean",
        "error_sd",
        "error_mean_sd",
        "error_second_moment",
        "error_mean_of_a_chain",
    }
    | {"z_max", "ksd", "kl", "nelbo", "objective"}
    | {"divergence", "mass", "q_mean", "q_sd"},
    "sequence": {
        "nmse",
        "nmse_median",
        "coverage90",
        "medae",
        "log_evidence",
        "mean",
        "sd",
        "ess",
        "ess_tail",
        "rhat",
        "missing",
        "error",
        "weight_ess",
    }
    | {
        "log_likelihood",
        "accuracy",
        "predictive_entropy",
        "log_score",
        "mae",
        "mase",
        "interval_score",
        "interval_score_2sd",
    }
    | {"coverage95", "crps", "nelbo", "objective"}
    | {"beta_selected", "beta_of_replicate", "beta_most_often"}
    | {"rmse_f", "rmse_states", "coverage90_f"}
    | _SALES,
    "game": {
        "reward",
        "recent_reward",
        "total_reward",
        "reward_opponents",
        "recent_reward_opponents",
        "social_utility",
    }
    | {"equilibria"}
    | {
        "recent_social_utility",
        "belief",
        "exploitability",
        "reward_sd",
        "first_action",
        "first_action_opponents",
    },
}
_ATTACKED_SCORES = {
    "robust_accuracy",
    "robust_nlpp",
    "robust_ece",
    "robust_entropy",
    "attack_success",
    "entropy",
    "mean_robust_accuracy",
    "attack_checks_passed",
    "worst_case_accuracy",
    "certified_accuracy",
    "mean_certified_accuracy",
    "certificate_gap",
    "abstained",
    "undefended_accuracy",
    "undefended_robust_accuracy",
    "target_reached",
}
_SPOOFED_SCORES = {
    "rmse",
    "robust_rmse",
    "robust_nmse",
    "random_rmse",
    "random_nmse",
    "doubling_budget",
    "doubled",
    "attack_checks_passed",
}


def score_names(kind: Kind, attacked: bool, target: Target | None = None) -> frozenset[str]:
    """Names of the scores for a kind of problem.

    Attacked inputs add the scores of a security evaluation. Supervised problems with a
    known ``target`` have none of the scores for other labels.
    """
    names = _SCORES_BY_KIND[kind] | (
        (_SPOOFED_SCORES if kind == "sequence" else _ATTACKED_SCORES) if attacked else set()
    )
    others = (
        set()
        if target is None or kind != "supervised"
        else _CLASS_SCORES
        if target == "real"
        else _REAL_SCORES
    )
    return frozenset(names - others)


ScoreDirection = Literal["higher", "lower"]

HIGHER_IS_BETTER = frozenset(
    {
        "accuracy",
        "auc",
        "log_likelihood",
        "log_evidence",
        "log_score",
        "elbo",
        "both_branches",
        "robust_accuracy",
        "mean_robust_accuracy",
        "worst_case_accuracy",
        "certified_accuracy",
        "mean_certified_accuracy",
        "undefended_accuracy",
        "undefended_robust_accuracy",
        "attack_checks_passed",
        "doubling_budget",
        "ess",
        "ess_tail",
        "weight_ess",
        "e_bfmi",
        "ess_per_second",
        "reward",
        "recent_reward",
        "total_reward",
        "social_utility",
        "recent_social_utility",
        "ari",
        "coherence",
        "true_found",
        "inputs_true_found",
        "plan_realised",
    }
)
LOWER_IS_BETTER = frozenset(
    {
        "nlpp",
        "nelbo",
        "nll_bound",
        "nll_ais",
        "neighbour_error",
        "amortisation_gap",
        "approximation_gap",
        "gap_rmse",
        "gap_nlpp",
        "gap_crps",
        "rmse",
        "rmse_f",
        "rmse_states",
        "mae",
        "mase",
        "mape",
        "crps",
        "ece",
        "nmse",
        "nmse_median",
        "medae",
        "interval_score",
        "interval_score_2sd",
        "perplexity",
        "topic_distance",
        "robust_nlpp",
        "robust_ece",
        "robust_rmse",
        "robust_nmse",
        "attack_success",
        "certificate_gap",
        "abstained",
        "target_reached",
        "rhat",
        "rhat_nested",
        "rhat_predictions",
        "divergences",
        "pareto_k",
        "log_relative_variance",
        "error",
        "error_mean",
        "error_sd",
        "error_mean_sd",
        "error_second_moment",
        "error_mean_of_a_chain",
        "z_max",
        "ksd",
        "kl",
        "kl_by_q",
        "divergence",
        "distance",
        "distance_mean",
        "distance_sd",
        "distance_tv",
        "exploitability",
        "expected_loss",
        *_DECISION_LOSSES,
        "pac_bound",
        "gibbs_risk",
        "gibbs_risk_train",
        "total_variation",
        "hellinger",
        "ridge_risk",
        "worst_risk",
        "bayes_risk",
        "radius",
        "type_1_error",
        "idle_kept",
        "inputs_idle_kept",
        "plan_sd",
        "plan_gap",
        "trace",
        "trace_ratio",
        "norm_ratio",
        "bias",
        "bias_z",
        "total",
        "passes",
        "total_passes",
        "total_seconds",
        "milliseconds",
        "milliseconds_per_step",
        "variance_seconds",
        "best_per_row",
        "best_context_free",
        "correction",
        "correction_q95",
        "cost",
    }
)
UNDIRECTED_SCORES = frozenset(
    {
        "width90",
        "objective",  # objective of a method that has no bound: methods do not share it
        "coverage",
        "coverage90",
        "coverage90_f",
        "coverage95",
        "acceptance",
        "ais_acceptance",
        "entropy",
        "robust_entropy",
        "predictive_entropy",
        "flat_share",
        "log_slope_mean",
        "log_slope_sd",
        "nlpp_of_law",
        "perplexity_truth",
        "mean",
        "sd",
        "second_moment",
        "mass",
        "q_mean",
        "q_sd",
        "penalty",
        "dominates",
        "pac_kl",
        *_SLOPES,
        "minibatch_share",
        "bias_p",
        "bound_denominator",
        "clusters",
        "n_clusters",
        "ais_gain",
        "elbo_spread",
        "tosses",
        "p_value",
        "posterior_null",
        "missing",
        "beta_selected",
        "beta_of_replicate",
        "beta_most_often",
        "cumulative",
        "cumulative_observed",
        "effect",
        "inclusion",
        "long_run",
        "plan_gain",
        "plan_excess",
        "plan_over_promised",
        "plan_coverage90",
        "gap_coverage90",
        "plan_width90",
        "plan_share",
        "equal_share",
        "random_rmse",
        "random_nmse",
        "doubled",
        "reward_opponents",
        "recent_reward_opponents",
        "equilibria",
        "belief",
        "reward_sd",
        "first_action",
        "first_action_opponents",
        "per_unit",
        "per_unit_sd",
        "mape_zeros",
        "modes",
        "largest_weight",
    }
)
PREFIXES = frozenset(
    {"one_ahead", "late"}
)  # "one_ahead/mape" is mape of other forecasts, "late/nelbo" of late evaluations


# "cost/gradients" is a count of training, which every run has next to its scores, and
# "cost/attack_gradients" of the attack in its last evaluation
COST_PREFIX = "cost/"


def without_costs(scores: Mapping[str, T]) -> dict[str, T]:
    """The scores of a run alone, as its screens, tables and searches show them."""
    return {name: value for name, value in scores.items() if not name.startswith(COST_PREFIX)}


def base_name(score: str) -> str:
    """The name of a score without its task, parameter, member or size of an attack: "nlpp" of
    "nlpp/task 2"."""
    first, _, rest = score.partition("/")
    return base_name(rest) if first in PREFIXES and rest else first


def better(score: str) -> ScoreDirection | None:
    """``higher`` or ``lower``; None: neither is better, or nobody knows the score."""
    name = base_name(score)
    return "higher" if name in HIGHER_IS_BETTER else "lower" if name in LOWER_IS_BETTER else None
