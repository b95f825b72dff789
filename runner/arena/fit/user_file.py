"""Overrides of the dataset that reads a user's file: a function of torch, NumPyro or PyMC, or a Stan program."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from components.datasets.foreign.foreign_density import read_object
from components.errors import require_package
from runner.errors import ConfigError

IMPORTS = r"(?m)^\s*(?:import|from) (numpyro|pymc)\b"


def describe_file(place: str, data: str | None) -> tuple[str, list[str]]:
    """Name of FILE.py:FUNCTION or FILE.stan, and the overrides that select it and its module.

    The folder of the file is added to the search path of modules, here and in other processes.

    Args:
        place: the file, with the function.
        data: a JSON file with keywords of the function, or the data of the program.

    Raises:
        ConfigError: the file does not exist, or has no Stan program and no named function.
        DataUnavailableError: the file of the data does not exist.
        ConfigMismatchError: the data are not a JSON object, or the package of the model is not
            installed.
    """
    file, _, name = place.rpartition(":")
    path = Path(file or place).resolve()
    if not path.is_file() or path.suffix not in (".stan", ".py" if file else ".stan"):
        raise ConfigError(
            f"fit {place}: not a file with a model; give FILE.py:FUNCTION or FILE.stan"
        )
    words = [] if data is None else [f"dataset.data='{Path(data).resolve()}'"]
    if path.suffix == ".stan":
        return path.stem, ["dataset=stan", f"dataset.program='{path}'", *words]
    imported = re.search(IMPORTS, path.read_text(encoding="utf-8"))
    if imported:
        require_package(imported[1], f"fit {place}", imported[1])
    if data is not None and not imported:
        values = json.loads(read_object(data, Path())).items()
        pairs = ", ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in values)
        words = [f"dataset.arguments={{{pairs}}}"]
    folders = [str(path.parent), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    sys.path.insert(0, str(path.parent))
    language = imported[1] if imported else "log_density"
    words += [f"dataset={language}", f"dataset.function={path.stem}:{name}"]
    return name, [*words, f"plugins=[{path.stem}]"]
