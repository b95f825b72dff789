"""The command line: sub-commands by name, everything else to Hydra.

Nothing here imports torch, gpytorch or mlflow: ``--help``, ``list``, ``show`` and ``--cfg job`` answer at once.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import tempfile
from pathlib import Path

COMMANDS = {
    "list": (
        "runner.catalogue.list_and_show",
        "list [role]            components, experiments and studies, a line each",
    ),
    "show": ("runner.catalogue.list_and_show", "show <role>/<name>     every key of one, with its meaning and default"),
    "data": ("runner.system.data", "data list|fetch|verify data files: what is there, download, check"),
    "resume": ("runner.resume", "resume <run>           go on with an interrupted run"),
    "study": ("runner.study.study", "study <name>           all runs of a table or figure, in parallel"),
    "rerun": ("runner.study.study", "rerun --failed <study> the failed runs of a study again"),
    "report": (
        "runner.report.report",
        "report <study>         published | ours | difference | verdict, as HTML, Markdown, CSV, PNG",
    ),
    "compare": ("runner.record.compare", "compare <run> <run> …  configs and results side by side"),
    "sync": ("runner.record.sync", "sync                   push to MLflow what it has not got yet"),
    "ui": ("runner.system.ui", "ui                     MLflow's pages on 127.0.0.1"),
    "doctor": (
        "runner.system.doctor",
        "doctor                 versions, threads, GPU, store, data: what is fine, what is not",
    ),
    "completion": ("runner.catalogue.completion", "completion <shell>     tab completion for bash, zsh or fish"),
}
HELP = """runner: experiments in Bayesian and adversarial machine learning

  runner +experiment=sarcos_mdgp                       one run
  runner +experiment=sarcos_mdgp dataset.n_train=1000  any key, overridden (Hydra's grammar)
  runner -m +experiment=sarcos_mdgp seed=0,1,2         a sweep; add hydra/launcher=joblib, hydra/sweeper=optuna
  runner +experiment=sarcos_mdgp --cfg job             the composed config, without running it
  runner +experiment=sarcos_mdgp smoke=true            the same in seconds

Commands
{commands}

The same command again goes on with a run that was stopped, and skips one that is done.
Keys: seed, replicates, steps, eval_every, checkpoint_every, device, dtype, threads, smoke, debug, fresh, offline,
data_dir, output_dir, plugins.  `runner show config` tells what each means; `runner --hydra-help` tells Hydra's own flags.
"""


def _threads(argv: list[str]) -> str:
    given = [a.split("=", 1)[1] for a in argv if a.startswith("threads=")]
    return given[-1] if given and given[-1].isdigit() else os.environ.get("OMP_NUM_THREADS", "1")


def run(argv: list[str]) -> int:
    """Composes with Hydra and runs; every mistake is one or two lines on stderr."""
    # Thread pools read these when torch is imported, which has not happened yet.
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = _threads(argv)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for them in every installed package
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises instead of printing, and the message is ours
    gc.disable()  # what is imported stays; looking through it again and again is a tenth of the time that importing takes
    try:
        from runner.app import run_once

        code = run_once(argv)
        return _by_hydra(argv) if code is None else code
    finally:
        gc.enable()


def _by_hydra(argv: list[str]) -> int:
    """What is more than one run, or a mistake."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from runner.app import main
    from runner.mistakes import FAILURES, ConfigError
    from runner.sweep.optuna_sweeper import register

    register()
    sweeping = any(a in ("-m", "--multirun") for a in argv)
    failures = Path(tempfile.mkdtemp(prefix="runner-")) / "failures.jsonl" if sweeping else None
    if failures:
        from runner.compose.errors import late_choice

        complaint = late_choice(argv)
        if complaint:
            print(complaint, file=sys.stderr)
            return 2
        os.environ[FAILURES] = str(failures)
        if "tracking=false" not in argv:
            _prepare_store(argv)
    before, sys.argv = sys.argv, ["runner", *argv]
    try:
        main()
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        if isinstance(error, ValueError) and "Config group override" not in str(error):
            raise
        from runner.compose.errors import explain

        print(explain(error, argv), file=sys.stderr)
        return 2
    except ConfigError as error:  # of a sweeper; those of a job never come this far
        print(error, file=sys.stderr)
        return 2
    finally:
        sys.argv = before
    if failures and failures.exists():
        lines = failures.read_text().splitlines()
        print(
            f"{len(lines)} of the sweep's jobs failed; the others are done (give the same command to try them again)",
            file=sys.stderr,
        )
        return 1
    return 0


def _prepare_store(argv: list[str]) -> None:
    """Several jobs of one sweep would break the sqlite store by creating it at once: create it first."""
    from runner.record.tracking import create_store

    output_dir = Path(next((a.split("=", 1)[1] for a in reversed(argv) if a.startswith("output_dir=")), "outputs"))
    try:
        create_store(output_dir)
    except Exception as error:
        # Each job says so itself when it cannot reach MLflow; a sweep must not die of it.
        print(f"MLflow: {str(error).splitlines()[0] if str(error) else type(error).__name__}", file=sys.stderr)


def main() -> None:
    """Entry point of the ``runner`` command."""
    argv = sys.argv[1:]
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(HELP.format(commands="\n".join(f"  runner {text}" for _, text in COMMANDS.values())))
        raise SystemExit(0 if argv else 2)
    if argv[0] in COMMANDS:
        from runner.mistakes import ConfigError, RunFailure

        try:
            module = importlib.import_module(COMMANDS[argv[0]][0])
            raise SystemExit(module.main(argv))
        except (ConfigError, RunFailure) as error:
            print(error, file=sys.stderr)
            raise SystemExit(2 if isinstance(error, ConfigError) else 1) from None
        except BrokenPipeError:  # `runner list | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
    if not argv[0].startswith(("-", "+", "~")) and "=" not in argv[0]:
        from runner.mistakes import nearest

        print(f"{argv[0]}: neither a command nor an override{nearest(argv[0], COMMANDS)}", file=sys.stderr)
        raise SystemExit(2)
    raise SystemExit(run(argv))


if __name__ == "__main__":
    main()
