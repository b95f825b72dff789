"""A command that runs a component: its experiment, or another one in which it takes the place of a
component of its role."""

from __future__ import annotations

from functools import cache
from typing import Any

from components import registry
from runner.catalogue.declarations import catalogue
from runner.catalogue.list_and_show import describe, options
from runner.catalogue.partners import partners
from scripts.results_figures import about, read_yaml_of

# These read files of the user's, or take a network or an environment as an argument.
NEEDS_FILES = {
    ("dataset", "csv"),
    ("dataset", "csv_series"),
    ("dataset", "images"),
    ("dataset", "log_density"),
    ("dataset", "numpyro"),
    ("dataset", "pettingzoo"),
    ("dataset", "posteriordb_stan"),
    ("dataset", "pymc"),
    ("dataset", "stan"),
    ("dataset", "texts"),
    ("dataset", "word_counts"),
    ("model", "gpytorch"),
    ("model", "module"),
    ("model", "roberta"),
    ("model", "state_dict"),
    ("attacker", "replayed"),
}
# Components that fit no experiment as it is: the experiment and all that has to change in it.
BY_HAND = {
    ("model", "cnn"): "digits_fgsm model=cnn",
    ("model", "contaminated_ssm"): (
        "robust_parameters model=contaminated_ssm inference.filter=bootstrap_filter"
    ),
    ("model", "logistic_lasso"): "spam_attacked model=logistic_lasso",
    ("model", "lstm"): "text_nets model=lstm",
    ("model", "matern_regression"): "posterior_concentration",
    ("model", "multinomial_naive_bayes"): "text_nets model=multinomial_naive_bayes inference=fit",
    ("model", "ridge"): "four_statisticians model=ridge inference=fit",
    ("model", "tfidf_logistic"): "text_nets model=tfidf_logistic inference=fit",
    ("attacker", "one_pixel"): "digits_fgsm attacker=one_pixel",
    ("inference", "adversarial_training"): "digits_security inference=adversarial_training",
    ("inference", "auxiliary_filter"): (
        "stochastic_volatility inference=auxiliary_filter inference.stabiliser=0"
    ),
    ("inference", "beta_auxiliary_filter"): (
        "stochastic_volatility inference=beta_auxiliary_filter inference.stabiliser=0"
    ),
    ("inference", "gibbs"): "cavi_probit inference=gibbs",
    ("inference", "guided_filter"): "air_quality inference=guided_filter",
    ("inference", "ksivi"): (
        "funnel_vis inference=ksivi inference.kernel=imq inference.n_samples=100"
    ),
    ("inference", "laplace"): "aadm_big inference=laplace model.prior_std=1.0",
    ("inference", "lda_collapsed_gibbs"): "topics_bars inference=lda_collapsed_gibbs steps=400",
    ("inference", "mala"): "moe inference=mala steps=4000",
    ("inference", "mc_dropout_alpha"): (
        "aadm_big inference=mc_dropout_alpha model.prior_std=1.0 model.dropout=0.05"
    ),
    ("inference", "random_walk_mh"): "moe inference=random_walk_mh steps=8000",
    ("inference", "swag"): "digits_fgsm inference=swag",
    ("attacker", "autoattack"): "digits_fgsm attacker=autoattack",
    ("gradient", "arms"): "dvae_dynamic inference.gradient=arms inference.n_samples=2",
    ("gradient", "combined_cv"): "cv_logistic inference.gradient=combined_cv",
    ("gradient", "sarah"): "cv_dgp inference.gradient=sarah",
    ("gradient", "svrg"): "cv_dgp inference.gradient=svrg",
    ("gradient", "double_cv"): "dvae_dynamic inference.gradient=double_cv inference.n_samples=2",
    ("gradient", "joint_cv"): "bbvi_logistic inference=gaussian_vi inference.gradient=joint_cv",
    ("gradient", "rao_blackwell"): "bbvi_logistic inference.gradient=rao_blackwell",
    ("gradient", "rodeo"): "dvae_dynamic inference.gradient=rodeo inference.n_samples=2",
    ("gradient", "vargrad_reference"): (
        "vae_digits inference.gradient=vargrad_reference inference.n_samples=4"
    ),
    ("gradient", "vimco"): "vae_digits inference.gradient=vimco inference.n_samples=4",
}


@cache
def parts_of(experiment: str) -> dict[str, str]:
    """Component of each role that an experiment chooses."""
    return dict(about(experiment)[1])


def _holds(experiment: str, role: str, name: str) -> bool:
    """True if an experiment has a gradient or a block."""
    holder, field = {"gradient": ("inference", "gradient"), "block": ("model", "blocks")}[role]
    content: dict[str, Any] = read_yaml_of("experiment", experiment) or {}
    value = (content.get(holder) or {}).get(field)
    parts = value if isinstance(value, list) else [value]
    return name in [part.get("name") if isinstance(part, dict) else part for part in parts]


@cache
def fitting(role: str, name: str) -> dict[str, tuple[str, ...]]:
    """Components of other roles that a component fits, by role."""
    pairs = partners(role, describe(role, name)[1])
    return {other: tuple(names.split(", ")) for other, names in pairs}


def option_of(role: str, name: str) -> str:
    """The override that chooses a component."""
    given = registry.ROLES[role].given
    return given.format(name) if given else f"{role}={name}"


def _hosts(role: str, name: str) -> list[str]:
    """Experiments that a component fits, those with one of its own family first."""
    entry = describe(role, name)[0]
    needed = fitting(role, name)
    family = {e.name for e in catalogue(role) if e.file.parent == entry.file.parent}

    def is_host(experiment: str) -> bool:
        parts = parts_of(experiment)
        fits = all(parts.get(other) in names for other, names in needed.items())
        measures = parts.get("inference") == "gradient_variance" and role != "dataset"
        return fits and not measures and (role != "attacker" or role in parts)

    def order(experiment: str) -> tuple[bool, bool, int, str]:
        parts = parts_of(experiment)
        return (
            parts.get(role) not in family,
            "attacker" in parts and role != "attacker",
            len(experiment),
            experiment,
        )

    return sorted(filter(is_host, options("experiment")), key=order)


def example_command(role: str, name: str) -> str | None:
    """A command that runs a component; None: it needs files of the user's."""
    if (role, name) in BY_HAND:
        return f"runner +experiment={BY_HAND[role, name]}"
    if role in registry.CHOSEN:
        experiments = [e for e in options("experiment") if parts_of(e).get(role) == name]
    else:
        experiments = [e for e in options("experiment") if _holds(e, role, name)]
    if experiments:
        # The experiment named after the component, or else the shortest name.
        best = min(experiments, key=lambda e: (name not in e, len(e), e))
        return f"runner +experiment={best}"
    if (role, name) in NEEDS_FILES:
        return None
    hosts = _hosts(role, name)
    return f"runner +experiment={hosts[0]} {option_of(role, name)}" if hosts else None
