"""``runner list``: families and counts on one screen, or the names of a role, a line each."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence

from components import registry
from runner.catalogue import plugins
from runner.catalogue.families import families, is_within
from runner.catalogue.list_and_show import GROUPS, rows, use_extensions
from runner.disk import conf_folders
from runner.errors import ConfigError, nearest
from runner.terminal.arguments import Parser, add_json
from runner.terminal.streams import is_terminal
from runner.terminal.tables import print_json, print_table

PLURALS = {"study": "studies", "inference": "inference", "published": "published"}
HINTS = (
    ("runner list inference/sgmcmc", "one family; runner list inference: the whole role"),
    ("runner show inference/sgld", "every key of one, with its meaning and default"),
    ("runner list --all", "everything, a line each"),
    ("runner list study/gallego/4", "studies of chapter 4 of a text"),
)
SHORT = 3  # of them on a low screen
GAP = "  "
UNBROKEN = "\N{NO-BREAK SPACE}"  # between a family and its count
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
    from rich.text import Text

    from runner.terminal.printer import out

    for line in overview_lines(by_group, out.width, out.height):
        out.print(Text.assemble((line[0], "bold"), line[1]), soft_wrap=True)


def overview_lines(found: Overview, width: int, height: int) -> list[tuple[str, str]]:
    """Lines of the screen, their first words apart; without chapters where it is low."""
    lines = _lines(found, HINTS, width, True)
    return lines if len(lines) < height else _lines(found, HINTS[:SHORT], width, False)


def _lines(
    by_group: Overview, hints: Sequence[tuple[str, str]], width: int, with_chapters: bool
) -> list[tuple[str, str]]:
    """Group, count and families; then the next commands."""
    margin = max(map(len, by_group)) + 1
    lines: list[tuple[str, str]] = []
    for group, found in by_group.items():
        total = sum(map(len, found.values()))
        wrapped = textwrap.wrap(
            GAP.join(_describe_families(found, with_chapters)),
            width - margin,
            initial_indent=f"{total:>4}{GAP}",
            subsequent_indent=" " * (4 + len(GAP)),
            break_long_words=False,
            break_on_hyphens=False,
        )
        names = [group, *[""] * (len(wrapped) - 1)]
        lines += [
            (f"{name:<{margin}}", line.replace(UNBROKEN, " "))
            for name, line in zip(names, wrapped, strict=True)
        ]
    lines.append(("", ""))
    command_width = max(len(command) for command, _ in hints)
    return lines + [(f"{command:<{command_width}}{GAP}", meaning) for command, meaning in hints]


def _describe_families(found: dict[str, list[str]], with_chapters: bool) -> Iterable[str]:
    """Families with their counts; texts with the counts of their chapters."""
    texts: dict[str, dict[str, int]] = {}
    for family, names in found.items():
        text, _, chapter = family.partition("/")
        texts.setdefault(text, {})[chapter] = len(names)
    for text, counts in texts.items():
        words = f"{text} {sum(counts.values())}"
        chapters = ", ".join(f"{chapter}: {n}" for chapter, n in counts.items() if chapter)
        shown = f"{words} (ch. {chapters})" if chapters and with_chapters else words
        yield shown.replace(" ", UNBROKEN)
