"""Stage 4, check: build each component, which validates its keys, and check it against the data and
the run-level keys; ``pairs`` checks components against each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from components import registry
from components.contracts.attackers import Attacker, Evasion, Injection
from components.contracts.plugins.calls import watch_class
from components.contracts.plugins.declared import check_declared
from components.contracts.requirements import kind_with_article, misfit
from components.contracts.roles import Component, Dataset, Inference
from components.contracts.user_code import is_foreign
from components.errors import ConfigMismatchError
from components.evaluation.decision import DecisionKeys
from components.evaluation.security.threat import threat_grid_class
from components.metrics.names import score_names
from components.registry import CHOSEN
from runner.catalogue.class_description import nested_roles
from runner.catalogue.settings import OBJECTIVES_KEY, Settings, Values, requested_objectives
from runner.compose.expand import all_parts, each
from runner.compose.pairs import check_pairs
from runner.compose.resolve import ResolvedConfig
from runner.compose.validate import validate_model
from runner.errors import ConfigError, UnfitError, nearest

Parts = dict[str, Any]  # component, or None, of each role


class Composition:
    """Components of a config, each built once.

    Args:
        resolved: the expanded config.
    """

    def __init__(self, resolved: ResolvedConfig):
        self.resolved = resolved
        self.values: Values = {role: resolved.config.get(role) for role in CHOSEN}
        self._built: Parts = {}  # by role and mapping

    def build(self, role: str, values: Values) -> Any:
        """Build the component of a role after checking it against the data.

        Raises:
            ConfigError: a key is invalid, or the component does not support the data.
        """
        mapping = values[role]
        key = json.dumps([role, mapping, values["dataset"]], sort_keys=True)
        if key not in self._built:
            if mapping is not None and role != "dataset":
                check_data(self.build("dataset", values), role, mapping)
            self._built[key] = None if mapping is None else build_component(role, mapping, role)
        return self._built[key]

    def check(self, values: Values) -> Parts:
        """Check the components against each other and the run-level keys, and return them.

        Raises:
            ConfigError: a key is invalid; an ``UnfitError`` if another component would work.
        """
        settings = self.resolved.settings
        parts = {role: self.build(role, values) for role in CHOSEN}
        dataset, attacker, inference = (
            parts[role] for role in ("dataset", "attacker", "inference")
        )
        is_attacked = isinstance(attacker, Evasion | Injection)
        _check_objective(
            settings, score_names(dataset.problem_kind(), is_attacked, dataset.target_kind())
        )
        check_pairs(**parts)
        if settings.side_by_side or inference.variants():
            _check_side_by_side(settings.side_by_side, dataset, inference, attacker)
        return parts


def check_data(dataset: Dataset, role: str, values: Values) -> None:
    """Refuse a component, or a nested one, that does not support a dataset, before building it.

    Args:
        dataset: the dataset.
        role: role of the component.
        values: its full mapping.

    Raises:
        UnfitError: a component does not support the data; the message gives its key.
    """
    facts = dataset.data_facts()
    for path, declared, _ in all_parts(role, values):
        needs = declared.requires
        if why := misfit(facts, needs):
            settings = [
                f"dataset.{dataset.traits_where[trait]}"
                for trait in needs.required_traits.keys() & dataset.traits_where.keys()
            ]
            raise UnfitError(f"{path}={declared.name}{why}", path, fix=" ".join(settings))


def _check_objective(settings: Settings, names: frozenset[str]) -> None:
    """Refuse an objective that is not the name of a score; plug-ins may add scores.

    Raises:
        ConfigError: the score does not exist; the message gives the nearest name.
    """
    metrics = {f"{OBJECTIVES_KEY}: {metric}": metric for metric in requested_objectives()}
    if settings.objective:
        metrics[f"objective={settings.objective}"] = settings.objective
    for setting, metric in metrics.items():
        name = metric.partition("/")[0]
        if name not in names and not settings.plugins:
            raise ConfigError(f"{setting}: unknown score{nearest(name, names)}")


def _check_side_by_side(
    asked_for: bool, dataset: Dataset, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuse ``side_by_side`` for components without support, and several variants without it.

    Raises:
        ConfigError: a component and ``side_by_side`` are incompatible.
    """
    setting = "side_by_side=true"
    if not asked_for:
        several = ", ".join(inference.variants())
        raise UnfitError(
            f"inference={inference.name}: several posteriors ({several}) require {setting}; set it, or choose one posterior"
        )
    if dataset.problem_kind() != "supervised":
        raise UnfitError(
            f"{setting}: requires supervised data, but dataset={dataset.name} is "
            f"{kind_with_article(dataset.problem_kind())} problem; remove it"
        )
    if inference.side_by_side() is None:
        raise UnfitError(
            f"{setting}: not supported by inference={inference.name}; remove it",
            "inference",
        )
    if isinstance(attacker, Evasion):
        raise UnfitError(
            f"{setting}: attacker={attacker.name} attacks one posterior at a time, but each replicate has its own; remove "
            "one of them"
        )


