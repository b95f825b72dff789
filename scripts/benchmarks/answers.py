"""Benchmark of the time from a command to its answer, against users' own scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from functools import partial
from itertools import count
from pathlib import Path

from scripts.benchmarks.harness import Report
from scripts.peers.installed import AbsentPeer

MOST = 10.0  # CPU seconds of the airline command
# arguments of runner
OURS = {
    "digits": ("+experiment=digits_fgsm",),
    "kidiq": ("+experiment=posteriordb", "dataset.posterior=kidiq-kidscore_momiq"),
    "airline": ("+experiment=structural_airline",),
}


def measure_children() -> float:
    """CPU seconds, user and system, of all processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def run_ours(arguments: tuple[str, ...], folder: Path) -> dict[str, float]:
    """Final scores of a run with its figures, posterior and MLflow record."""
    command = [sys.executable, "-m", "runner", *arguments, f"output_dir={folder}"]
    subprocess.run([*command, "offline=true"], check=True, capture_output=True)
    (path,) = folder.glob("*/*/metrics.jsonl")
    scores: dict[str, float] = json.loads(path.read_text("utf-8").splitlines()[-1])["metrics"]
    return scores


def run_theirs(name: str) -> dict[str, float]:
    """Answer that a user's script prints as its last line."""
    command = [sys.executable, "-m", f"scripts.peers.user_{name}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if "ModuleNotFoundError" in result.stderr:
        raise AbsentPeer(result.stderr.splitlines()[-1])
    result.check_returncode()
    answer: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return answer


def assert_equal_answers(name: str, ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Assert that the answers differ by no more than their errors explain."""
    if name == "digits":
        # accuracies on 500 images, with other splits and other initial weights
        pairs = {eps: (ours[f"robust_accuracy/eps={eps}"], value) for eps, value in theirs.items()}
        most = 0.1
    elif name == "kidiq":
        pairs = {"slope": (ours["mean/beta[2]"], theirs["slope"])}
        most = 5 * theirs["sd"] * (1 / ours["ess"] + 1 / theirs["ess"]) ** 0.5
    else:
        pairs = {"mae": (ours["mae"], theirs["mae"])}
        most = 0.02
    for key, (a, b) in pairs.items():
        print(f"{name}, {key}: {a:.4g} by ours, {b:.4g} by the script")
        assert abs(a - b) < most, f"{name}: {key} differs by more than {most:.3g}"


def measure(options: Namespace, report: Report) -> None:
    """CPU seconds from a command to its answer, against a script that a user would write for it.

        python -m scripts.benchmarks answers

    The whole process counts, with imports, checks, figures and records; the upload to MLflow, which
    continues after the prompt has returned, does not.  The scripts draw no figures and check nothing.
    For kidiq the ratio is that of effective draws per CPU second.  The first run is not timed: it
    compiles loops, and the two answers must agree.
    """
    folders = count()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.answers:
            ways = {
                "ours": lambda name=name: run_ours(OURS[name], Path(folder, str(next(folders)))),
                "theirs": partial(run_theirs, name),
            }
            try:
                answers = {way: run() for way, run in ways.items()}
            except AbsentPeer:
                continue
            assert_equal_answers(name, answers["ours"], answers["theirs"])
            seconds = report.time(ways, options.repeats, warmups=0, clock=measure_children)
            if name == "airline":
                report.record("airline, 10 s by ours", MOST / seconds["ours"])
            if "ess" in answers["theirs"]:
                seconds = {way: seconds[way] / answers[way]["ess"] for way in ways}
            report.compare(name, seconds["ours"], seconds["theirs"])
