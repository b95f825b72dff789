"""Compose, validate, and identify a run, before any data is read.

``prepare`` turns a composed config into a ``Job``: plug-ins imported, smoke overrides applied, run-level keys checked,
each component built (pydantic names every bad key), and the four checked against each other.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from components.contracts.roles import Attacker, Component, Dataset, Evasion, Inference, Model
from components.evaluation.threat import Threat, threat_of
from components.registry import CHOSEN, REQUIRED
from runner import CONF
from runner.compose.draws_kept import check_draws, shortened
from runner.compose.pairs import check_held_attackers, check_pairs
from runner.compose.parts import built, component_class, filled
from runner.mistakes import ConfigError, nearest

# What cannot change a number: paths, logging, and what only says what to do with a result.
NOT_SIGNED = {
    "data_dir", "output_dir", "offline", "fresh", "objective", "paper_tables", "description", "smoke_overrides",
    "checkpoint_every", "tracking", "hydra", "experiment",
}  # fmt: skip


def _a_device(device: str) -> str:
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f"device={device}: must be cpu, cuda, or one of several GPUs (cuda:0, cuda:1, …)")
    return device


class Settings(BaseModel):
    """The run-level keys (conf/config.yaml holds their defaults and meanings)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    experiment: str
    description: str | None
    seed: NonNegativeInt
    replicates: PositiveInt
    steps: PositiveInt | None
    eval_every: PositiveInt | None
    record_every: PositiveInt
    checkpoint_every: PositiveInt
    device: Annotated[str, AfterValidator(_a_device)]
    dtype: Literal["float64", "float32"]
    threads: PositiveInt
    smoke: bool
    smoke_overrides: dict[str, Any]
    debug: Literal["overfit", "profile"] | None
    objective: str | None
    validation: Annotated[float, Field(gt=0, lt=1)] | None = None  # records from before the key have none
    fresh: bool
    offline: bool
    tracking: bool
    paper_tables: list[str]
    plugins: list[str]
    data_dir: str
    output_dir: str


@dataclass(frozen=True)
class Job:
    """A validated run: what to do, with what, and under which identity."""

    settings: Settings
    dataset: Dataset
    model: Model
    inference: Inference
    attacker: Attacker | None
    threat: Threat | None  # norm and sizes of an evasion attacker's evaluation
    config: dict[str, Any]  # resolved, with smoke overrides applied: what the record holds
    data: str  # the data's own name ("sarcos-sim" is never "sarcos")
    signature: str
    notes: list[str]  # what the user should know of how the config was understood

    @property
    def choice(self) -> dict[str, str | None]:
        return {
            "dataset": self.dataset.name,
            "model": self.model.name,
            "inference": self.inference.name,
            "attacker": self.attacker.name if self.attacker else None,
        }

    @property
    def vectorised(self) -> bool:
        """Whether all replicates are computed at once, as a leading dimension, instead of one after the other."""
        return self.dataset.vectorised and self.dataset.kind in self.inference.folds_replicates

    @property
    def folder(self) -> Path:
        return Path(self.settings.output_dir) / self.settings.experiment / self.signature


def _complaint(where: str, error: dict[str, Any], known: list[str]) -> str:
    """One pydantic error as one line."""
    # Members of a union are no keys: function-after[…], constrained-float, a class.
    path = ".".join(str(p) for p in (where, *error["loc"]) if re.fullmatch(r"[^\W\d][\w.]*|\d+", str(p)))
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    if kind == "extra_forbidden":
        return f"{path}: unknown key{nearest(str(error['loc'][-1]), known)}"
    if kind == "missing":
        return f"{path}: missing; give it a value"
    bounds = {"greater_than": (">", "gt"), "greater_than_equal": ("≥", "ge"), "less_than": ("<", "lt"),
              "less_than_equal": ("≤", "le")}  # fmt: skip
    if kind in bounds:
        sign, key = bounds[kind]
        return f"{path}={value}: out of range, must be {sign} {context[key]:g}"
    if kind == "literal_error":
        expected = [w.strip().strip("'") for w in context["expected"].replace(" or ", ", ").split(",")]
        return f"{path}={value}: not one of {' | '.join(expected)}" + (
            nearest(value, expected) if isinstance(value, str) and "did you" in nearest(value, expected) else ""
        )
    if kind == "value_error":  # "key: what is wrong; the mend", where a check looked at one key
        message = str(context["error"])
        if not where:
            return message
        return f"{where}.{message}" if message.partition(":")[0] in known else f"{where}: {message}"
    names = {"int_type": "an integer", "float_type": "a number", "bool_type": "true or false", "string_type": "a word",
             "list_type": "a list [a, b, …]", "dict_type": "a mapping {a: b}", "int_from_float": "an integer"}  # fmt: skip
    if kind in names:
        return f"{path}={value}: must be {names[kind]}"
    return f"{path}={value}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _validated(build: Any, values: dict[str, Any], where: str) -> Any:
    try:
        return build(**values)
    except ValidationError as errors:
        keys = build.yaml_keys() if issubclass(build, Component) else build.model_fields
        known = [name for name in keys if name != "name"]
        found: dict[str, str] = {}
        for error in errors.errors():  # a union complains once per member: keep the first line for each key
            key = str(error["loc"][0]) if error["loc"] else ""
            found.setdefault(key, _complaint(where, error, known))  # type: ignore[arg-type]
        raise ConfigError("\n".join(list(found.values())[:3])) from None


