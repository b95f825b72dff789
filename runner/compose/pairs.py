"""Stage 4, check: compatibility of the configured components of a run, before any data are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from components.contracts.attackers import Attacker, Contamination, Evasion, Injection
from components.contracts.plugins.protocols import list_words
from components.contracts.posteriors import FilteredStates, Predicts
from components.contracts.requirements import ChoiceFacts, Requirements, misfit
from components.contracts.roles import Component, Dataset, Gradient, Inference, Model
from runner.catalogue.class_description import nested_roles
from runner.compose.expand import each
from runner.errors import UnfitError

SETTINGS = r" (?=\w+\.\w+=)"  # pattern of the separator of two settings


def check_pairs(
    dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuse incompatible components; the fixes in the error have not been tried.

    Raises:
        UnfitError: two components are incompatible.
    """
    facts = run_facts(dataset, model)
    check_labels(dataset, model, "model")
    # first, because a method inherits the requirements of its gradient estimator
    _check_gradients(inference, "inference", inference, facts)
    if why := misfit(facts, replace(model.requires, simulated=model.assumptions())):
        raise UnfitError(f"model={model.name}{why}", "model")
    check_labels(dataset, inference, "inference")
    _check_capabilities(dataset, model, inference)
    for capability, (setting, mend) in dataset.asked_by_keys().items():
        if why := misfit(facts, Requirements(capabilities={capability})):
            raise UnfitError(f"{setting}{why}", "model", fix=mend)
    if attacker is not None:
        _check_attacked(attacker, dataset, model, inference)
    _check_nested_components(inference, "inference", dataset, model)
    has_own_attacker = any(
        isinstance(part, Attacker) for _, part in nested_components(inference, "inference")
    )
    if attacker is None and dataset.problem_kind() == "game":
        raise UnfitError(
            f"attacker: dataset={dataset.name} is a game and requires an adversary", "attacker"
        )
    if attacker is None and inference.requires.attacker and not has_own_attacker:
        raise UnfitError(
            f"attacker: inference={inference.name} trains against an attacker; choose one with attacker=…",
            "attacker",
        )


def run_facts(dataset: Dataset, model: Model) -> ChoiceFacts:
    """Facts about the dataset and the model of a run, as configured."""
    return dataset.data_facts()._replace(
        simulates=dataset.simulates, model=f"model={model.name}", offers=model.capabilities()
    )


def check_labels(dataset: Dataset, component: Component, where: str) -> None:
    """Refuse a setting of a component, or of a nested model, that does not support the labels.

    Raises:
        UnfitError: a setting requires other labels.
    """
    target = dataset.target_kind()
    if target is not None and (setting := component.labels_misfit(target)):
        raise UnfitError(
            f"{where}.{setting[0]}: does not support the {target} labels of dataset={dataset.name}",
            *([where] if isinstance(component, Model) else []),
            fix=f"{where}.{setting[1]}",
        )
    for path, part in nested_components(component, where):
        if isinstance(part, Model) and isinstance(component, Model):
            check_labels(dataset, part, path)


def _check_capabilities(dataset: Dataset, model: Model, inference: Inference) -> None:
    """Refuse a method that requires capabilities that the model lacks, both as configured.

    Raises:
        UnfitError: capabilities are missing; the message gives the key that requires them.
    """
    offered = model.capabilities()
    needs = replace(
        inference.requires,
        capabilities=inference.required_capabilities(dataset.problem_kind(), offered),
        capabilities_by_kind={},
        alternatives_by_kind={},
    )
    facts = run_facts(dataset, model)
    why = misfit(facts, needs)
    if not why:
        return
    lacks = needs.unmet_capabilities(facts)
    suffix = " as configured" if lacks & model.offers_where.keys() else ""
    # settings that would add all missing capabilities; settings of several keys may overlap
    settings = {
        word
        for capability in lacks & model.offers_where.keys()
        for word in re.split(SETTINGS, f"model.{model.offers_where[capability]}")
    }
    fix = " ".join(sorted(settings)) if lacks <= model.offers_where.keys() else ""
    key_by_need = inference.asked_by_keys()
    subject = f"inference={inference.name}"
    if not lacks or not lacks <= key_by_need.keys():
        raise UnfitError(f"{subject}{why}{suffix}", "inference", fix=fix)
    values = {
        key: value.name if isinstance(value, Component) else value for key, value in inference
    }
    keys = sorted({key_by_need[capability] for capability in lacks})
    choices = [f"inference.{key}={values[key]}" for key in keys]
    subject = choices[0] if len(keys) == 1 else f"{subject} with {' and '.join(choices)}"
    raise UnfitError(f"{subject}{why}{suffix}", "model", fix=fix)


