"""Objects in a user's modules that a key names as ``module:name``: import, location and one-line
errors.

Keys of this type are listed in ``imports`` of their component, and their modules must be listed in
``plugins``."""

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

# folder of the packages ``components`` and ``runner``
OURS = Path(__file__).resolve().parent.parent.parent
LIBRARY = Path(traceback.__file__).parent  # the standard library
# fix of an error of a function that is called with its data
FIX_DATA = "; fix it there, or its data (dataset.arguments, or --data of runner fit)"


def _check_object_path(text: str, info: ValidationInfo) -> str:
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        head, dot, last = text.rpartition(".")
        example = f"{head}:{last}" if dot and not colon else "my_module:name"
        raise ValueError(
            f"{info.field_name}: {text} does not have the form module:name; write {example}"
        )
    return text


ImportPath = Annotated[str, AfterValidator(_check_object_path)]  # module:name


def import_object(key: str, place: str) -> Any:
    """Import the object at ``module:name``.

    Raises:
        ConfigMismatchError: the module cannot be imported, or does not define the name.
    """
    module, _, name = place.partition(":")
    with reraise_user_error(f"{key}={place}"):
        loaded = importlib.import_module(module)
    if not callable(vars(loaded).get(name)):
        public_names = ", ".join(
            sorted(n for n, v in vars(loaded).items() if callable(v) and not n.startswith("_"))[:6]
        )
        raise ConfigMismatchError(
            f"{key}={place}: {module} has no function or class {name}; it has {public_names or 'none'}"
        )
    return vars(loaded)[name]


def source(place: str) -> Path | None:
    """File of the module of ``module:name``, already imported; None if it has no file."""
    module = sys.modules.get(place.partition(":")[0])
    file = None if module is None else vars(module).get("__file__")
    return None if file is None else Path(file)


def short_digest(place: str) -> str:
    """First digits of the SHA-256 of the file with the object, which change with its code."""
    file = source(place)
    return hashlib.sha256(b"" if file is None else file.read_bytes()).hexdigest()[:8]


def is_user_file(file: str) -> bool:
    """True if a file may hold a user's code.

    False for the import system, installed libraries, and the packages here.
    """
    if file.startswith("<"):
        return False
    path = Path(file)
    installed = {"site-packages", "dist-packages"} & set(path.parts) or path.is_relative_to(LIBRARY)
    return not installed and not _is_project_file(path)


def _is_project_file(path: Path) -> bool:
    return any(path.is_relative_to(OURS / package) for package in ("runner", "components"))


def _file_and_line(thing: object) -> tuple[str, int] | None:
    """File and line of a function, method or class; None if it has no file."""
    plain = inspect.unwrap(thing) if callable(thing) else thing
    try:
        return inspect.getsourcefile(plain) or "", inspect.getsourcelines(plain)[1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return _find_class(plain) if isinstance(plain, type) else None


def _find_class(made: type) -> tuple[str, int] | None:
    """File and line of a class recreated by a decorator, for which Python 3.13 records no line."""
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

    Without a file, the name of its type.
    """
    place = _file_and_line(thing)
    if place is None:
        return type(thing).__name__
    return f"{Path(place[0]).name}, line {place[1]}"


def is_raised_by_user(error: BaseException) -> bool:
    """True if the traceback of an error contains a line of the user's code."""
    return any(is_user_file(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def format_raise_location(error: BaseException, whose: object) -> str:
    """Location of the last frame of an error in the user's code.

    Without such a frame: the location of the given code, else the last frame in a library; "" if no
    line is known.
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


def refusal(
    what: str, error: BaseException, whose: object = None, user_fix: str = "; fix it there"
) -> ConfigMismatchError:
    """One-line error for an exception from user code, with its location.

    Errors without a frame in user code have the location of the given code.
    """
    message = error.msg if isinstance(error, SyntaxError) else error
    reason = " ".join(str(message).split())[:300]
    if isinstance(error, SystemExit):
        reason = f"the code exits the process{f' ({reason})' if reason else ''}"
    where = format_raise_location(error, whose)
    detail = f": {reason}" if reason else ""
    fix = ""
    if isinstance(error, ModuleNotFoundError):
        fix = "; install it with pip, or put its folder on PYTHONPATH"
    elif whose is not None or is_raised_by_user(error):
        fix = user_fix
    place = f" ({where}){fix}" if where else ""
    return ConfigMismatchError(f"{what}: {type(error).__name__}{detail}{place}")


@contextmanager
def reraise_user_error(
    what: str, whose: object = None, user_fix: str = "; fix it there"
) -> Iterator[None]:
    """Re-raise an error of the given user code in one line, with its location and its fix.

    Raises:
        ConfigMismatchError: the code raised an error or exited the process.
    """
    try:
        yield
    except (ConfigMismatchError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise refusal(what, error, whose, user_fix) from error


def is_foreign(cls: type) -> bool:
    """True for a user's class."""
    return cls.__module__.partition(".")[0] != "components"
