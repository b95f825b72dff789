"""``runner list``: families and counts on one screen, or the names of a role, one per line."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from components import registry
from runner.catalogue import plugins
from runner.catalogue.families import Families, families, is_within
from runner.catalogue.list_and_show import GROUPS, rows
from runner.errors import ConfigError, nearest
from runner.terminal.arguments import Parser
from runner.terminal.streams import is_terminal
from runner.terminal.tables import print_json, print_table

if TYPE_CHECKING:
    from rich.table import Table

PLURALS = {"study": "studies", "inference": "inference", "published": "published"}
HINTS = (
    ("runner list inference/sgmcmc", "one family"),
    ("runner show inference/sgld", "all keys of a component"),
    ("runner list --all", "everything, one per line"),
)
KEYS = ("group", "name", "sentence")  # keys of an entry with --json, before paper or of
Overview = dict[str, Families]  # group -> family -> names


def main(argv: list[str]) -> int:
    """Execute ``runner list``; ``argv`` begins with ``list``."""
    parser = Parser(
        description="Without a role, list the families of components, experiments and studies, "
        "with counts. With a role, list its members, one per line: name, summary, paper (for experiments: their "
        "components).",
        epilog="Exit code 0, or 2 for an unknown role. In a pipe or file the columns are separated "
        "by tabs, and the last column of a family lists its members.",
    )
    parser.add_argument(
        "role",
        nargs="?",
        help=f"one of {', '.join(GROUPS)}, or a family of one: inference/sgmcmc, "
        "study/gallego/4 (chapter 4)",
    )
    parser.add_argument("--all", action="store_true", help="everything, one per line")
    plugins.add_own_options(parser, "a module with components of your own to include")
    args = parser.parse(argv)
    plugins.import_plugins(args.plugin, "--plugin")
    if args.role is not None:
        _list_role(args.role, args.json)
    elif args.all or args.json:
        for group in GROUPS:
            _list_all_of(group, args.json)
    else:
        _print_overview()
    return 0


def _parse_role(word: str) -> tuple[str, str]:
    """Parse a role and a family; plurals of roles are accepted.

    Raises:
        ConfigError: the role or the family does not exist.
    """
    role, _, family = word.strip("/").partition("/")
    role = {PLURALS.get(group, f"{group}s"): group for group in GROUPS}.get(role, role)
    if role not in GROUPS:
        raise ConfigError(f"{role}: no such role{nearest(role, GROUPS)}")
    names = families(role)
    if family and not any(is_within(group_family, family) for group_family in names):
        raise ConfigError(f"{role}/{family}: no such family{nearest(family, names)}")
    return role, family


def _list_role(word: str, as_json: bool) -> None:
    role, family = _parse_role(word)
    entries = rows(role)
    if family:
        by_family = families(role).items()
        members = {
            name
            for group_family, names in by_family
            if is_within(group_family, family)
            for name in names
        }
        entries = [row for row in entries if row[0] in members]
    title = f"{role}/{family}" if family else role
    _print_entries(role, entries, as_json, title)


def _list_all_of(group: str, as_json: bool) -> None:
    entries = rows(group)
    if not as_json and not is_terminal(sys.stdout):
        entries = [(group, *row) for row in entries]
    if entries:
        _print_entries(group, entries, as_json, group)


def _print_entries(group: str, entries: list[tuple[str, ...]], as_json: bool, title: str) -> None:
    third = "paper" if group in (*registry.ROLES, "published") else "of"
    if as_json:
        keys = (*KEYS, third)
        print_json(dict(zip(keys, (group, *entry), strict=True)) for entry in entries)
    else:
        print_table(title, (group, "summary", third), entries)


def _print_overview() -> None:
    """Print the families of every group with their counts; in a pipe, one family per line."""
    by_group = {group: members for group in GROUPS if (members := families(group))}
    if not is_terminal(sys.stdout):
        for group, members in by_group.items():
            for family, names in members.items():
                print("\t".join((group, family, str(len(names)), ", ".join(names))))
        return
    from runner.terminal.printer import out

    out.print(draw_overview(by_group))


def draw_overview(by_group: Overview) -> Table:
    """Draw the groups with counts and families, then suggested commands."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for group, members in by_group.items():
        counts = Counter[str]()  # chapters of a text are merged
        for family, names in members.items():
            counts[family.partition("/")[0]] += len(names)
        words = (f"{family} {count}" for family, count in counts.items())
        table.add_row(group, str(counts.total()), ", ".join(words))
    for command, meaning in HINTS:
        table.add_row("", "", f"{command}: {meaning}")
    return table