def _check_gradients(
    holder: Inference | Gradient, where: str, inference: Inference, facts: ChoiceFacts
) -> None:
    """Refuse gradient estimators, nested ones included, with requirements that neither the model
    nor its variational distribution meets.

    Args:
        holder: the method, or an estimator with nested ones.
        where: key of the holder.
        inference: the method.
        facts: the dataset and the model.

    Raises:
        UnfitError: capabilities are missing; the message gives the estimator's key."""
    made = inference.variational_capabilities()
    module = f"the q(θ) of inference={inference.name}"
    offered = facts._replace(model=module, offers=made) if made else facts
    for path, part in nested_components(holder, where):
        if isinstance(part, Inference):
            _check_gradients(part, path, part, facts)
        elif isinstance(part, Gradient):
            if why := misfit(offered, part.requires):
                keys = [path] if made else [path, "model"]
                raise UnfitError(f"{path}={part.name}{why}", *keys)
            _check_gradients(part, path, inference, facts)


def _check_attacked(
    attacker: Attacker, dataset: Dataset, model: Model, inference: Inference
) -> None:
    """Refuse a run's attacker that cannot attack its model and method.

    Raises:
        UnfitError: the attacker is incompatible with the model or the method.
    """
    choice = f"attacker={attacker.name}"
    method = f"inference={inference.name}"
    _check_attacker(attacker, "attacker", dataset, model)
    offered = attacker.offers if isinstance(attacker, Contamination) else frozenset()
    if lacking := model.requires.attacker_capabilities - offered:
        raise UnfitError(
            f"model={model.name} requires an attacker with {list_words(lacking)}, which {choice} lacks",
            "attacker",
        )
    if isinstance(attacker, Injection):
        # injections are scored by the gradient of the filtered states
        if FilteredStates not in inference.provides:
            raise UnfitError(f"{choice} attacks filters, but {method} is not a filter", "inference")
        if not inference.differentiable:
            raise UnfitError(
                f"{choice} requires the gradient of a filter, but {method} is not differentiable",
                "inference",
            )
    if isinstance(attacker, Evasion):
        _check_predicts(inference, dataset, f"{choice} attacks predictions")
    _check_nested_components(attacker, "attacker", dataset, model)


def _check_attacker(attacker: Attacker, where: str, dataset: Dataset, model: Model) -> None:
    """Refuse an attacker, chosen by the key ``where``, that cannot attack a model.

    Raises:
        UnfitError: the attacker and the model are incompatible.
    """
    if attacker.follows_gradient and not model.differentiable:
        raise UnfitError(
            f"{where}={attacker.name} requires a gradient, but model={model.name} is not differentiable",
            where,
        )
    is_binary = dataset.target_kind() == "binary"
    if is_binary and isinstance(attacker, Evasion) and attacker.minimised_criterion() == "dlr":
        raise UnfitError(
            f"{where}.criterion=dlr: requires three classes, but dataset={dataset.name} has two",
            fix=f"{where}.criterion=margin",
        )


def _check_predicts(inference: Inference, dataset: Dataset, why: str) -> None:
    """Refuse a method without predictions where predictions are needed.

    Raises:
        UnfitError: the method makes no predictions; the message names the method."""
    if Predicts not in inference.provided(dataset.problem_kind()):
        raise UnfitError(f"{why}, and inference={inference.name} predicts nothing", "inference")


def _check_nested_components(
    component: Component, where: str, dataset: Dataset, model: Model
) -> None:
    """Refuse incompatible nested components.

    A component with both a model and an inference method trains the model on the same data,
    and an attacker next to them attacks that model.

    Raises:
        UnfitError: a nested component is incompatible; the message gives its key.
    """
    parts = list(nested_components(component, where))
    models = [(path, part) for path, part in parts if isinstance(part, Model)]
    methods = [(path, part) for path, part in parts if isinstance(part, Inference)]
    victim = models[0][1] if models else model
    for path, part in parts:
        if isinstance(part, Attacker):
            _check_attacker(part, path, dataset, victim)
        if isinstance(part, Inference) and isinstance(component, Inference) and not models:
            with prefix_key_path(path, inference=path):
                check_labels(dataset, part, "inference")
                _check_capabilities(dataset, model, part)
        _check_nested_components(part, path, dataset, victim)
    for (path, inner_model), (by, method) in zip(models, methods, strict=False):
        with prefix_key_path(path, model=path, inference=by):
            check_pairs(dataset, inner_model, method, None)
            if isinstance(component, Evasion):
                _check_predicts(method, dataset, "a surrogate requires predictions")


def nested_components(component: Component, where: str) -> Iterator[tuple[str, Component]]:
    """Components directly inside a component, each with its key."""
    values = dict(component)
    for key in nested_roles(type(component)):
        yield from (
            (path, part) for path, part in each(values[key], f"{where}.{key}") if part is not None
        )


@contextmanager
def prefix_key_path(path: str, **keys: str) -> Iterator[None]:
    """Context that puts the path of a nested component before the keys in its errors.

    ``keys`` maps roles to the keys that hold them."""
    try:
        yield
    except UnfitError as error:
        # a part's keys replace the run's keys; keys without a part are omitted
        inner = [keys.get(key, key) for key in error.keys if key in keys or "." in key]
        raise UnfitError(f"{path}: {error.problem}", *inner) from None
