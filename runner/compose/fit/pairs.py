"""Which parts fit each other, from the facts of their classes and their configuration: refused before any data are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from components import registry
from components.contracts.attackers import Attacker, Contamination, Evasion, Injection
from components.contracts.roles import Component, Dataset, Gradient, Inference, Model
from runner.compose.build import held
from runner.compose.fit.attacker_pairs import attackers_that_fit, check_attacker
from runner.compose.fit.would_fit import a_kind, listed, would_fit
from runner.mistakes import ConfigError


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Puts the key that holds a part before what is wrong with it."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def check_pairs(dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None) -> None:
    """Refuses parts that do not fit as they are configured, with the names that would work.

    Raises:
        ConfigError: naming the pair.
    """
    kind = dataset.kind
    check_model(dataset, model)
    check_gradients(inference, "inference", model)  # first: what an estimator asks, the method that holds it asks too
    if unknown := model.assumed() - dataset.simulates:
        names = listed(would_fit(Model, lambda m: kind in m.kinds and m.assumes <= dataset.simulates))
        raise ConfigError(
            f"model={model.name} assumes {', '.join(sorted(unknown))} of what made the data, "
            f"which dataset={dataset.name} is not; models that fit: {names}"
        )
    check_needs(dataset, model, inference)
    check_scored(dataset, model)
    if attacker is not None:
        check_attacker(attacker, "attacker", dataset, model)
        offered = attacker.offers if isinstance(attacker, Contamination) else frozenset()
        if lacking := ", ".join(sorted(model.needs_attacker - offered)):
            names = listed(would_fit(Contamination, lambda a: model.needs_attacker <= a.offers))
            raise ConfigError(
                f"model={model.name} needs {lacking} of whoever attacks, which attacker={attacker.name} lacks; attackers "
                f"that have it: {names}"
            )
    if isinstance(attacker, Injection) and not {"filtered_states"} <= inference.gives:
        names = listed(would_fit(Inference, lambda i: kind in i.kinds and "filtered_states" in i.gives))
        raise ConfigError(
            f"attacker={attacker.name} leads a filter astray, which inference={inference.name} is not; filters: {names}"
        )
    check_held(inference, "inference", dataset, model)
    if attacker is not None:
        check_held(attacker, "attacker", dataset, model)
    if kind == "game" and attacker is None:
        names = listed(attackers_that_fit(lambda a: kind in a.kinds))
        raise ConfigError(f"attacker: dataset={dataset.name} is a game and needs an adversary; there are: {names}")
    own = any(isinstance(part, Attacker) for _, part in held(inference, "inference"))
    if inference.attacks and attacker is None and not own:
        raise ConfigError(
            f"attacker: inference={inference.name} trains against an attacker; choose one with attacker=…"
        )


def check_side_by_side(asked_for: bool, dataset: Dataset, inference: Inference, attacker: Attacker | None) -> None:
    """Refuses replicates side by side of parts that cannot have them so, and variants that are to be learnt otherwise.

    Raises:
        ConfigError: naming what cannot, and what could.
    """
    asked = "side_by_side=true"
    if not asked_for:
        several = ", ".join(inference.variants())
        raise ConfigError(
            f"inference={inference.name}: several posteriors ({several}) are learnt side by side; add {asked}, or ask for one"
        )
    if dataset.kind != "supervised":
        raise ConfigError(
            f"{asked}: is for supervised data, and dataset={dataset.name} is {a_kind(dataset.kind)} problem; leave it out"
        )
    if inference.side_by_side() is None:
        able = listed(would_fit(Inference, lambda i: i.side_by_side is not Inference.side_by_side))
        raise ConfigError(
            f"{asked}: inference={inference.name} computes one replicate after the other; leave it out, or use one of: {able}"
        )
    if isinstance(attacker, Evasion):
        raise ConfigError(
            f"{asked}: attacker={attacker.name} evades one posterior at a time, there would be one of each replicate; leave "
            "one of them out"
        )


def check_model(dataset: Dataset, model: Model) -> None:
    """Refuses a model that cannot read what a dataset holds, or holds one that cannot.

    Raises:
        ConfigError: naming the models that can.
    """
    kind, target = dataset.kind, dataset.labelled()

    def reads_labels(m: type[Model]) -> bool:
        return target is None or m.targets is None or target in m.targets

    if kind not in model.kinds:
        names = listed(would_fit(Model, lambda m: kind in m.kinds))
        raise ConfigError(
            f"model={model.name} does not fit dataset={dataset.name} ({a_kind(kind)} problem); models that do: {names}"
        )
    if kind == "supervised" and dataset.domain not in model.domains:
        names = listed(would_fit(Model, lambda m: kind in m.kinds and dataset.domain in m.domains and reads_labels(m)))
        raise ConfigError(
            f"model={model.name} reads inputs that are {' or '.join(sorted(model.domains))}, those of dataset={dataset.name} "
            f"are {dataset.domain}; models that fit: {names}"
        )
    if not reads_labels(type(model)):
        names = listed(would_fit(Model, lambda m: kind in m.kinds and dataset.domain in m.domains and reads_labels(m)))
        raise ConfigError(
            f"model={model.name} has no likelihood for the {target} labels of dataset={dataset.name}; models that do: {names}"
        )
    if (holds := dataset.holds()) is not None and model.values is not None and holds not in model.values:
        names = listed(would_fit(Model, lambda m: kind in m.kinds and (m.values is None or holds in m.values)))
        raise ConfigError(
            f"model={model.name} has no likelihood for the {holds} values of dataset={dataset.name}; models that do: {names}"
        )
    for path, part in held(model, "model"):
        if isinstance(part, Model):
            with _naming(path):
                check_model(dataset, part)


def check_needs(dataset: Dataset, model: Model, inference: Inference) -> None:
    """Refuses an inference method that asks of the model, as both are configured, what it does not offer.

    Raises:
        ConfigError: naming the methods that fit the model or, where a key asks for it, the key and the models that fit.
    """
    kind, offered = dataset.kind, model.offered()

    def fitting() -> str:  # a list that imports every method: for a complaint alone
        names = would_fit(Inference, lambda i: kind in i.kinds and any(way <= offered for way in i.ways(kind)))
        return f"inference that fits model={model.name}: {listed(names)}"

    if kind not in inference.kinds:
        raise ConfigError(f"inference={inference.name} has no use for {a_kind(kind)} problem; {fitting()}")
    lacks = inference.needs - offered or inference.needed(kind, offered) - offered
    if not lacks:
        return
    where = {capability: model.offers_where[capability] for capability in lacks if capability in model.offers_where}
    mend = "".join(f"; set model.{setting}" for setting in sorted(set(where.values())) if lacks == where.keys())
    asked = inference.asked_by_keys()
    how = f"{' as configured' if where else ''}{mend}"
    lacked = f"{', '.join(sorted(lacks))}, which model={model.name} lacks{how}"
    if lacks <= asked.keys():
        keys = sorted({asked[capability] for capability in lacks})
        values = dict(inference)
        told = {key: part.name if isinstance(part := values[key], Component) else part for key in keys}
        who = " and ".join(f"inference.{key}={value}" for key, value in told.items())
        names = listed(_models_with(inference.needed(kind, offered), dataset))
        raise ConfigError(f"{who} need{'s' if len(keys) == 1 else ''} {lacked}; models that can: {names}")
    raise ConfigError(f"inference={inference.name} needs {lacked}; {fitting()}")


def check_scored(dataset: Dataset, model: Model) -> None:
    """Refuses a model that lacks what keys of the data set ask to score it by.

    Raises:
        ConfigError: naming the key and the models that fit."""
    asked = dataset.asked_by_keys()
    for capability in sorted(asked.keys() - model.offered()):
        setting, mend = asked[capability]
        names = listed(_models_with(frozenset({capability}), dataset))
        raise ConfigError(
            f"{setting} needs {capability}, which model={model.name} lacks; use {mend}, or one of the models that can: {names}"
        )


def _models_with(needed: frozenset[str], dataset: Dataset) -> list[str]:
    """Models for a dataset that have what is needed; those that have it in some configurations alone, with these."""
    found = []
    for name in registry.names("model"):
        model: type[Model] = registry.get("model", name)
        if dataset.kind not in model.kinds or (model.targets is not None and dataset.labelled() not in model.targets):
            continue
        if needed <= model.offers | model.offers_where.keys():
            settings = sorted({model.offers_where[c] for c in needed - model.offers})
            found.append(f"{name} ({', '.join(settings)})" if settings else name)
    return found


def check_held(component: Component, where: str, dataset: Dataset, model: Model) -> None:
    """Refuses components inside one that do not fit.  Where it holds a model and an inference method beside each other, they
    are a run of their own on the same data, and an attacker beside them attacks that model.

    Raises:
        ConfigError: naming the key that holds it.
    """
    parts = list(held(component, where))
    models = [(path, part) for path, part in parts if isinstance(part, Model)]
    methods = [part for _, part in parts if isinstance(part, Inference)]
    victim = models[0][1] if models else model
    for path, part in parts:
        if isinstance(part, Attacker):
            check_attacker(part, path, dataset, victim)
        if isinstance(part, Inference) and isinstance(component, Inference) and not models:
            with _naming(path):
                check_needs(dataset, model, part)
        check_held(part, path, dataset, victim)
    for (path, own), method in zip(models, methods, strict=False):
        with _naming(path):
            check_pairs(dataset, own, method, None)


def check_gradients(inference: Inference, where: str, model: Model) -> None:
    """Refuses estimators of gradients that do not fit, of a method and of those that it holds.

    Raises:
        ConfigError: naming the key that holds one."""
    for path, part in held(inference, where):
        if isinstance(part, Gradient):
            check_gradient(part, path, model, inference)
        elif isinstance(part, Inference):
            check_gradients(part, path, model)


def check_gradient(gradient: Gradient, where: str, model: Model, inference: Inference) -> None:
    """Refuses an estimator of gradients that asks more than the model offers, or than the module that an inference method
    makes of it has.

    Raises:
        ConfigError: naming what is lacking, and the estimators that would work.
    """
    offered = inference.made() or model.offered()
    if lacking := gradient.needs - offered:
        names = listed(would_fit(Gradient, lambda g: g.needs <= offered))
        who = f"the q(θ) of inference={inference.name}" if inference.made() else f"model={model.name}"
        models = "" if inference.made() else listed(would_fit(Model, lambda m: gradient.needs <= m.offers))
        raise ConfigError(
            f"{where}={gradient.name} needs {', '.join(sorted(lacking))}, which {who} lacks; gradients that fit it: {names}"
            + (f"; models that have it: {models}" if models else "")
        )
