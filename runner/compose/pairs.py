"""Stage 4, check: the components of a run fit each other as they are configured, before any data are
read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from components.contracts.attackers import Attacker, Contamination, Evasion, Injection
from components.contracts.plugins.protocols import list_words, to_word
from components.contracts.posteriors import FilteredStates, Predicts
from components.contracts.roles import Component, Dataset, Gradient, Inference, Model
from runner.catalogue.class_description import nested_roles
from runner.catalogue.parts import each
from runner.errors import UnfitError

SETTINGS = r" (?=\w+\.\w+=)"  # pattern of what is between two settings


def check_pairs(
    dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuses parts that do not fit as they are configured; the offers of the error have not been
    tried.

    Raises:
        UnfitError: naming the pair.
    """
    check_labels(dataset, model, "model")
    # first: the requirements of an estimator are also requirements of the method that holds it
    _check_gradients(inference, "inference", inference, model)
    if unknown := model.assumptions() - dataset.simulates:
        raise UnfitError(
            f"model={model.name} assumes {list_words(unknown)} of what made the data, "
            f"which dataset={dataset.name} is not",
            "model",
        )
    check_labels(dataset, inference, "inference")
    _check_capabilities(dataset, model, inference)
    for capability, (setting, mend) in dataset.asked_by_keys().items():
        if capability not in model.capabilities():
            raise UnfitError(
                f"{setting} needs {to_word(capability)}, which model={model.name} lacks",
                "model",
                fix=mend,
            )
    if attacker is not None:
        _check_attacked(attacker, dataset, model, inference)
    _check_nested_components(inference, "inference", dataset, model)
    has_own_attacker = any(
        isinstance(part, Attacker) for _, part in nested_components(inference, "inference")
    )
    if attacker is None and dataset.poses() == "game":
        raise UnfitError(
            f"attacker: dataset={dataset.name} is a game and needs an adversary", "attacker"
        )
    if attacker is None and inference.requires.attacker and not has_own_attacker:
        raise UnfitError(
            f"attacker: inference={inference.name} trains against an attacker; choose one with attacker=…",
            "attacker",
        )


def check_labels(dataset: Dataset, component: Component, where: str) -> None:
    """Refuse a setting of a component, or of a model inside it, that is for other labels.

    Raises:
        UnfitError: naming the key.
    """
    target = dataset.target_kind()
    if target is not None and (setting := component.labels_misfit(target)):
        raise UnfitError(
            f"{where}.{setting[0]}: needs other labels than the {target} ones of dataset={dataset.name}",
            *([where] if isinstance(component, Model) else []),
            fix=f"{where}.{setting[1]}",
        )
    for path, part in nested_components(component, where):
        if isinstance(part, Model) and isinstance(component, Model):
            check_labels(dataset, part, path)


def _check_capabilities(dataset: Dataset, model: Model, inference: Inference) -> None:
    """Refuses a method that requires capabilities that the model lacks, both as configured.

    Raises:
        UnfitError: naming the capabilities and, where a key asks for them, the key.
    """
    offered = model.capabilities()
    lacks = (
        inference.requires.capabilities - offered
        or inference.required_capabilities(dataset.poses(), offered) - offered
    )
    if not lacks:
        return
    suffix = " as configured" if lacks & model.offers_where.keys() else ""
    lacked = f"{list_words(lacks)}, which model={model.name} lacks{suffix}"
    # settings that would offer all that is lacking; one of several keys may hold those of another
    settings = {
        word
        for capability in lacks & model.offers_where.keys()
        for word in re.split(SETTINGS, f"model.{model.offers_where[capability]}")
    }
    fix = " ".join(sorted(settings)) if lacks <= model.offers_where.keys() else ""
    key_by_need = inference.asked_by_keys()
    if not lacks <= key_by_need.keys():
        raise UnfitError(f"inference={inference.name} needs {lacked}", "inference", fix=fix)
    values = {
        key: value.name if isinstance(value, Component) else value for key, value in inference
    }
    keys = sorted({key_by_need[capability] for capability in lacks})
    subject = " and ".join(f"inference.{key}={values[key]}" for key in keys)
    raise UnfitError(f"{subject} need{'s' if len(keys) == 1 else ''} {lacked}", "model", fix=fix)


