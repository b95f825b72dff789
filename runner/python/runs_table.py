"""``runner runs``: print the table of recorded runs or write it to a file."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.python.frames import COLUMNS, Row, list_rows, to_frame
from runner.record import folders
from runner.record.checks import combine_checks
from runner.record.facts import load_facts
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.csv_cells import escape_table
from runner.terminal.printer import format_estimate, number, out
from runner.terminal.streams import is_terminal
from runner.terminal.tables import fit_columns, print_json, print_named, print_table, to_json

if TYPE_CHECKING:
    import pandas as pd


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Convert to Parquet; lists and mixed types in a column are written as JSON.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    frame = frame.copy()
    for name in frame.columns:
        kinds = {type(value) for value in frame[name]} - {type(None)}
        if frame[name].dtype.kind == "O" and (len(kinds) > 1 or kinds & {list, dict}):
            frame[name] = [_to_text(value) for value in frame[name]]
    buffer = io.BytesIO()
    try:
        frame.to_parquet(buffer, index=False)
    except ImportError:
        raise ConfigError(
            "--to: Parquet requires pyarrow; pip install pyarrow, or use .csv or .json"
        ) from None
    return buffer.getvalue()


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return None if isinstance(value, float) and math.isnan(value) else json.dumps(value)


def to_csv(frame: pd.DataFrame) -> bytes:
    """Convert to CSV without loss of precision."""
    return escape_table(frame).to_csv(index=False).encode()


def _to_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [to_json(row) for row in frame.astype(object).to_dict("records")]


CHOICE = ("experiment", "inference", "model", "dataset")
AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
NEWEST = 200  # runs on a terminal
SHORT = ("id", *CHOICE, "state", "age", "seconds", "checks", "scores")

WRITERS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    ".parquet": to_parquet,
    ".pq": to_parquet,
    ".csv": to_csv,
    # a list of objects, with null for NaN
    ".json": lambda frame: (
        json.dumps(_to_rows(frame), indent=1, ensure_ascii=False) + "\n"
    ).encode(),
}


def _parse_filters(words: list[str]) -> dict[str, Any]:
    """Conditions by column or dotted key.

    Raises:
        ConfigError: a value is invalid YAML, or a key is repeated.
    """
    filters: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key in filters:
            raise ConfigError(f"runner runs: {key}: given twice; give a list, {key}=[…, …]")
        try:
            # an id of digits is not a number
            filters[key] = yaml.load(value, yaml.BaseLoader if key == "id" else yaml.SafeLoader)
        except yaml.YAMLError:
            raise ConfigError(f"runner runs: {word}: the value is invalid YAML") from None
    return filters


def main(argv: list[str]) -> int:
    """Print or write the table."""
    parser = Parser(
        description="Print one row for each recorded run: names of its components, seed, state, times, and for every score "
        "the mean over replicates and its standard error, like runner.runs() in Python.",
        epilog="Filters: a column or a key of the config with a required value, or a list of values: state=done "
        "inference='[sgld,nuts]' steps=1000. In a pipe or file the columns are separated by tabs. "
        "Exit code 0, or 2 for an unknown key.",
    )
    parser.add_argument(
        "filters", nargs="*", metavar="key=value", help="filters, and names of runs (default: all)"
    )
    parser.add_argument(
        "--to", type=Path, metavar="FILE", help="file to write: FILE.parquet, FILE.csv or FILE.json"
    )
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="KEY",
        help="a key of the config as an additional column, such as inference.lr",
    )
    parser.add_argument(
        "--parts", action="store_true", help="add scores of parts (rmse/task) as columns"
    )
    add_output_dir(parser, must_exist=True)
    arguments = parser.parse(argv)
    target = arguments.to
    if target is not None and target.suffix not in WRITERS:
        raise ConfigError(f"--to {target}: must end with {', '.join(WRITERS)}")
    output_dir = arguments.output_dir
    names = [word for word in arguments.filters if "=" not in word]
    filters = _parse_filters([word for word in arguments.filters if "=" in word])
    records = {folders.find(name, output_dir): None for name in names} or folders.runs(output_dir)
    listed = list_rows(records, arguments.setting, arguments.parts, filters)
    columns = dict.fromkeys(chain(COLUMNS, arguments.setting, *listed))
    if target is not None:
        write_bytes(target, WRITERS[target.suffix](to_frame(listed, arguments.setting)))
        print_named("written", f"{target} ({len(listed)} runs, {len(columns)} columns)")
        return 0
    rows = [to_json(columns | row) for row in listed]
    if arguments.json:
        print_json(rows)
    elif is_terminal(sys.stdout):
        _print_summary(rows, arguments.setting)
    else:
        print_table("", list(columns), map(_to_cells, rows), has_header_in_pipe=True)
    return 0


def _to_cells(row: Row) -> list[str]:
    return ["" if value is None else str(value) for value in row.values()]


def _print_summary(rows: list[Row], settings: list[str]) -> None:
    """Print a line for each of the newest runs, with its first two scores; columns that do not fit
    are omitted."""
    lines = [_summarise(row, settings) for row in rows[-NEWEST:]]
    dropped = ["seconds", *CHOICE[1:]]
    while dropped and lines:
        if fit_columns([list(lines[0]), *map(list, map(dict.values, lines))], out.width):
            break
        name = dropped.pop()
        lines = [{key: cell for key, cell in line.items() if key != name} for line in lines]
    title = f"the newest {NEWEST} of {len(rows)} runs" if len(rows) > NEWEST else ""
    print_table(title, list(lines[0]) if lines else SHORT, [list(line.values()) for line in lines])
    if lines and (hidden := len(rows[0]) - len(SHORT)):
        print(f"{hidden} more columns: runner runs --to FILE.csv, or --json")


def _show_age(started: str) -> str:
    """Time since a run's start in the largest suitable unit."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()
    size, unit = next((each for each in AGES if seconds >= each[0]), AGES[-1])
    return f"{seconds / size:.0f}{unit}"


def _summarise(row: dict[str, Any], settings: list[str]) -> dict[str, str]:
    checks = combine_checks(load_facts(Path(row["record"])) or {})
    n_passed = sum(check["passed"] is True for check in checks)
    scores = [name for name in row if name not in (*COLUMNS, *settings) and f"{name}_se" in row]
    shown = [name for name in scores if row[name] is not None][:2]
    return {
        "id": row["id"][:8],
        **{name: str(row[name] or "") for name in CHOICE},
        "state": "smoke" if row["smoke"] and row["state"] == "done" else row["state"],
        "age": _show_age(row["started"]),
        "seconds": "" if row["seconds"] is None else number(row["seconds"]),
        "checks": f"{n_passed}/{len(checks)}" if checks else "",
        **{name: str(row[name]) for name in settings},
        "scores": ", ".join(
            f"{name} {format_estimate(row[name], row[f'{name}_se'] or math.nan)}" for name in shown
        ),
    }
