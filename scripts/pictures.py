"""``python -m scripts.pictures`` (``make pictures``): draw a terminal, a report and a contact sheet
for docs/pictures.

The terminal is an SVG of a smoke run, exported by rich.  The report is a page of ``runner report``
for kept scores, rendered by a headless Chromium; without Chromium its picture is kept, and a note is
printed.  The contact sheet shows the figures of the smoke runs of ``make pictures``."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from matplotlib.image import imread
from PIL import Image
from rich._export_format import CONSOLE_SVG_FORMAT

from components.figures.style import bare, panel_grid
from scripts.prose.scores import FOLDER, list_scores

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
COMMAND = ["+experiment=digits_fgsm", "smoke=true", "tracking=false"]
REPORT = "table_4_1"
RUNS = ROOT / "build" / "pictures"
WIDTH = 112  # columns
PAGE = "1000,760"  # pixels
# without rich's font, which is loaded from a server on the network
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def terminal(target: Path) -> None:
    """Save the coloured output of a run."""
    from runner.commands.app import run_once
    from runner.terminal import printer

    printer.out.record = True
    printer.out.width = WIDTH
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        code = run_once(COMMAND)
    if code:
        raise SystemExit(f"the run ended with {code}")
    svg = printer.out.export_svg(
        title=f"runner {' '.join(COMMAND[:2])}", code_format=FORMAT, unique_id="runner"
    )
    target.write_text(svg, encoding="utf-8")


def report(target: Path) -> None:
    """Save the first page of a report."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        print(f"Chromium not found: {target.name} is unchanged")
        return
    with tempfile.TemporaryDirectory() as folder:
        scores_path = list_scores(FOLDER)[REPORT]
        report_args = [
            "report",
            REPORT,
            "--with",
            str(scores_path),
            "--output-dir",
            folder,
            "--to",
            folder,
        ]
        subprocess.run(
            [sys.executable, "-m", "runner.commands.cli", *report_args],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        page = (Path(folder) / f"{REPORT}.html").as_uri()
        browser_args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--window-size={PAGE}",
        ]
        subprocess.run(
            [browser, *browser_args, f"--screenshot={target}", page],
            check=True,
            capture_output=True,
        )


def contact_sheet(target: Path) -> None:
    """Draw the figures of the runs in ``RUNS``, one of each name, in 48 colours."""
    files = {path.stem: path for path in RUNS.glob("*/*/figures/*.png")}
    figure, axes, _ = panel_grid(len(files), 8, width=2.5, height=1.9)
    for axis, name in zip(axes, sorted(files), strict=True):
        axis.imshow(imread(files[name]))
        axis.set_title(name, fontsize=8)
        bare(axis)
    figure.savefig(target)
    Image.open(target).quantize(48).save(target, optimize=True)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    terminal(PICTURES / "terminal.svg")
    report(PICTURES / "report.png")
    contact_sheet(PICTURES / "contact_sheet.png")
