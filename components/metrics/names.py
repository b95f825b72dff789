"""Names of the scores that a run can have, before it has any: a name asked for is looked up here.

Of "nlpp/task 2" the name is "nlpp"; what follows the stroke is a task, a parameter or a size of an attack."""

from __future__ import annotations

from components.contracts.problems import Kind

_DRAWS = {"ess", "ess_tail", "rhat", "divergences", "acceptance", "e_bfmi", "weight_ess", "pareto_k"}
_DECISIONS = {
    "log_evidence", "expected_loss", "coverage", "penalty", "ridge_risk", "worst_risk", "bayes_risk", "dominates",
}  # fmt: skip
_GRADIENTS = {
    "trace", "trace_ratio", "norm_ratio", "minibatch_share", "bias", "bias_p", "milliseconds", "variance_seconds",
    "best_per_row", "best_context_free", "correction", "correction_q95", "kl", "kl_by_q", "bound_denominator",
}  # fmt: skip
_SALES = {
    "mape", "cumulative", "cumulative_observed", "one_ahead", "effect", "inclusion", "long_run", "true_found", "idle_kept",
    "inputs_true_found", "inputs_idle_kept", "plan_gain", "plan_sd", "plan_gap", "plan_share", "equal_share",
}  # fmt: skip
_STOPPING = {"type_1_error", "tosses", "p_value", "posterior_null"}
_CONTRACTION = {"radius", "slope", "slope_error", "slope_spread", "slope_exact", "exponent", "spread_of_error"}
_OF: dict[Kind, set[str]] = {
    "supervised": {"accuracy", "nlpp", "log_likelihood", "ece", "auc", "rmse", "coverage90", "crps"}
    | {"nelbo", "objective", "nlpp_of_law", "both_branches", "rhat_predictions", "mean", "sd"}
    | _DRAWS
    | _DECISIONS
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
    }
    | {"perplexity_truth", "topic_distance", "coherence", "elbo", "elbo_spread"}
    | _DRAWS
    | _DECISIONS
    | _STOPPING
    | _GRADIENTS,
    "density": _DRAWS
    | {"mean", "sd", "second_moment", "error_mean", "error_sd", "error_second_moment", "error_mean_of_a_chain"}
    | {"z_max", "ksd", "kl", "nelbo", "objective"},
    "sequence": {
        "nmse",
        "nmse_median",
        "coverage90",
        "medae",
        "log_evidence",
        "mean",
        "sd",
        "ess",
        "rhat",
        "missing",
        "error",
        "weight_ess",
    }
    | {"log_likelihood", "accuracy", "predictive_entropy", "log_score", "mae", "interval_score", "interval_score_2sd"}
    | {"coverage95", "crps", "nelbo", "objective"}
    | {"beta_selected", "beta_of_replicate", "beta_most_often"}
    | _SALES,
    "game": {"reward", "recent_reward", "total_reward", "reward_opponents", "recent_reward_opponents", "social_utility"}
    | {"equilibria"}
    | {"recent_social_utility", "belief", "exploitability", "reward_sd", "first_action", "first_action_opponents"},
}
_ATTACKED = {
    "robust_accuracy", "robust_nlpp", "robust_ece", "robust_entropy", "attack_success", "entropy", "mean_robust_accuracy",
    "attack_checks_passed", "worst_case_accuracy", "undefended_accuracy", "undefended_robust_accuracy",
}  # fmt: skip
_SPOOFED = {
    "rmse",
    "robust_rmse",
    "robust_nmse",
    "random_rmse",
    "random_nmse",
    "doubling_budget",
    "doubled",
    "attack_checks_passed",
}


def score_names(kind: Kind, attacked: bool) -> frozenset[str]:
    """Names of the scores on a kind of problem; those of a security evaluation besides where inputs are attacked."""
    return frozenset(_OF[kind] | ((_SPOOFED if kind == "sequence" else _ATTACKED) if attacked else set()))
