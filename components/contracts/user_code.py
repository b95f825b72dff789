"""Things in modules of the user's own that a key names, ``module:name``: found, called and
complained about in one line.

A key that names one is among ``imports`` of its component, so that its module has to be among
``plugins`` too."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo

from components.errors import ConfigMismatchError

# holds the packages ``components`` and ``runner``
OURS = Path(__file__).resolve().parent.parent.parent
LIBRARY = Path(traceback.__file__).parent  # the standard library


def _check_object_path(text: str, info: ValidationInfo) -> str:
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        before, dot, last = text.rpartition(".")
        mend = f"{before}:{last}" if dot and not colon else "my_module:name"
        raise ValueError(
            f"{info.field_name}: {text} is no module and a name in it; write it as {mend}"
        )
    return text


Place = Annotated[str, AfterValidator(_check_object_path)]  # module:name


def import_object(key: str, place: str) -> Any:
    """Return the object at a place ``module:name``.

    Raises:
        ConfigMismatchError: the module cannot be imported, or has nothing of that name.
    """
    module, _, name = place.partition(":")
    with reraise_user_error(f"{key}={place}"):
        loaded = importlib.import_module(module)
    if name not in vars(loaded):
        public_names = ", ".join(
            sorted(n for n, v in vars(loaded).items() if callable(v) and not n.startswith("_"))[:6]
        )
        raise ConfigMismatchError(
            f"{key}={place}: {module} has no {name}; there are {public_names or 'no functions or classes'}"
        )
    return vars(loaded)[name]


def source(place: str) -> Path | None:
    """The file that the module of a place is in, imported already; None: it is in none."""
    module = sys.modules.get(place.partition(":")[0])
    file = None if module is None else vars(module).get("__file__")
    return None if file is None else Path(file)


def short_digest(place: str) -> str:
    """The beginning of the SHA-256 of the file that a place is in: other code is another thing."""
    file = source(place)
    return hashlib.sha256(b"" if file is None else file.read_bytes()).hexdigest()[:8]


def is_user_file(file: str) -> bool:
    """True if code of a file may be the user's.

    Excluded are the import system, installed libraries and our own code.
    """
    if file.startswith("<"):
        return False
    path = Path(file)
    installed = {"site-packages", "dist-packages"} & set(path.parts) or path.is_relative_to(LIBRARY)
    return not installed and not _is_project_file(path)


def _is_project_file(path: Path) -> bool:
    return any(path.is_relative_to(OURS / package) for package in ("runner", "components"))


def _file_and_line(thing: object) -> tuple[str, int] | None:
    """File and line of a function, method or class; None: in no file."""
    plain = inspect.unwrap(thing) if callable(thing) else thing
    try:
        return inspect.getsourcefile(plain) or "", inspect.getsourcelines(plain)[1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return _find_class(plain) if isinstance(plain, type) else None


def _find_class(made: type) -> tuple[str, int] | None:
    """File and line of a class that a decorator made again: Python 3.13 knows no line of it."""
    file = source(made.__module__)
    tree = ast.parse("" if file is None else file.read_bytes())
    lines = [
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == made.__name__
    ]
    return (str(file), lines[0]) if lines else None


def format_code_location(thing: object) -> str:
    """Location of the user's function, method or class, "my_game.py, line 12".

    If no file holds it, the name of its type.
    """
    place = _file_and_line(thing)
    if place is None:
        return type(thing).__name__
    return f"{Path(place[0]).name}, line {place[1]}"


def is_raised_by_user(error: BaseException) -> bool:
    """True where an error came by a line of the user's code."""
    return any(is_user_file(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def format_raise_location(error: BaseException, whose: object = None) -> str:
    """The last line of the user's code that an error passed through.

    Otherwise: the location of the given code; else the last line of a library; "" if no line is
    known.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if is_user_file(frame.filename)]
    if whose is not None and not theirs:
        return format_code_location(whose)
    outside = [
        frame
        for frame in frames
        if not frame.filename.startswith("<") and not _is_project_file(Path(frame.filename))
    ]
    for frame in reversed(theirs or outside):
        return f"{Path(frame.filename).name}, line {frame.lineno}"
    return ""


def refusal(what: str, error: BaseException, whose: object = None) -> ConfigMismatchError:
    """One-line error for an exception from user code, with its location.

    The location is taken from the given code for errors without a user's frame.
    """
    message = error.msg if isinstance(error, SyntaxError) else error
    reason = " ".join(str(message).split())[:300]
    if isinstance(error, SystemExit):
        reason = f"it ends the process{f' ({reason})' if reason else ''}"
    where = format_raise_location(error, whose)
    detail = f": {reason}" if reason else ""
    fix = ""
    if isinstance(error, ModuleNotFoundError):
        fix = "; install it with pip, or put its folder on PYTHONPATH"
    elif whose is not None or is_raised_by_user(error):
        fix = "; mend it there"
    place = f" ({where}){fix}" if where else ""
    return ConfigMismatchError(f"{what}: {type(error).__name__}{detail}{place}")


@contextmanager
def reraise_user_error(what: str, whose: object = None) -> Iterator[None]:
    """Re-raise an error of the given user code in one line, with its location.

    Raises:
        ConfigMismatchError: the code raised, or ended the process.
    """
    try:
        yield
    except (ConfigMismatchError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise refusal(what, error, whose) from error
