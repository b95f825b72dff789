"""Things in modules of the user's own that a key names, ``module:name``: found, called and complained about in one line.

A key that names one is among ``imports`` of its component, so that its module has to be among ``plugins`` too."""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo

from components.trouble import Misfit


def _is_a_place(text: str, info: ValidationInfo) -> str:
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        before, dot, last = text.rpartition(".")
        mend = f"{before}:{last}" if dot and not colon else "my_module:name"
        raise ValueError(f"{info.field_name}: {text} is no module and a name in it; write it as {mend}")
    return text


Place = Annotated[str, AfterValidator(_is_a_place)]  # module:name


def found(key: str, place: str) -> Any:
    """What a place ``module:name`` holds.

    Raises:
        Misfit: the module cannot be imported, or has nothing of that name."""
    module, _, name = place.partition(":")
    with blamed(f"{key}={place}"):
        loaded = importlib.import_module(module)
    if name not in vars(loaded):
        there = ", ".join(sorted(n for n, v in vars(loaded).items() if callable(v) and not n.startswith("_"))[:6])
        raise Misfit(f"{key}={place}: {module} has no {name}; there are {there or 'no functions or classes'}")
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


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Says in one line what the user's own code raised, and where.

    Raises:
        Misfit: it raised."""
    try:
        yield
    except Misfit:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [f for f in frames if "site-packages" not in f.filename and not f.filename.startswith("<")]
        last = theirs[-1] if theirs else frames[-1]
        said = " ".join(str(error).split())[:300]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        raise Misfit(f"{what}: {type(error).__name__}: {said} ({where}); mend it there") from error
