"""Components from their YAML with changed keys, problems of datasets, and threats of attackers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from components import registry
from components.contracts.attackers import Evasion
from components.contracts.roles import Setting
from components.evaluation.security.threat import Threat, build_threat
from runner.compose.check import build_component
from runner.compose.compose import compose
from runner.compose.expand import expand_component
from runner.compose.job import Job, prepare
from runner.disk.read_yaml import load_untrusted
from runner.execution.rng import Streams
from runner.record.lines import read_lines

CONF = Path(__file__).parents[3] / "conf"
NOWHERE = Path(os.devnull) / "data"  # never the working folder
F64 = torch.float64
COMPONENTS = [  # with a YAML of their own
    (role, name)
    for role in registry.ROLES
    for name in registry.names(role)
    if registry.file(role, name)
]


def generator(seed: int = 0) -> torch.Generator:
    """Random numbers of a test."""
    return torch.Generator().manual_seed(seed)


def draw_normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Standard normal numbers [*shape] in float64."""
    return normal(generator(seed), *shape)


def draw_uniform(*shape: int, seed: int = 0) -> torch.Tensor:
    """Uniform numbers on [0, 1) [*shape] in float64."""
    return uniform(generator(seed), *shape)


def normal(generator: torch.Generator, *size: Any) -> torch.Tensor:
    """Standard normal numbers in double precision."""
    return torch.randn(*size, generator=generator, dtype=torch.float64)


def uniform(generator: torch.Generator, *size: Any) -> torch.Tensor:
    """Uniform numbers on [0, 1) in double precision."""
    return torch.rand(*size, generator=generator, dtype=torch.float64)


def double(values: Any) -> torch.Tensor:
    """A tensor in double precision."""
    return torch.tensor(values, dtype=torch.float64)


def defaults(role: str, name: str) -> dict[str, Any]:
    """Content of the YAML of a component."""
    return load_untrusted(CONF / role / f"{name}.yaml")


def component(role: str, name: str, **changes: Any) -> Any:
    """A component with the defaults of its YAML, some of them changed."""
    cls = registry.get(role, name)
    return cls(
        **({k: v for k, v in defaults(role, name).items() if k not in cls.threat_keys} | changes)
    )


def compose_component(role: str, name: str, **changes: Any) -> Any:
    """A component with its parts, built as in the runner."""
    values = expand_component(role, defaults(role, name) | changes, role)
    return build_component(role, values, role)


def build_model(name: str, problem: Any, /, **changes: Any) -> Any:
    """The module of a model with the defaults of its YAML, some of them changed."""
    return component("model", name, **changes).build(problem, Streams(0))


def make_setting(
    data_dir: str | Path = NOWHERE, dtype: torch.dtype = F64, replicates: int = 1
) -> Setting:
    """A data folder on the CPU, without downloads."""
    return Setting(Path(data_dir), torch.device("cpu"), dtype, replicates, offline=True)


def load_problem(
    name: str,
    data_dir: str | Path = NOWHERE,
    seed: int = 0,
    replicate: int = 0,
    dtype: torch.dtype = F64,
    **changes: Any,
) -> Any:
    """A dataset's problem, of the declared kind."""
    dataset = component("dataset", name, **changes)
    setting = make_setting(data_dir, dtype)
    problem = dataset.load(Streams(seed, replicate), setting)
    assert problem.name == dataset.identity(setting.data_dir, setting.offline)
    assert problem.describe().get("data", problem.name) == problem.name
    return problem


def load(
    name: str,
    seed: int = 0,
    replicates: int = 1,
    dtype: torch.dtype = torch.float64,
    **changes: Any,
) -> Any:
    """A dataset's problem and the streams it was drawn from."""
    rng = Streams(seed)
    setting = make_setting(dtype=dtype, replicates=replicates)
    return component("dataset", name, **changes).load(rng, setting), rng


def repeatable(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of a run without CPU seconds, which differ between repetitions."""
    return {name: value for name, value in scores.items() if not name.endswith("cpu_seconds")}


def repeatable_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of metrics.jsonl without its times."""
    rest = {key: value for key, value in line.items() if key != "time"}
    return rest | {"metrics": repeatable(line["metrics"])}


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The recorded lines of a run without their times."""
    return [repeatable_line(line) for line in read_lines(folder)]


def threat(attacker: Evasion, eps: Iterable[float] | None = None) -> Threat:
    """The threat of an attacker at the given sizes, by default the sizes in its YAML."""
    return build_threat(
        attacker, defaults("attacker", attacker.name)["eps"] if eps is None else eps
    )


def made_job(folder: Path, *overrides: str) -> Job:
    """A validated job from overrides, which writes into a folder and not to MLflow."""
    fixed = [
        f"output_dir={folder / 'outputs'}",
        f"data_dir={folder / 'data'}",
        "tracking=false",
        "offline=true",
    ]
    given = {o.split("=")[0] for o in overrides}
    return prepare(compose([*(f for f in fixed if f.split("=")[0] not in given), *overrides]))
