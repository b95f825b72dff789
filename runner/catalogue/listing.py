"""``runner list``: families and counts on one screen, or the names of a role, a line each."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from components import registry
from runner.catalogue import plugins
from runner.catalogue.families import families, is_within
from runner.catalogue.list_and_show import GROUPS, rows, use_extensions
from runner.disk import conf_folders
from runner.errors import ConfigError, nearest
from runner.terminal.arguments import Parser, add_json
from runner.terminal.streams import is_terminal
from runner.terminal.tables import print_json, print_table

if TYPE_CHECKING:
    from rich.table import Table

PLURALS = {"study": "studies", "inference": "inference", "published": "published"}
HINTS = (
    ("runner list inference/sgmcmc", "one family"),
    ("runner show inference/sgld", "every key of one"),
    ("runner list --all", "everything, a line each"),
)
Overview = dict[str, dict[str, list[str]]]  # group -> family -> names


def main(argv: list[str]) -> int:
    """``list``, the first word of ``argv``."""
    parser = Parser(
        prog="runner list",
        description="Without a role: families of components, experiments and studies, with counts. "
        "With one: what it has, a line each: name, what it is, paper (experiments: what they "
        "choose).",
        epilog="Exit code 0, or 2 for a role that does not exist. Not on a terminal, lines are "
        "tab-separated; families have their members in the last column.",
    )
    parser.add_argument(
        "role",
        nargs="?",
        help=f"one of {', '.join(GROUPS)}, or one of its families: inference/sgmcmc, "
        "study/gallego/4 (chapter 4)",
    )
    parser.add_argument("--all", action="store_true", help="everything, a line each")
    add_json(parser)
    conf_folders.add_option(parser)
    plugins.add_option(parser, "a module of yours, whose components are among the others")
    args = parser.parse_args(argv[1:])
    use_extensions(args)
    if args.role is not None:
        _list_role(args.role, args.json)
    elif args.all or args.json:
        for group in GROUPS:
            _list_all_of(group, args.json)
    else:
        _print_overview()
    return 0


# ---- lines of a role
# --------------------------------------------------------------------------------------------------
def _parse_role(word: str) -> tuple[str, str]:
    """Role and family that a word names; plurals of roles are roles too.

    Raises:
        ConfigError: it names none.
    """
    role, _, family = word.strip("/").partition("/")
    role = {plural(group): group for group in GROUPS}.get(role, role)
    if role not in GROUPS:
        raise ConfigError(f"{role}: no such role{nearest(role, GROUPS)}")
    known = families(role)
    if family and not any(is_within(one, family) for one in known):
        raise ConfigError(f"{role}/{family}: no such family{nearest(family, known)}")
    return role, family


def plural(group: str) -> str:
    """Plural of a group's name."""
    return PLURALS.get(group, f"{group}s")


def _list_role(word: str, as_json: bool) -> None:
    role, family = _parse_role(word)
    entries = rows(role)
    if family:
        by_family = families(role).items()
        members = {name for one, names in by_family if is_within(one, family) for name in names}
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
        print_json(
            {"group": group, "name": name, "sentence": line, third: last}
            for name, line, last in entries
        )
    else:
        print_table(title, (group, "what it is", third), entries)


# ---- families
# --------------------------------------------------------------------------------------------------
def _print_overview() -> None:
    """Families of every group with their counts; piped, a line for each family."""
    by_group = {group: found for group in GROUPS if (found := families(group))}
    if not is_terminal(sys.stdout):
        for group, found in by_group.items():
            for family, names in found.items():
                print("\t".join((group, family, str(len(names)), ", ".join(names))))
        return
    from runner.terminal.printer import out

    out.print(draw_overview(by_group))


def draw_overview(by_group: Overview) -> Table:
    """Group, count and families; then the next commands."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for group, found in by_group.items():
        counts = Counter[str]()  # texts are listed without their chapters
        for family, names in found.items():
            counts[family.partition("/")[0]] += len(names)
        words = (f"{family} {count}" for family, count in counts.items())
        table.add_row(group, str(counts.total()), ", ".join(words))
    for command, meaning in HINTS:
        table.add_row("", "", f"{command}: {meaning}")
    return table
