"""``run``: execute a run from Python, identical to a run from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from warnings import warn

from runner.commands.app import find_finished_run
from runner.compose.resolve import ResolvedConfig, resolve_words
from runner.disk import conf_folders
from runner.errors import ConfigError, RunFailure, RunnerWarning
from runner.execution.screen import show_run as console
from runner.python.loading import load_result
from runner.python.result import Result
from runner.python.words import words_of
from runner.terminal import printer
from runner.tracking.handover import ensure_pushed


def run(experiment: str | None = None, /, *overrides: str, **keys: Any) -> Result:
    """Run an experiment and return its result.

    A finished run is read from its record; an interrupted run is resumed.  Composition, record,
    signature and MLflow entries are identical to ``runner +experiment=… key=value``, so a run
    finished by either is reused by the other.

    Nothing is printed, and no signal is handled: an interrupt raises KeyboardInterrupt, and the
    same call resumes from the last checkpoint.  Messages that the command line shows in a panel
    (simulated data, ignored keys) are issued as ``RunnerWarning``.

    Args:
        experiment: a name from ``runner list experiment``, or None.
        *overrides: overrides as on the command line, "key=value" or "--config-dir=folder".
        **keys: keys of the config; for a component a name, or a dict of its keys (with
            ``name`` to choose another).

    Returns:
        The recorded run.

    Raises:
        ConfigError: the request is invalid; the message names the key and the fix.
        RunFailure: the run diverged or cannot continue; its progress is saved.  Both are
            ``RunnerError``.

    Example:
        >>> from runner import run
        >>> result = run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False)
        >>> result.state
        'done'
        >>> run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False).was_done
        True
        >>> run("cavi_probit", model={"prior_scal": 0.1})
        Traceback (most recent call last):
        runner.errors.ConfigError: model.prior_scal: unknown key, did you mean model.prior_scale?
    """
    words = _words(experiment, overrides, keys)
    with printer.suppress_output(), conf_folders.restore_folders_on_exit():
        resolved = resolve_words(words, "call run once for each")
        previous = find_finished_run(resolved)
        if previous is not None:
            _warn_notes(previous[0].notes)
            console.announce_trouble(ensure_pushed(previous[0].settings, previous[0].folder))
            return load_result(previous[0].folder, was_done=True)
        with _threads():
            return _run_resolved(resolved, words)


def _words(experiment: str | None, overrides: tuple[str, ...], keys: dict[str, Any]) -> list[str]:
    """Command line of the same run.

    Raises:
        ConfigError: an argument is not a name or an override.
    """
    if experiment is not None and (not isinstance(experiment, str) or "=" in experiment):
        raise ConfigError(
            f"run: {experiment!r} is not the name of an experiment; give a name or None first, then overrides"
        )
    prefix = [] if experiment is None else [f"+experiment={experiment}"]
    words = [*prefix, *overrides, *words_of(keys)]
    for word in words:
        if not isinstance(word, str):
            raise ConfigError(
                f"run: {word!r} is not an override; write 'key=value', or use a keyword argument"
            )
        if word in ("-m", "--multirun") or word.startswith(
            ("hydra.", "hydra/", "+hydra", "++hydra")
        ):
            raise ConfigError(f"{word}: supported only on the command line; call run once for each")
        if word.startswith("-") and word.partition("=")[0] not in conf_folders.FLAGS:
            raise ConfigError(
                f"{word}: not supported by run; the only supported flag is --config-dir=…"
            )
    return words


def _run_resolved(resolved: ResolvedConfig, words: list[str]) -> Result:
    """Execute the remaining work of a run."""
    from components.errors import DataUnavailableError, NumericalError
    from runner.compose.job import build
    from runner.execution.divergence import explain_divergence
    from runner.execution.execute import Run
    from runner.execution.memory import keep_freed_memory

    keep_freed_memory()
    folder: Path | None = None
    try:
        job = build(resolved)
        folder = job.folder
        _warn_notes(job.notes)
        execution = Run(job, command=words)
        if execution.was_done:
            execution.record.close()
            console.announce_trouble(ensure_pushed(job.settings, folder))
        else:
            execution.go(signals=False)
            console.announce_trouble(execution.handover)
            _warn_notes(execution.announcements.left_out)
        return load_result(folder, was_done=execution.was_done)
    except DataUnavailableError as error:
        raise ConfigError(str(error)) from None
    except NumericalError as error:
        raise RunFailure(explain_divergence(error, folder)) from None


@contextmanager
def _threads() -> Iterator[None]:
    """Context that restores the number of torch's threads, which a run sets."""
    import torch

    n_threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def _warn_notes(notes: list[str]) -> None:
    for note in notes:
        warn(note, RunnerWarning, stacklevel=4)
