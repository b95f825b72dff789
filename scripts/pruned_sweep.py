"""What pruning saves where settings are chosen: the grid of digits_security_validation, by Optuna,
whole and pruned.

    python -m scripts.pruned_sweep ARA --output-dir outputs/pruned            # an hour of one core as it stands
    python -m scripts.pruned_sweep AT --steps 500 --rule median

Both sweeps go through the same settings in the same order; wanted is the largest mean accuracy
under PGD of 0.05 to 0.3 on held-out training images, as in the study.  Printed are the choice of
each and the steps that it took.  A sweep that is there is gone on with, or read."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from runner.sweep.kept import load
from runner.sweep.trials import completed_trials, pareto_front, steps_taken

SGD = ["inference.optimizer=sgd", "inference.momentum=0.5"]
# as the rows of conf/study/digits_security_validation.yaml, every size with every rate
DEFENCES = {
    "none": ["inference=map", *SGD],
    "ARA": ["inference.train_eps=choice(0.1,0.2,0.3,0.4,0.5)"],
    "AT": [
        "inference=adversarial_training",
        *SGD,
        "inference.training_attacker=fgsm",
        "inference.train_eps=choice(0.05,0.1,0.2,0.3)",
    ],
    "AT-PGD": [
        "inference=adversarial_training",
        *SGD,
        "inference.training_attacker={name: pgd, steps: 7, step_size: 0.357}",
        "inference.train_eps=choice(0.1,0.2,0.3,0.4)",
    ],
}
FIRST = 4  # evaluations of a replicate: the first is where halving begins


def sweep(defence: str, rule: str, reduction: int, steps: int, folder: Path) -> Path:
    """Runs a sweep, or the rest of it; the folder of its report."""
    every = steps // FIRST
    words = [
        *(
            "-m",
            "+experiment=digits_security",
            "validation=0.25",
            "attacker=pgd",
            "replicates=2",
            f"steps={steps}",
        ),
        *(
            f"eval_every={every}",
            "objective=mean_robust_accuracy",
            *DEFENCES[defence],
            "inference.lr=choice(0.05,0.1,0.2)",
        ),
        *("hydra/sweeper=optuna", "hydra.sweeper.sampler=grid", "hydra.sweeper.direction=maximize"),
        *(
            f"hydra.sweeper.pruner={rule}",
            f"hydra.sweeper.warmup_steps={every}",
            "hydra.sweeper.startup_trials=4",
        ),
        f"hydra.sweeper.reduction={reduction}",
        *(f"output_dir={folder}", "tracking=false"),
    ]
    log = folder.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        subprocess.run(
            [sys.executable, "-m", "runner.commands.cli", *words],
            stdout=file,
            stderr=subprocess.STDOUT,
            check=True,
        )
    return folder / "sweeps" / "digits_security"


def main() -> int:
    """Exit code 1 where the pruned sweep chooses otherwise."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("defence", choices=sorted(DEFENCES))
    parser.add_argument("--rule", default="halving", choices=["median", "halving", "hyperband"])
    parser.add_argument(
        "--reduction", type=int, default=3, help="halving and hyperband go on with one in so many"
    )
    parser.add_argument(
        "--steps", type=int, default=2000, help="of each replicate (default: the study's)"
    )
    parser.add_argument("--output-dir", type=Path, default=Path("outputs/pruned"))
    arguments = parser.parse_args()
    settings, step_counts = [], []
    for rule in ("none", arguments.rule):
        reduction = (
            arguments.reduction if rule == arguments.rule and arguments.reduction != 3 else ""
        )
        name = f"{arguments.defence.lower()}_{rule}{reduction}"
        study = load(
            sweep(
                arguments.defence,
                rule,
                arguments.reduction,
                arguments.steps,
                arguments.output_dir / name,
            )
        )
        assert study is not None
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
    print(
        f"{'the same' if same else 'ANOTHER'} setting for {step_counts[1] / step_counts[0]:.0%} of the steps"
    )
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
