"""The machine: composition, the loop, records, tracking, sweeps and reports.

    from runner import run, load, runs, compare

is what it is for those who write Python (``docs/python.md``); ``__init__.pyi`` has the types."""

from importlib import import_module
from pathlib import Path

from components.old_names import install

# The YAML folder is found by path: a user's own folder named conf on PYTHONPATH would shadow the
# package of that name.
CONF = Path(__file__).resolve().parent.parent / "conf"

install()
# Module of each name: the command line starts without them, and ``import runner`` costs nothing.
_MODULE_BY_NAME = {
    "run": "running",
    "load": "result",
    "Result": "result",
    "Score": "result",
    "runs": "frames",
    "compare": "comparing",
    "Comparison": "comparing",
}
_ERROR_NAMES = {"ConfigError", "RunFailure", "RunnerError", "RunnerWarning"}
__all__ = ["CONF", *_MODULE_BY_NAME, *_ERROR_NAMES]


def __getattr__(name: str) -> object:
    if name in _MODULE_BY_NAME:
        attribute = vars(import_module(f"runner.python.{_MODULE_BY_NAME[name]}"))[name]
    elif name in _ERROR_NAMES:
        attribute = vars(import_module("runner.errors"))[name]
    else:
        raise AttributeError(f"module 'runner' has no attribute {name!r}")
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
