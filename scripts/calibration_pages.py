"""Pages of simulation-based calibration from kept ranks.

    python -m scripts.calibration_pages                     pages of docs/results/calibration.yaml from kept ranks
    python -m scripts.calibration_pages sbc --keep outputs  run missing rows there (``runner sbc``) and keep their ranks

``PAGE_ranks.csv`` has a line for each row and quantity: ranks of the true values, and the commit."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from components.figures.labels import readable
from components.figures.samples.calibration import calibration_figures
from runner.commands.sbc.rank_record import FACTS, HEADER, SEED, RankResults, read_rows
from runner.disk.atomic import write_bytes, write_text
from runner.disk.read_yaml import load_untrusted
from scripts.pages import render
from scripts.prose.scores import FOLDER

PAGES = "calibration.yaml"
DRAWS = 99
BINS = 10
COLUMNS = ("row", "quantity", "commit", "failed", "ranks")
LIKELIHOODS = ("log joint", "log likelihood")  # the quantity that detects a posterior without data

Kept = dict[str, RankResults]  # row -> ranks


def command(page: dict[str, Any], row: str) -> str:
    """Command of a row, in which later words replace earlier ones with the same key."""
    words = dict(word.split("=", 1) for word in f"{page['words']} {page['rows'][row]}".split())
    return "runner sbc " + " ".join(f"{key}={value}" for key, value in words.items())


def run(page: dict[str, Any], row: str, outputs: Path) -> Path:
    """Run a row up to its number of data sets; return the folder of its record."""
    words = [*command(page, row).split()[2:], f"output_dir={outputs}"]
    sets = ["--data-sets", str(page["data_sets"])]
    call = [sys.executable, "-m", "runner.commands.cli", "sbc", *words, *sets]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.splitlines()[-1])


def keep(name: str, page: dict[str, Any], outputs: Path) -> None:
    """Run rows and write their ranks."""
    lines = []
    for row in page["rows"]:
        folder = run(page, row, outputs)
        results = RankResults.of_rows(read_rows(folder).values(), DRAWS, BINS)
        commit = json.loads((folder / FACTS).read_text(encoding="utf-8"))["code"]["sha"]
        for quantity, ranks in results.ranks.items():
            numbers = " ".join(map(str, ranks.tolist()))
            lines.append((row, quantity, commit, len(results.errors), numbers))
    text = pd.DataFrame(lines, columns=COLUMNS).to_csv(index=False, lineterminator="\n")
    write_text(FOLDER / f"{name}_ranks.csv", text)


def read(name: str) -> Kept:
    """Kept ranks of a page."""
    kept = {}
    lines = pd.read_csv(FOLDER / f"{name}_ranks.csv", dtype={"ranks": str})
    for row, row_lines in lines.groupby("row", sort=False):
        ranks = {
            each.quantity: np.array(each.ranks.split(), dtype=int)
            for each in row_lines.itertuples()
        }
        errors = dict.fromkeys(range(row_lines["failed"].iloc[0]), "failed")
        kept[str(row)] = RankResults(ranks, DRAWS, BINS, errors)
    return kept


def make_page(name: str, page: dict[str, Any], kept: Kept) -> str:
    """Text of a page: table, verdict and command of each row."""
    commands = {row: command(page, row) for row in kept}
    sizes = {"draws": DRAWS, "bins": BINS, "header": HEADER}
    return render("calibration", name=name, page=page, kept=kept, commands=commands, **sizes)


def draw(kept: Kept) -> bytes:
    """PNG with histograms of ranks of the log joint or likelihood, for rows that have one."""
    chosen = {
        row: results.ranks[quantity]
        for row, results in kept.items()
        for quantity in LIKELIHOODS
        if quantity in results.ranks
    }
    figure = calibration_figures(chosen, DRAWS, BINS, np.random.default_rng(SEED))["ranks"]
    content = io.BytesIO()
    readable(figure).savefig(content, format="png", dpi=100)
    return content.getvalue()


def main(argv: list[str]) -> int:
    """Write pages; return the exit code."""
    pages: dict[str, Any] = load_untrusted(FOLDER / PAGES)
    parser = argparse.ArgumentParser(prog="python -m scripts.calibration_pages")
    parser.add_argument("page", nargs="*", help=f"pages: {', '.join(pages)} (default: all)")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="run in this folder and keep the ranks"
    )
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.page) - set(pages):
        parser.error(
            f"{', '.join(sorted(unknown))}: not in {PAGES}; choose from {', '.join(pages)}"
        )
    for name in arguments.page or pages:
        if arguments.keep is not None:
            keep(name, pages[name], arguments.keep)
        kept = read(name)
        write_text(FOLDER / f"{name}.md", make_page(name, pages[name], kept))
        if arguments.keep is not None:
            write_bytes(FOLDER / f"{name}.png", draw(kept))
        print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
