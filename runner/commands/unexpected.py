"""Errors that no command foresees, in one line: paths, disks, limits of the machine, faults of the
runner itself.

Imports nothing that takes time: ``cli.main`` needs it for every command."""

from __future__ import annotations

import errno
import os
import shlex
import traceback
from pathlib import Path

DEBUG_VARIABLE = "RUNNER_DEBUG"  # if it is set, the traceback follows the line
NO_FOLDER = "the current folder has been removed; change to one that exists (cd)"
STOPPED = (130, 143)  # exit codes after SIGINT and SIGTERM
SHOWN_CHARACTERS = 80  # of a path or a text
PATH_FIXES = {  # a path that was given is wrong
    errno.ENAMETOOLONG: "a name has at most 255 bytes, a path 4,095; give a shorter one",
    errno.ENOENT: "give a path that exists",
    errno.ENOTDIR: "a file is in the place of a folder; give another path",
    errno.EEXIST: "a file is in the place of a folder; give another path",
    errno.EISDIR: "give the path of a file",
    errno.EINVAL: "give the path of a plain file",
    errno.ELOOP: "its links lead in a circle; give another path",
}
MACHINE_FIXES = {
    errno.EACCES: "ask its owner for access, or give another path",
    errno.EPERM: "ask its owner for access, or give another path",
    errno.EROFS: "give a path on a disk that can be written",
    errno.ENOSPC: "free some space, then give the same command again",
    errno.EDQUOT: "free some space, then give the same command again",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EAGAIN: "raise the limit of processes (ulimit -u), or end other programs",
}


def describe_unexpected(error: BaseException) -> tuple[int, str]:
    """Exit code and message of a command that ended in an error: 2 for a wrong argument, 130 for an
    interrupt, otherwise 1."""
    from runner.execution.memory import out_of_memory_message

    if isinstance(error, KeyboardInterrupt):
        return 130, "interrupted"
    if isinstance(error, OSError) and error.errno is not None:
        return describe_os_error(error)
    if isinstance(error, UnicodeEncodeError | UnicodeDecodeError):
        return 2, f"{shorten(error.object)}: no text in UTF-8; rename the file, or convert it"
    if isinstance(error, RecursionError):
        return 1, "a file or a value is nested too deeply to be read; repair or remove it"
    if str(error).startswith("Symlink loop"):  # Path.resolve before Python 3.13
        return 2, f"{shorten(str(error))}; {PATH_FIXES[errno.ELOOP]}"
    if "start new thread" in str(error):
        return 1, f"no further thread can be started; {MACHINE_FIXES[errno.EAGAIN]}"
    if message := out_of_memory_message(error):
        return 1, message
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    problem = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    return 1, f"internal error: {problem}{place}; {DEBUG_VARIABLE}=1 shows the traceback"


def describe_os_error(error: OSError) -> tuple[int, str]:
    """Exit code and message of an error of the operating system."""
    if error.errno == errno.ENOENT and not has_working_folder():
        return 2, NO_FOLDER
    number = error.errno or 0
    subject = "" if error.filename is None else f"{shorten(os.fspath(error.filename))}: "
    fix = (PATH_FIXES | MACHINE_FIXES).get(number)
    reason = error.strerror or os.strerror(number)
    return 2 if number in PATH_FIXES else 1, f"{subject}{reason}{f'; {fix}' if fix else ''}"


def has_working_folder() -> bool:
    """True if the current folder exists."""
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def shorten(text: str | bytes) -> str:
    """A path or a text in printable characters; the middle of a long one is left out."""
    raw = os.fsencode(text) if isinstance(text, str) else text
    shown = raw.decode(errors="backslashreplace")
    half = SHOWN_CHARACTERS // 2
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:half]}…{shown[-half:]}"


def command_line(argv: list[str]) -> str:
    """A command as it was given, but for the words that discard what is done."""
    words = [word for word in argv if word not in ("--fresh", "fresh=true")]
    return shlex.join(["runner", *words])