def build_decision(settings: Settings, dataset: Dataset) -> DecisionKeys | None:
    """Loss minimised by predictions of test labels; None if no decision is scored.

    Raises:
        ConfigError: a key is invalid, or the loss does not support the dataset's labels.
    """
    if settings.decision is None or settings.decision.get("loss") is None:
        return None
    decision = validate_model(DecisionKeys, settings.decision, "decision")
    target = dataset.target_kind() if dataset.problem_kind() == "supervised" else None
    if target is None or decision.is_of_classes == (target == "real"):
        labels = "classes" if decision.is_of_classes else "real labels"
        raise ConfigError(
            f"decision.loss={decision.loss}: requires {labels}, which dataset={dataset.name} lacks; "
            "use costs for classes, squared | absolute | pinball | tolerance for real labels, or "
            "remove decision"
        )
    return decision


def check_data_keys(settings: Settings, dataset: Dataset) -> None:
    """Refuse run-level keys that a dataset does not support.

    Raises:
        ConfigError: a key is not supported.
    """
    chosen = f"dataset={dataset.name}"
    kind = dataset.problem_kind()
    has_rows = kind in ("supervised", "unlabelled")
    folds = dataset.folds(Path(settings.data_dir))
    if folds is not None and settings.replicates > folds:
        raise ConfigError(
            f"replicates={settings.replicates}: {chosen} has {folds} splits or folds, one per replicate; lower "
            "replicates to that number"
        )
    if settings.validation is not None and not has_rows:
        raise ConfigError(
            f"validation={settings.validation}: requires training rows, but {chosen} is a {kind} problem; remove it"
        )
    length = getattr(dataset, dataset.length_key) if dataset.length_key else None
    if length is not None and settings.steps is not None and settings.steps > length:
        raise ConfigError(f"steps={settings.steps}: {chosen} has only {length}")
    if settings.debug == "overfit" and not has_rows:
        raise ConfigError(
            f"debug=overfit: requires a supervised problem, but {chosen} is a {kind} problem"
        )
    if settings.keep_predictions and (kind != "supervised" or dataset.target_kind() != "real"):
        raise ConfigError(
            f"keep_predictions: requires real labels, which {chosen} lacks; remove it"
        )


def build_component(role: str, values: Values, where: str) -> Component:
    """Build a component from its full mapping.

    The keys of the threat model for its evaluation belong to the run: they are validated here and
    not passed to the component.

    Raises:
        ConfigError: a key is invalid.
    """
    cls: type[Component] = registry.get(role, values["name"])
    if is_foreign(cls):
        try:
            check_declared(role, values["name"], cls)
        except ConfigMismatchError as error:
            raise ConfigError(str(error)) from None
        cls = watch_class(role, cls)
    parts = {
        key: _build_part(cls, inner, key, values, where)
        for key, inner in nested_roles(cls).items()
        if key in values or cls.model_fields[key].is_required()
    }
    options = {k: v for k, v in (values | parts).items() if k not in cls.threat_keys}
    if not issubclass(cls, Evasion | Injection):
        return validate_model(cls, options, where, cls.yaml_keys())
    threat = {k: v for k, v in values.items() if k in cls.threat_keys}
    validate_model(threat_grid_class(cls), threat, where, cls.yaml_keys())
    attacker = validate_model(cls, options, where, cls.yaml_keys())
    for member in values["members"] if cls.one_threat else ():
        if (sizes := member.get("eps", values["eps"])) != values["eps"]:
            raise ConfigError(
                f"{where}.members: {member['name']} sets eps={sizes}; set {where}.eps for all members instead"
            )
    return attacker


def _build_part(cls: type[Component], role: str, key: str, values: Values, where: str) -> Any:
    """Build the content of a key: a component, a list of them, or None.

    Raises:
        ConfigError: the key requires a component.
    """
    value = values.get(key)
    field = cls.model_fields[key]
    if value is None and field.is_required() and type(None) not in get_args(field.annotation):
        raise ConfigError(
            f"{where}.{key}: required by {values['name']}; set {where}.{key}=NAME (runner list {role} shows the names)"
        )
    built = [
        build_component(role, part, path) if isinstance(part, dict) else part
        for path, part in each(value, f"{where}.{key}")
    ]
    return built if isinstance(value, list) else built[0]
