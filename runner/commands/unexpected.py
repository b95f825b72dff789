"""One-line messages for unexpected errors: paths, disks, limits of the machine, bugs of the runner.

The imports are cheap, because ``cli.main`` imports this module for every command."""

from __future__ import annotations

import errno
import re
import shlex

from components.errors import ConfigMismatchError, DataUnavailableError
from runner.errors import ACCESS_FIX
from runner.execution.memory import THREAD_FIX, out_of_memory_message

DEBUG_VARIABLE = "RUNNER_DEBUG"  # if set, the traceback is printed too
NO_FOLDER = "the current folder has been removed; change to an existing one (cd)"
STOPPED = (130, 143)  # exit codes after SIGINT and SIGTERM
SHOWN_CHARACTERS = 80  # longest path or text in a message
PATH_FIX = "give another path; a name has at most 255 bytes, a path 4,095"
SPACE_FIX = "free some space, then repeat the command"
LIMIT_FIXES = {
    errno.ENOSPC: SPACE_FIX,
    errno.EDQUOT: SPACE_FIX,
    errno.EROFS: "the disk is read-only; give a folder on another disk",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EAGAIN: THREAD_FIX,
}


def describe_unexpected(error: BaseException) -> tuple[int, str]:
    """Exit code and message for an unexpected error: 2 for a wrong path, key or data file, 130 for
    an interrupt, otherwise 1."""
    text = next(iter(str(error).splitlines()), "")
    if isinstance(error, KeyboardInterrupt):
        return 130, "interrupted"
    if isinstance(error, ConfigMismatchError | DataUnavailableError):
        return 2, text
    if isinstance(error, OSError) and error.errno is not None:
        return _describe_os_error(error)
    if isinstance(error, UnicodeEncodeError | UnicodeDecodeError):
        return 2, f"{_shorten(error.object)}: not UTF-8; rename the file, or convert its text"
    if isinstance(error, RecursionError):
        return 1, "a file or a value is nested too deeply to be read; repair or remove it"
    if text.startswith("Symlink loop"):  # Path.resolve before Python 3.13
        return 2, f"{_shorten(text)}; {PATH_FIX}"
    if "start new thread" in text:
        return 1, f"the system refuses to start another thread; {THREAD_FIX}"
    if message := out_of_memory_message(error):
        return 1, message
    problem = f"{type(error).__name__}: {text}"
    return 1, f"internal error: {problem}; {DEBUG_VARIABLE}=1 shows the traceback"


def _describe_os_error(error: OSError) -> tuple[int, str]:
    if error.filename is None and error.errno == errno.ENOENT:
        return 2, NO_FOLDER
    fix = LIMIT_FIXES.get(error.errno or 0)
    if error.filename is None:
        return 1, f"{error.strerror}; {fix}" if fix else str(error)
    other = ACCESS_FIX if isinstance(error, PermissionError) else PATH_FIX
    # name the target file, not the temporary one
    path = re.sub(r"(^|/)\.([^/]+)\.\d+$", r"\1\2", _shorten(error.filename))
    return 1 if fix else 2, f"{path}: {error.strerror}; {fix or other}"


def _shorten(text: str | bytes) -> str:
    """Path or text in printable characters, with the middle elided if it is long."""
    content = text.encode(errors="backslashreplace") if isinstance(text, str) else text
    shown = content.decode(errors="backslashreplace")
    half = SHOWN_CHARACTERS // 2
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:half]}…{shown[-half:]}"


def command_line(argv: list[str]) -> str:
    """The command as given, without the options that discard finished work."""
    return shlex.join(["runner", *(word for word in argv if word not in ("--fresh", "fresh=true"))])
