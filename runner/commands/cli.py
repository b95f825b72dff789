"""The command line: sub-commands by name, everything else to Hydra.

Nothing here imports torch, gpytorch or mlflow: ``--help``, ``list``, ``show`` and
``--cfg job`` answer immediately.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from types import FrameType
from typing import TextIO

from runner.catalogue.sub_commands import COMMANDS

SHORTEST_NAME = 4  # characters of a run's name in a message about it
HELP_WORDS = ("-h", "--help", "help")
HELP = """runner: experiments in Bayesian and adversarial machine learning

  runner +experiment=mog                  one run
  runner +experiment=mog inference=nuts   the same with any key overridden
  runner +experiment=mog smoke=true       a test run of a few seconds
  runner +experiment=mog --cfg job        the composed config, without a run
  runner +experiment=mog --json           one JSON object per line
  runner -m +experiment=mog seed=0,1,2    a sweep; hydra/launcher=joblib runs it in
                                          parallel, hydra/sweeper=optuna searches
  runner --version                        the version of the runner

Commands
{commands}

The same command resumes an interrupted run and skips a finished one.
Keys: seed, replicates, steps, eval_every, checkpoint_every, device, dtype,
threads, smoke, debug, fresh, offline, data_dir, output_dir, plugins.
`runner show config` explains each; `runner --hydra-help` lists Hydra's flags.
"""


def _threads(argv: list[str]) -> str:
    given = [word.removeprefix("threads=") for word in argv if word.startswith("threads=")]
    return [os.environ.get("OMP_NUM_THREADS", "1"), *given][-1]


def run(argv: list[str]) -> int:
    """Compose a config with Hydra and run it; errors of users are one or two lines on stderr."""
    # Thread pools read these variables when torch is imported, which is later.
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = _threads(argv)
    # Hydra then raises its errors, which are reworded here, instead of printing them
    os.environ["HYDRA_FULL_ERROR"] = "1"
    # imported objects stay alive; repeated garbage collection takes a tenth of the import time
    gc.disable()
    try:
        from runner.commands.app import run_once
        from runner.disk import conf_folders

        argv = conf_folders.use_given([word for word in argv if word != "--json"])
        if any(word.startswith("-") for word in argv):
            # Hydra accepts no override after a flag
            argv = sorted(argv, key=lambda word: "=" in word and word[0] != "-")
        code = run_once(argv)
        if code is not None:
            return code
        from runner.commands.by_hydra import answer

        return answer(argv)
    finally:
        gc.enable()


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning of the runner in one line, any other in Python's format."""
    from runner.errors import RunnerWarning

    if issubclass(category, RunnerWarning):
        print(f"note: {message}", file=sys.stderr)
    else:
        (sys.stderr if file is None else file).write(
            warnings.formatwarning(message, category, filename, lineno, line)
        )


def platform_message(name: str) -> str | None:
    """Message for an operating system (``os.name``) without POSIX locks and signals; else empty."""
    if name == "posix":
        return None
    return "runner: this system lacks the file locks and signals that records need; on Windows run it inside WSL 2"


def _terminate(number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM outside of a run: end the command as Ctrl-C does."""
    raise SystemExit(128 + number)


def main() -> None:
    """Entry point of the ``runner`` command."""
    if message := platform_message(os.name):
        sys.exit(message)
    signal.signal(signal.SIGTERM, _terminate)
    # Child processes, a launcher's too, import no module from the current folder.
    os.environ["PYTHONSAFEPATH"] = "1"
    # pydantic would search every installed package for plug-ins
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Idle threads sleep at once instead of spinning, which takes the cores of other programs.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    from runner.terminal import streams

    streams.install()
    warnings.showwarning = _show_warning
    from runner.disk.conf_folders import restore_folders_on_exit

    word = sys.argv[1] if len(sys.argv) > 1 else "help"
    prints = COMMANDS[word].prints if word in COMMANDS else word in HELP_WORDS
    streams.FaultTolerantFile.names_pipes = not prints
    with restore_folders_on_exit():
        code = _answer(sys.argv[1:])
        raise SystemExit(1 if code == 0 and prints and streams.has_lost_output() else code)


def _version() -> str:
    """Version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("bayes-runner")
    except PackageNotFoundError:
        return "unknown, because the package is not installed; run pip install -e . in its folder"


def _answer(argv: list[str]) -> str | int | None:
    """Execute a command line and return its exit code; each error is printed in one line.

    An interrupted command prints the command that continues it.
    """
    from runner.commands import unexpected
    from runner.errors import ConfigError, RunFailure
    from runner.terminal import json_lines

    code: str | int | None
    try:
        for word in argv:
            word.encode()  # records hold only UTF-8 names
        if "--json" in argv:
            json_lines.install()
        code = _dispatch(argv)
    except (ConfigError, RunFailure) as error:
        print(_describe_misplaced_run(argv) or error, file=sys.stderr)
        code = 2 if isinstance(error, ConfigError) else 1
    except SystemExit as end:
        code = end.code
    except (Exception, KeyboardInterrupt) as error:
        code, message = unexpected.describe_unexpected(error)
        print(message, file=sys.stderr)
        if os.environ.get(unexpected.DEBUG_VARIABLE):
            traceback.print_exc()
    finally:
        json_lines.uninstall()
    if code in unexpected.STOPPED:
        print(f"continue with: {unexpected.command_line(argv)}", file=sys.stderr)
    return code


def _describe_misplaced_run(argv: list[str]) -> str:
    """Message for a failed command line with the name of a run, if its command takes no runs.

    Shorter words are values of options, such as the number of jobs, and not beginnings of names.
    """
    from runner.errors import ConfigError
    from runner.record.folders import find, name_run
    from runner.terminal.arguments import parse_output_dir

    command = COMMANDS.get(argv[0])
    output_dir, words = parse_output_dir(argv)
    for word in [] if command and "<run>" in command.usage else words:
        if len(word) < SHORTEST_NAME:
            continue
        with suppress(ConfigError, OSError):
            name = name_run(find(word, output_dir))
            return (
                f"{word}: names a recorded run, but this command expects a config; runner resume {name} shows its results "
                "(--fresh repeats it), and runs, compare, export, predict, sync and ui accept runs"
            )
    return ""


def _dispatch(argv: list[str]) -> int:
    """Execute a sub-command or a run and return its exit code."""
    from runner.errors import ConfigError, nearest
    from runner.execution.memory import check_limits
    from runner.terminal.tables import indent_below

    if not argv or argv[0] in HELP_WORDS:
        lines = [
            indent_below(f"  runner {command.usage:<24}", command.meaning)
            for command in COMMANDS.values()
        ]
        print(HELP.format(commands="\n".join(lines)), flush=True)
        return 0 if argv else 2
    if argv == ["--version"]:
        print(f"runner {_version()}")
        return 0
    if argv[0] in COMMANDS:
        command = COMMANDS[argv[0]]
        if command.loads != "nothing":
            check_limits(with_torch=command.loads == "torch")
        code: int = importlib.import_module(command.module).main(argv)
        return code
    if not argv[0].startswith(("-", "+", "~")) and "=" not in argv[0]:
        near = nearest(argv[0], COMMANDS)
        raise ConfigError(f"{argv[0]}: neither a command nor an override{near}")
    return run(argv)


if __name__ == "__main__":
    main()
