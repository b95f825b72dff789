"""What pruning saves where settings are chosen: the grid of digits_security_validation, by Optuna,
whole and pruned.

    python -m scripts.pruned_sweep ARA --output-dir outputs/pruned            # an hour of one core as it stands
    python -m scripts.pruned_sweep AT --steps 500 --rule median

Both sweeps go through the same settings in the same order; wanted is the largest mean accuracy
under PGD of 0.05 to 0.3 on held-out training images, as in the study.  Printed are the choice of
each and the steps that it took.  A sweep that is there is gone on with, or read."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import yaml
from optuna import Study

from runner.sweep.kept import load
from runner.sweep.trials import completed_trials, pareto_front, steps_taken

TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
FIRST = 4  # evaluations of a replicate: the first is where halving begins


def sweep(options: argparse.Namespace, rule: str, folder: Path) -> Study:
    """Runs a sweep, or the rest of it; its trials."""
    keys = {"steps": options.steps, "every": options.steps // FIRST, "rule": rule}
    words = TABLE["sweep"].format(**keys, reduction=options.reduction, folder=folder)
    words = shlex.split(f"{words} {TABLE['defences'][options.defence]}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".log").open("w") as log:
        command = [sys.executable, "-m", "runner.commands.cli", *words]
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=True)
    study = load(folder / "sweeps" / "digits_security")
    assert study is not None
    return study


def main() -> int:
    """Exit code 1 where the pruned sweep chooses otherwise."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("defence", choices=sorted(TABLE["defences"]))
    add("--rule", default="halving", choices=["median", "halving", "hyperband"])
    add("--reduction", type=int, default=3, help="halving and hyperband keep one in so many")
    add("--steps", type=int, default=2000, help="of each replicate (default: the study's)")
    add("--output-dir", type=Path, default=Path("outputs/pruned"))
    options = parser.parse_args()
    settings = []
    step_counts = []
    for rule in ("none", options.rule):
        is_default = rule != options.rule or options.reduction == 3
        name = f"{options.defence.lower()}_{rule}{'' if is_default else options.reduction}"
        study = sweep(options, rule, options.output_dir / name)
        best = next(t for t in completed_trials(study) if t.number in pareto_front(study))
        ended = [t for t in study.trials if t.state.name in ("COMPLETE", "PRUNED")]
        steps = steps_taken(ended)
        hours = sum(t.duration.total_seconds() for t in ended if t.duration) / 3600
        print(
            f"{rule:10s} {steps:8,} steps  {hours:.2f} h  {len(ended)} trials  {best.values[0]:.4f} with {best.params}"
        )
        settings.append(best.params)
        step_counts.append(steps)
    same = settings[0] == settings[1]
    share = step_counts[1] / step_counts[0]
    print(f"{'the same' if same else 'ANOTHER'} setting for {share:.0%} of the steps")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
