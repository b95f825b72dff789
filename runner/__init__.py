"""Runner of experiments: composition, training loop, records, tracking, sweeps and reports.

    from runner import run, load, runs, compare

imports the Python interface (``docs/python.md``); ``__init__.pyi`` has the types."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The YAML folder is located by path, because a user's folder conf on PYTHONPATH would shadow the
# package.
CONF = ROOT / "conf"


def _bind_components() -> None:
    """Import the package ``components`` next to this one, even if another comes earlier on the path.

    Raises:
        ImportError: another package of that name was imported before.
    """
    file = ROOT / "components" / "__init__.py"
    loaded = sys.modules.get("components")
    if loaded is None:
        spec = spec_from_file_location("components", file)
        assert spec is not None
        assert spec.loader is not None
        loaded = sys.modules["components"] = module_from_spec(spec)
        spec.loader.exec_module(loaded)
    elif Path(loaded.__file__ or "").resolve() != file:
        raise ImportError(
            f"runner: another package named components is imported, {loaded.__file__ or loaded.__path__};"
            " import runner before it, or rename it"
        )


_bind_components()
# Module of each name, imported on demand so that ``import runner`` is fast.
_MODULE_BY_NAME = {
    "run": "python.running",
    "load": "python.loading",
    "Result": "python.result",
    "Score": "python.score",
    "runs": "python.frames",
    "compare": "python.comparing",
    "Comparison": "python.comparing",
    "load_model": "python.export.load_model",
    "FittedModel": "python.export.load_model",
}
_ERROR_NAMES = {"ConfigError", "RunFailure", "RunnerError", "RunnerWarning"}
__all__ = ["CONF", *_MODULE_BY_NAME, *_ERROR_NAMES]


def __getattr__(name: str) -> object:
    if name in _MODULE_BY_NAME:
        attribute = vars(import_module(f"runner.{_MODULE_BY_NAME[name]}"))[name]
    elif name in _ERROR_NAMES:
        attribute = vars(import_module("runner.errors"))[name]
    else:
        raise AttributeError(f"module 'runner' has no attribute {name!r}")
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
