"""Families of the catalogue: components by folder, YAML files by their source text and chapter."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import components
from components import registry
from runner import CONF
from runner.catalogue.declarations import catalogue
from runner.catalogue.list_and_show import options
from runner.disk.read_yaml import load_untrusted

OTHER = "other"  # files without a source text
PLUGIN = "plugin"  # components of users
Families = dict[str, list[str]]  # names by family
_ROOT = Path(components.__path__[0])


def families(group: str) -> Families:
    """Names of a group by family: ``sgmcmc``, or ``gallego/4`` for chapter 4 of a text.

    Components are sorted by the size of their families, files by text and chapter.
    """
    members: Families = defaultdict(list)
    if group in registry.ROLES:
        for entry in catalogue(group):
            folder = entry.file.parent
            is_ours = folder.is_relative_to(_ROOT)
            family = describe_folder(folder).get("family", folder.name) if is_ours else PLUGIN
            members[family].append(entry.name)
        return {key: members[key] for key in sorted(members, key=lambda k: (-len(members[k]), k))}
    texts: Families = load_untrusted(CONF / "texts.yaml")[group]
    text_of = {name: text for text, names in texts.items() for name in names}
    for name in options(group):
        members[text_of.get(name, OTHER)].append(name)
    return {key: members[key] for key in (*texts, OTHER) if key in members}


def is_within(family: str, wanted: str) -> bool:
    """True if a family is ``wanted`` or a part of it, as ``gallego/4`` belongs to ``gallego``."""
    return family == wanted or family.startswith(f"{wanted}/")


@cache
def _read_folders() -> dict[str, dict[str, str]]:
    folders: dict[str, dict[str, str]] = load_untrusted(_ROOT / "families.yaml")
    return folders


def describe_folder(folder: Path) -> dict[str, str]:
    """``title`` and ``family`` of a folder of components, where they differ from its name."""
    return _read_folders().get(folder.relative_to(_ROOT).as_posix(), {})
