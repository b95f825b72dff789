"""What a method and its estimators of gradients ask of a dataset and a model, as configured."""

from __future__ import annotations

import re
from collections.abc import Set

from components.contracts.roles import Component, Dataset, Gradient, Inference, Model
from runner.compose.build import nested_components
from runner.compose.fit.incompatible import SETTINGS, IncompatibleError, kind_with_article


def check_needs(dataset: Dataset, model: Model, inference: Inference) -> None:
    """Refuses an inference method that asks of the model, as both are configured, what it does not
    offer.

    Raises:
        IncompatibleError: naming what is lacking and, where a key asks for it, the key.
    """
    kind = dataset.poses()
    offered = model.capabilities()
    if kind not in inference.requires.kinds:
        raise IncompatibleError(
            f"inference={inference.name} has no use for {kind_with_article(kind)} problem",
            "inference",
        )
    target = dataset.target_kind()
    if inference.requires.targets is not None and target not in {None, *inference.requires.targets}:
        needed = " or ".join(sorted(inference.requires.targets))
        raise IncompatibleError(
            f"inference={inference.name} needs {needed} labels, those of dataset={dataset.name} are "
            f"{target}",
            "inference",
        )
    if target is not None and (misfit := inference.labels_misfit(target)):
        setting, mend = misfit
        raise IncompatibleError(
            f"inference.{setting}: needs other labels than the {target} ones of dataset={dataset.name}",
            fix=f"inference.{mend}",
        )
    lacks = (
        inference.requires.capabilities - offered
        or inference.required_capabilities(kind, offered) - offered
    )
    if not lacks:
        return
    fix = _settings_that_offer(model, lacks)
    suffix = " as configured" if lacks & model.offers_where.keys() else ""
    lacked = f"{', '.join(sorted(lacks))}, which model={model.name} lacks{suffix}"
    key_by_need = inference.asked_by_keys()
    if not lacks <= key_by_need.keys():
        raise IncompatibleError(f"inference={inference.name} needs {lacked}", "inference", fix=fix)
    keys = sorted({key_by_need[capability] for capability in lacks})
    values = dict(inference)
    key_values = {
        key: part.name if isinstance(part := values[key], Component) else part for key in keys
    }
    subject = " and ".join(f"inference.{key}={value}" for key, value in key_values.items())
    raise IncompatibleError(
        f"{subject} need{'s' if len(keys) == 1 else ''} {lacked}", "model", fix=fix
    )


def _settings_that_offer(model: Model, lacks: Set[str]) -> str:
    """Settings of a model that would offer all that is lacking; empty if there are none."""
    if not lacks <= model.offers_where.keys():
        return ""
    settings = {f"model.{model.offers_where[capability]}" for capability in lacks}
    # a setting of several keys may hold those of another
    words = {word for setting in settings for word in re.split(SETTINGS, setting)}
    return " ".join(sorted(words))


def check_gradients(inference: Inference, where: str, model: Model) -> None:
    """Refuses estimators of gradients that do not fit, of a method and of those that it holds.

    Raises:
        IncompatibleError: naming the key that holds one."""
    for path, part in nested_components(inference, where):
        if isinstance(part, Gradient):
            check_gradient(part, path, model, inference)
        elif isinstance(part, Inference):
            check_gradients(part, path, model)


def check_gradient(gradient: Gradient, where: str, model: Model, inference: Inference) -> None:
    """Refuses an estimator of gradients that asks more than the model offers, or than the module
    that an inference method makes of it has.

    Raises:
        IncompatibleError: naming what is lacking.
    """
    offered = inference.variational_capabilities() or model.capabilities()
    if lacking := gradient.requires.capabilities - offered:
        subject = (
            f"the q(θ) of inference={inference.name}"
            if inference.variational_capabilities()
            else f"model={model.name}"
        )
        others = [] if inference.variational_capabilities() else ["model"]
        raise IncompatibleError(
            f"{where}={gradient.name} needs {', '.join(sorted(lacking))}, which {subject} lacks",
            where,
            *others,
        )
