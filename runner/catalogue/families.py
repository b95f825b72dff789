"""Families of what the catalogue lists: components by their folder, files by the text and the
chapter that they come from."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import components
from components import registry
from runner.catalogue.declarations import catalogue
from runner.catalogue.list_and_show import find_file, options
from runner.disk.read_yaml import YAML_READ_ERRORS
from runner.disk.yaml_limits import read_yaml

OTHER = "other"  # of no text
PLUGIN = "plugin"  # components of the user
_ROOT = Path(components.__path__[0])
# the text that a name in a citation stands for
_TEXTS = {
    "Boustati": "boustati",
    "Gallego": "gallego",
    "Rodríguez Santana": "rodriguez",
    "Bardenet": "bardenet",
}
_PAPERS = ("rodriguez",)  # without chapters
_NAME = re.compile("|".join(_TEXTS))
# section, figure or table 4.1 or 4.B of a chapter, appendix A.2 of a text
_CHAPTER = re.compile(r"(?<![\w.])([1-9])\.[\dA-D]|\bchapters? ([1-9])")
_APPENDIX = re.compile(r"(?<![\w.])([A-D])\.\d")
# the name of a published table
_TABLE = re.compile(rf"\b({'|'.join(_TEXTS.values())})(?:_santana)?_(?:table|figure)_([1-9a-d])_")
_CHAPTER_OF_APPENDIX = {"A": "3", "B": "4", "C": "5", "D": "6"}  # Boustati's
_BEFORE, _AFTER = 30, 90  # letters around a name that may have the chapter


def families(group: str) -> dict[str, list[str]]:
    """Names of a group by family: ``sgmcmc``, or ``gallego/4`` for chapter 4 of a text.

    Components are sorted by the size of their families, files by text and chapter.
    """
    members: dict[str, list[str]] = defaultdict(list)
    if group not in registry.ROLES:
        for name in options(group):
            members[_family_of_file(find_file(group, name))].append(name)
        return {key: members[key] for key in sorted(members, key=_order_of_text)}
    for entry in catalogue(group):
        members[_family_of_component(entry.file)].append(entry.name)
    return {key: members[key] for key in sorted(members, key=lambda k: (-len(members[k]), k))}


def is_within(family: str, wanted: str) -> bool:
    """True if a family is the wanted one or, as ``gallego/4`` of ``gallego``, a part of it."""
    return family == wanted or family.startswith(f"{wanted}/")


def _order_of_text(family: str) -> tuple[bool, str]:
    return family == OTHER, family


def _family_of_component(file: Path) -> str:
    if not file.is_relative_to(_ROOT):
        return PLUGIN
    return describe_folder(file.parent).get("family", file.parent.name)


@cache
def _read_folders() -> dict[str, dict[str, str]]:
    folders: dict[str, dict[str, str]] = read_yaml(_ROOT / "families.yaml")
    return folders


def describe_folder(folder: Path) -> dict[str, str]:
    """``title`` and ``family`` of a folder of components, those that differ from its name."""
    return _read_folders().get(folder.relative_to(_ROOT).as_posix(), {})


def _family_of_file(path: Path, within: tuple[Path, ...] = ()) -> str:
    """Text and chapter that a file cites: in its description, else by the published tables that it
    names, else in its comments, else in the experiment that it is derived from."""
    try:
        content = read_yaml(path)
        text = path.read_text(encoding="utf-8")
    except YAML_READ_ERRORS:
        return OTHER
    known = content if isinstance(content, dict) else {}
    keys = ("source", "where", "description")
    cited = ", ".join(str(known[key]) for key in keys if known.get(key))
    places = [find_citation(cited), _find_table(text), find_citation(text)]
    if max(places, key=_precision) == OTHER:
        bases = [name for name in known.get("defaults") or [] if isinstance(name, str)]
        files = [find_file("experiment", name.removeprefix("/experiment/")) for name in bases]
        derived = [file for file in files if file.is_file() and file not in within]
        places += [_family_of_file(file, (*within, path)) for file in derived]
    return max(places, key=_precision)  # the first of them, if they are alike


def _precision(family: str) -> int:
    return 0 if family == OTHER else 1 + family.count("/")


def _find_table(words: str) -> str:
    """Text and chapter of the first published table that is named in some words."""
    table = _TABLE.search(words)
    if table is None:
        return OTHER
    text, place = table[1], table[2].upper()
    return text if text in _PAPERS else f"{text}/{_CHAPTER_OF_APPENDIX.get(place, place)}"


def find_citation(words: str) -> str:
    """Text and chapter of the first citation in some words: ``gallego/4``."""
    words = " ".join(words.replace("#", " ").split())
    name = _NAME.search(words)
    if name is None:
        return OTHER
    text = _TEXTS[name[0]]
    if text in _PAPERS:
        return text
    following = _NAME.split(words[name.end() :])[0]
    near = words[max(0, name.start() - _BEFORE) : name.start()] + following[:_AFTER]
    if chapter := _CHAPTER.search(near):
        return f"{text}/{chapter[1] or chapter[2]}"
    appendix = _APPENDIX.search(near)
    return f"{text}/{_CHAPTER_OF_APPENDIX[appendix[1]]}" if appendix else text
