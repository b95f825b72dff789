"""Which parts fit each other, from the facts of their classes and their configuration: refused
before any data are read."""

from __future__ import annotations

from components.contracts.attackers import Attacker, Contamination, Evasion, Injection
from components.contracts.roles import Component, Dataset, Inference, Model
from runner.compose.build import nested_components
from runner.compose.fit.attacker_pairs import check_attacker
from runner.compose.fit.incompatible import (
    IncompatibleError,
    kind_with_article,
    prefix_key_path,
)
from runner.compose.fit.method_needs import check_gradients, check_needs
from runner.compose.fit.traits import check_traits


def check_pairs(
    dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuses parts that do not fit as they are configured; the offers of the error have not been
    tried.

    Raises:
        IncompatibleError: naming the pair.
    """
    check_model(dataset, model)
    # first: the requirements of an estimator are also requirements of the method that holds it
    check_gradients(inference, "inference", model)
    if unknown := model.assumptions() - dataset.simulates:
        raise IncompatibleError(
            f"model={model.name} assumes {', '.join(sorted(unknown))} of what made the data, "
            f"which dataset={dataset.name} is not",
            "model",
        )
    check_needs(dataset, model, inference)
    check_traits(dataset, inference, "inference")
    check_scored(dataset, model)
    if attacker is not None:
        check_attacker(attacker, "attacker", dataset, model)
        offered = attacker.offers if isinstance(attacker, Contamination) else frozenset()
        if lacking := ", ".join(sorted(model.requires.attacker_capabilities - offered)):
            raise IncompatibleError(
                f"model={model.name} needs {lacking} of whoever attacks, which attacker={attacker.name} lacks",
                "attacker",
            )
    if isinstance(attacker, Injection):
        _check_injection(attacker, inference)
    if isinstance(attacker, Evasion):
        _check_predicts(inference, dataset, f"attacker={attacker.name} changes what is predicted")
    check_nested_components(inference, "inference", dataset, model)
    if attacker is not None:
        check_nested_components(attacker, "attacker", dataset, model)
    if dataset.poses() == "game" and attacker is None:
        raise IncompatibleError(
            f"attacker: dataset={dataset.name} is a game and needs an adversary",
            "attacker",
        )
    has_own_attacker = any(
        isinstance(part, Attacker) for _, part in nested_components(inference, "inference")
    )
    if inference.requires.attacker and attacker is None and not has_own_attacker:
        raise IncompatibleError(
            f"attacker: inference={inference.name} trains against an attacker; choose one with attacker=…",
            "attacker",
        )


def _check_injection(attacker: Injection, inference: Inference) -> None:
    """Refuses a method that is no filter, or whose states have no gradient, by which every attack
    is judged.

    Raises:
        IncompatibleError: naming the method."""
    if not {"filtered_states"} <= inference.provides:
        raise IncompatibleError(
            f"attacker={attacker.name} leads a filter astray, which inference={inference.name} is not",
            "inference",
        )
    if not inference.differentiable:
        raise IncompatibleError(
            f"attacker={attacker.name} is judged by the gradient of a filter, and inference={inference.name} has none",
            "inference",
        )


def _check_predicts(inference: Inference, dataset: Dataset, why: str) -> None:
    """Refuses a method that makes no predictions where some are needed.

    Raises:
        IncompatibleError: naming the method."""
    if "predicts" not in inference.provides | inference.provides_by_kind.get(
        dataset.poses(), frozenset()
    ):
        raise IncompatibleError(
            f"{why}, and inference={inference.name} predicts nothing",
            "inference",
        )


def check_side_by_side(
    asked_for: bool, dataset: Dataset, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuses replicates side by side of parts that cannot have them so, and variants that are to
    be learnt otherwise.

    Raises:
        ConfigError: naming what cannot, and what could.
    """
    setting = "side_by_side=true"
    if not asked_for:
        several = ", ".join(inference.variants())
        raise IncompatibleError(
            f"inference={inference.name}: several posteriors ({several}) are learnt side by side; add {setting}, or ask for one"
        )
    if dataset.poses() != "supervised":
        raise IncompatibleError(
            f"{setting}: is for supervised data, and dataset={dataset.name} is "
            f"{kind_with_article(dataset.poses())} problem; leave it out"
        )
    if inference.side_by_side() is None:
        raise IncompatibleError(
            f"{setting}: inference={inference.name} computes one replicate after the other; leave it out",
            "inference",
        )
    if isinstance(attacker, Evasion):
        raise IncompatibleError(
            f"{setting}: attacker={attacker.name} evades one posterior at a time, there would be one of each replicate; leave "
            "one of them out"
        )


def check_model(dataset: Dataset, model: Model) -> None:
    """Refuses a model that cannot read what a dataset holds, or holds one that cannot.

    Raises:
        IncompatibleError: naming what it cannot read.
    """
    kind = dataset.poses()
    target = dataset.target_kind()
    domains = " or ".join(sorted(model.requires.domains))
    refusals = {
        "kinds": f"model={model.name} does not fit dataset={dataset.name} "
        f"({kind_with_article(kind)} problem)",
        "domains": f"model={model.name} reads inputs that are {domains}, those of "
        f"dataset={dataset.name} are {dataset.domain}",
        "targets": f"model={model.name} has no likelihood for the {target} labels of "
        f"dataset={dataset.name}",
        "values": f"model={model.name} has no likelihood for the {dataset.holds()} values of "
        f"dataset={dataset.name}",
    }
    if unmet := model.requires.find_unmet(dataset.data_facts()):
        raise IncompatibleError(refusals[unmet], "model")
    check_traits(dataset, model, "model")
    if target is not None and (misfit := model.labels_misfit(target)):
        setting, mend = misfit
        raise IncompatibleError(
            f"model.{setting}: the {target} labels of dataset={dataset.name} have none",
            "model",
            fix=f"model.{mend}",
        )
    for path, part in nested_components(model, "model"):
        if isinstance(part, Model):
            with prefix_key_path(path, model=path):
                check_model(dataset, part)


def check_scored(dataset: Dataset, model: Model) -> None:
    """Refuses a model that lacks what keys of the data set ask to score it by.

    Raises:
        IncompatibleError: naming the key."""
    requests = dataset.asked_by_keys()
    for capability in sorted(requests.keys() - model.capabilities()):
        setting, mend = requests[capability]
        raise IncompatibleError(
            f"{setting} needs {capability}, which model={model.name} lacks",
            "model",
            fix=mend,
        )


def check_nested_components(
    component: Component, where: str, dataset: Dataset, model: Model
) -> None:
    """Refuse components inside a component that do not fit.

    If it holds both a model and an inference method, these form a run of their own on the
    same data, and an attacker next to them attacks that model.

    Raises:
        IncompatibleError: naming the key that holds it.
    """
    parts = list(nested_components(component, where))
    models = [(path, part) for path, part in parts if isinstance(part, Model)]
    methods = [(path, part) for path, part in parts if isinstance(part, Inference)]
    victim = models[0][1] if models else model
    for path, part in parts:
        if isinstance(part, Attacker):
            check_attacker(part, path, dataset, victim)
        if isinstance(part, Inference) and isinstance(component, Inference) and not models:
            with prefix_key_path(path, inference=path):
                check_needs(dataset, model, part)
        check_nested_components(part, path, dataset, victim)
    for (path, inner_model), (by, method) in zip(models, methods, strict=False):
        with prefix_key_path(path, model=path, inference=by):
            check_pairs(dataset, inner_model, method, None)
            if isinstance(component, Evasion):
                _check_predicts(method, dataset, "a surrogate has to predict")