def _check_gradients(
    holder: Inference | Gradient, where: str, inference: Inference, model: Model
) -> None:
    """Refuses estimators of gradients, of a method and of those inside it, that ask more than the
    model offers, or than the module that the method makes of it.

    Args:
        holder: the method, or an estimator in it that holds others.
        where: the key that holds it.
        inference: the method.
        model: the model.

    Raises:
        UnfitError: naming the key that holds one."""
    made = inference.variational_capabilities()
    for path, part in nested_components(holder, where):
        if isinstance(part, Inference):
            _check_gradients(part, path, part, model)
        elif isinstance(part, Gradient):
            lacks = part.requires.capabilities - (made or model.capabilities())
            if lacks:
                subject = (
                    f"the q(θ) of inference={inference.name}" if made else f"model={model.name}"
                )
                raise UnfitError(
                    f"{path}={part.name} needs {list_words(lacks)}, which {subject} lacks",
                    path,
                    *([] if made else ["model"]),
                )
            _check_gradients(part, path, inference, model)


def _check_attacked(
    attacker: Attacker, dataset: Dataset, model: Model, inference: Inference
) -> None:
    """Refuse a run's attacker that cannot attack its model and method.

    Raises:
        UnfitError: naming what cannot be attacked.
    """
    choice = f"attacker={attacker.name}"
    method = f"inference={inference.name}"
    _check_attacker(attacker, "attacker", dataset, model)
    offered = attacker.offers if isinstance(attacker, Contamination) else frozenset()
    if lacking := model.requires.attacker_capabilities - offered:
        raise UnfitError(
            f"model={model.name} needs {list_words(lacking)} of whoever attacks, which {choice} lacks",
            "attacker",
        )
    if isinstance(attacker, Injection):
        # every attack is judged by the gradient of the states
        if FilteredStates not in inference.provides:
            raise UnfitError(f"{choice} leads a filter astray, which {method} is not", "inference")
        if not inference.differentiable:
            raise UnfitError(
                f"{choice} is judged by the gradient of a filter, and {method} has none",
                "inference",
            )
    if isinstance(attacker, Evasion):
        _check_predicts(inference, dataset, f"{choice} changes what is predicted")
    _check_nested_components(attacker, "attacker", dataset, model)


def _check_attacker(attacker: Attacker, where: str, dataset: Dataset, model: Model) -> None:
    """Refuses an attacker, chosen by the key ``where``, that cannot attack a model.

    Raises:
        UnfitError: naming the key.
    """
    if attacker.follows_gradient and not model.differentiable:
        raise UnfitError(
            f"{where}={attacker.name} follows a gradient, and model={model.name} has none", where
        )
    is_binary = dataset.target_kind() == "binary"
    if is_binary and isinstance(attacker, Evasion) and attacker.follows() == "dlr":
        raise UnfitError(
            f"{where}.criterion=dlr: compares the first class with the third, dataset={dataset.name} has two",
            fix=f"{where}.criterion=margin",
        )


def _check_predicts(inference: Inference, dataset: Dataset, why: str) -> None:
    """Refuses a method that makes no predictions where some are needed.

    Raises:
        UnfitError: naming the method."""
    if Predicts not in inference.provided(dataset.poses()):
        raise UnfitError(f"{why}, and inference={inference.name} predicts nothing", "inference")


def _check_nested_components(
    component: Component, where: str, dataset: Dataset, model: Model
) -> None:
    """Refuse components inside a component that do not fit.

    If it holds both a model and an inference method, these form a run of their own on the
    same data, and an attacker next to them attacks that model.

    Raises:
        UnfitError: naming the key that holds it.
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
                _check_predicts(method, dataset, "a surrogate has to predict")


def nested_components(component: Component, where: str) -> Iterator[tuple[str, Component]]:
    """The components that one holds itself: the key that holds each, and the component."""
    values = dict(component)
    for key in nested_roles(type(component)):
        yield from (
            (path, part) for path, part in each(values[key], f"{where}.{key}") if part is not None
        )


@contextmanager
def prefix_key_path(path: str, **keys: str) -> Iterator[None]:
    """Puts the key that holds a part before what is wrong with it; ``keys`` are the keys that hold
    parts by their role."""
    try:
        yield
    except UnfitError as error:
        # keys of a part in the place of those of the run; keys without a part are left out
        inner = [keys.get(key, key) for key in error.keys if key in keys or "." in key]
        raise UnfitError(f"{path}: {error.problem}", *inner) from None