def _smoke(config: dict[str, Any], explicit: set[str]) -> dict[str, Any]:
    """The config with ``smoke_overrides`` merged in; what the user set on the command line stays."""

    def merge(base: dict[str, Any], over: dict[str, Any], path: str) -> dict[str, Any]:
        out = dict(base)
        for key, value in over.items():
            here = f"{path}.{key}" if path else key
            if here in explicit and not isinstance(value, dict):  # model=smdgp chooses a model, not its keys
                continue
            out[key] = (
                merge(out[key], value, here) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
            )
        return out

    return merge(config, config.get("smoke_overrides") or {}, "")


def _component(role: str, config: dict[str, Any], explicit: set[str], notes: list[str]) -> Any:
    """The component of a role.  Where the user took another than the experiment's own, what the experiment had set for
    its own and the other does not know is left out, and said so."""
    values = config.get(role)
    if values is None:
        return None
    cls = component_class(role, values, role)
    if role in explicit:
        foreign = [k for k in values if k not in cls.yaml_keys() and f"{role}.{k}" not in explicit]
        if foreign:
            notes.append(
                f"{role}={values['name']} has no {', '.join(foreign)}: the experiment's own values are left out"
            )
            values = {k: v for k, v in values.items() if k not in foreign}
    config[role] = filled(role, values, role)
    if config.get("dataset"):
        check_held_attackers(role, config[role], config["dataset"]["name"])
    return built(role, config[role], role, _validated)


def prepare(cfg: DictConfig, experiment: str | None = None, explicit: set[str] | None = None) -> Job:
    """A composed config as a validated job.

    ``experiment`` is the name of the experiment chosen (None: composed by hand); ``explicit`` the keys set on the
    command line, which smoke overrides leave alone (None: they have been applied already, as in a record's config).

    Raises:
        ConfigError: any mistake, in one to three lines.
    """
    try:
        config: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"{getattr(error, 'full_key', '') or 'config'}: {str(error).splitlines()[0]}") from None
    config.pop("hydra", None)
    config["experiment"] = experiment or "custom"
    if isinstance(config.get("plugins"), list):
        for module in config["plugins"]:
            try:
                importlib.import_module(str(module))
            except ModuleNotFoundError as error:
                raise ConfigError(f"plugins: no module {module!r} ({error}); is its folder on PYTHONPATH?") from None
            except ValueError as error:
                raise ConfigError(f"plugins: {module}: {error}") from None
    if explicit is not None and config.get("smoke") is True:
        config = shortened(_smoke(config, explicit), explicit)
    settings = _validated(Settings, {k: v for k, v in config.items() if k not in CHOSEN}, "")
    if settings.device != "cpu" and not torch.cuda.is_available():
        raise ConfigError(f"device={settings.device}: no GPU was found; use device=cpu (runner doctor tells more)")
    notes: list[str] = []
    parts = {role: _component(role, config, explicit or set(), notes) for role in CHOSEN}
    missing = [role for role in REQUIRED if parts[role] is None]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}: not chosen; pick an experiment (runner +experiment=sarcos_mdgp; runner list experiment "
            f"names them) or set {' '.join(f'{role}=…' for role in missing)}"
        )
    check_pairs(**parts)
    attacker = parts["attacker"]
    threat = threat_of(attacker, config["attacker"]["eps"]) if isinstance(attacker, Evasion) else None
    notes += check_draws(parts["inference"], settings)
    data = parts["dataset"].identity(Path(settings.data_dir), settings.offline)
    if settings.validation is not None:
        if parts["dataset"].kind not in ("supervised", "unlabelled"):
            raise ConfigError(
                f"validation={settings.validation}: holds out training rows, and dataset={parts['dataset'].name} "
                f"({parts['dataset'].kind}) has none; leave it out"
            )
        data = f"{data}-validation"
    config = json.loads(json.dumps(config))
    signature = sign(config, data)
    return Job(settings=settings, **parts, threat=threat, config=config, data=data, signature=signature, notes=notes)


def sign(config: dict[str, Any], data: str) -> str:
    """Hash of the resolved config less what cannot change a number, and of the data's own name."""
    signed = {k: v for k, v in config.items() if k not in NOT_SIGNED} | {"data": data}
    if signed.get("validation") is None:  # nothing is held out, as in the records from before the key
        signed.pop("validation", None)
    return hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).hexdigest()[:12]


def compose(overrides: list[str]) -> tuple[DictConfig, str | None, set[str]]:
    """Composes in this process, as the command line would: (config, experiment, keys set explicitly)."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = hydra_compose("config", overrides=overrides, return_hydra_config=True)
    choices = cfg.hydra.runtime.choices
    OmegaConf.set_struct(cfg, False)
    cfg.pop("hydra")
    return cfg, choices.get("experiment"), explicit_keys(overrides)


def explicit_keys(overrides: list[str]) -> set[str]:
    """``a.b`` of every override ``a.b=…``."""
    return {o.split("=", 1)[0].lstrip("+~").split("@")[0].replace("/", ".") for o in overrides if "=" in o}
