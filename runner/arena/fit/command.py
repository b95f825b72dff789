"""``runner fit model.py:f``: every method that fits a density or a model of the user, on one page."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import zlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from components.metrics.limits import RHAT
from runner.arena import page
from runner.arena.command import split_plugins
from runner.arena.fit.user_file import describe_file
from runner.arena.given import load_density
from runner.arena.rows import make_row, measure, read_lines, snapshot_name
from runner.arena.standing.boards import Board
from runner.arena.suite import GROUP, Suite, load_suite
from runner.arena.summary import print_board
from runner.catalogue import plugins
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.disk.read_yaml import load_untrusted
from runner.errors import RunFailure
from runner.record.scores import final_scores
from runner.study import snapshot as snapshots
from runner.study.snapshot import Snapshot
from runner.study.study import run_remaining
from runner.study.table_specs import Row
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.printer import number
from runner.terminal.tables import print_named

KEYS = Path(__file__).with_name("suite.yaml")
LEAST_ESS = 2500  # the error of the truth is a fifth of the tolerance, 0.1 standard deviations
NOTHING = "nothing: no method solved it and passed its checks; try a longer --budget"


def main(argv: list[str]) -> int:
    """Run the methods, write the page and recommend one; return exit code 1 if none is
    recommended.
    """
    parser = Parser(description="Recommends a method for your density or model.")
    parser.add_argument("model", help="FILE.py:FUNCTION of torch, NumPyro, PyMC; FILE.stan")
    parser.add_overrides("keys of the dataset: dataset.dim=2")
    parser.add_argument("--data", help="JSON file: keywords of the function, or Stan's data")
    parser.add_argument("--methods", help="nuts,mala,… (default: all that fit)")
    parser.add_argument("--budget", help="small (default), medium or large")
    parser.add_count("--jobs", "parallel runs (default: one per core)", os.cpu_count())
    plugins.add_own_options(parser, "a module with methods of your own for --methods")
    add_output_dir(parser)
    given = parser.parse_with_overrides(argv, "model")
    base = load_suite("posteriors_small")
    budget = base.budget(given.budget)
    rows = choose_rows(base.rows, given.methods)
    print_named("plan", f"a long run for the truth, then methods: {len(rows)}")
    name, words = describe_file(given.model, given.data)
    given.overrides += words
    given.plugin, words = split_plugins(given)
    if given.methods is not None:
        for row in rows:  # a name that does not exist or does not fit is an error
            prepare(compose([*base.overrides, *words, *row.overrides]))
    keys = base.model_dump(exclude_unset=True) | load_untrusted(KEYS)
    suite = Suite(**keys | {"problems": {name: words}})
    density, *_ = load_density(suite, name, ["inference=nuts"])
    # other code, data or settings are another suite
    digest = zlib.crc32(" ".join([density.name, *words]).encode())
    suite = suite.model_copy(update={"name": f"fit_{name}_{digest:08x}"})
    moments, truth = find_truth(suite, density.names, given)
    print_named("truth", truth)
    suite.problems[name] += moments
    snapshot = run_rows(suite, budget, rows, given.methods or "all", given)
    lines = read_lines(suite, budget, [snapshot])
    board = Board(suite, budget, lines, rows if given.methods else [], f"runner {shlex.join(argv)}")
    print_board(board)
    chosen = recommend(board)
    advice = chosen or NOTHING
    print_named("recommended", advice)
    described = {"description": f"Recommended: {advice}. Truth: {truth}.", "rows": rows}
    board = replace(board, suite=suite.model_copy(update=described))
    path = snapshot.output_dir / GROUP / suite.name / f"{budget}.html"
    print_named("page", page.write(board, path))
    return int(not chosen)


def choose_rows(rows: Sequence[Row], methods: str | None) -> list[Row]:
    """Rows named by ``methods``, names or components with commas; a component without a row gets
    one. If it is None, all rows, without samplers of other packages if these are not installed.
    """
    if methods is None:
        return [row for row in rows if find_spec("blackjax") or "(peer)" not in row.name]
    chosen = list[Row]()
    for word in methods.split(","):
        words = f"inference={word}"
        named = [row for row in rows if row.name == word or words in row.overrides]
        chosen += named or [make_row([words], word)]
    return chosen


def run_rows(
    suite: Suite, budget: str, rows: Sequence[Row], name: str, given: argparse.Namespace
) -> Snapshot:
    """Freeze the rows under a name, unless an earlier command did, and execute the remaining runs.

    Raises:
        SystemExit: a signal ended them.
    """
    output_dir = given.output_dir.resolve()
    label = snapshot_name(suite, budget, name)
    snapshot = snapshots.load(label, output_dir)
    if snapshot is None:
        study = suite.to_study([measure(suite, budget, row) for row in rows])
        snapshot = snapshots.take(study, label, [], output_dir, given.plugin)
        snapshots.save(snapshot)
    code = run_remaining(snapshot, snapshot.runs, given.jobs)
    if code > 1:
        raise SystemExit(code)
    return snapshot


def find_truth(
    suite: Suite, names: Sequence[str], given: argparse.Namespace
) -> tuple[list[str], str]:
    """The moments of a long run, with their precision, as overrides of the dataset, and its
    diagnostics in words.

    Raises:
        RunFailure: it failed, its chains disagree, or they have too few independent draws.
    """
    snapshot = run_rows(suite.model_copy(update={"replicates": 1}), "", suite.rows, "truth", given)
    facts = snapshot.facts(snapshot.runs[0]) or {}
    if error := facts.get("error"):
        (words,) = suite.problems.values()
        raise RunFailure(
            f"fit: without a truth, nothing can be recommended: the long run failed: {error}\nrun one method "
            f"without a truth, in the folder of the model: runner model=target_density {shlex.join(words)} "
            "inference=random_walk_mh steps=20000"
        )
    scores = final_scores(facts).get(0, {})
    rhat = scores.get("rhat", math.inf)
    ess = scores.get("ess", 0.0)
    text = f"8 chains of NUTS, R̂ {rhat:.4f}, ESS {ess:,.0f}"
    if not (rhat <= RHAT and ess >= LEAST_ESS):
        raise RunFailure(
            f"fit: without a truth, nothing can be recommended: {text}, but R̂ ≤ {RHAT} and ESS ≥ {LEAST_ESS:,} "
            "are required; reparametrise the model"
        )
    moments = [
        f"dataset.{key}={[scores[f'{key}/{name}'] for name in names]}" for key in ("mean", "sd")
    ]
    moments.append(f"dataset.ess={ess}")
    return moments, text


def recommend(board: Board) -> str:
    """The row that solves the problem at the least cost, of those that pass their checks, with the
    reason; empty if no row does.
    """
    sound = [each for each in board.solved if each["solved"] and not each["states"]["doubted"]]
    if not sound:
        return ""
    cost = number(sound[0]["median_cost"])
    reason = f"that solved the problem and passed their checks ({len(sound)})"
    return f"{sound[0]['row']}, the cheapest ({cost} gradients) of the methods {reason}"
