"""Invalid paths for every text argument of every command are reported in one line without a traceback.

Commands and arguments come from the parsers, so new commands are covered automatically."""

import argparse
import errno
import importlib
import re
import signal
import threading
from pathlib import Path

import pytest
import yaml
from support.runs.made_records import make_record

from components.errors import DamagedFileError
from runner.catalogue import sub_commands
from runner.commands import unexpected
from runner.execution import memory
from runner.study import study
from runner.system import ui

LONG = "x" * 300
PATHS = [LONG, f"{LONG}.csv", f"{LONG}.zip", "file.txt/x.csv", "caf\udce9.zip"]
MORE_PATHS = [
    *(f"folder/{LONG}/x.csv", "/".join(["y" * 200] * 25), f"a={LONG}", "", "/proc/x/y.csv"),
    *("gone", "gone/x.csv", "gone/x.zip", "file.txt", "file.txt/", "file.txt/x", "file.txt/x.zip"),
    *("folder", "folder.csv", "folder.zip", "loop", "loop/x.csv", "caf\udce9", "caf\udce9.csv"),
]
VALUES = {  # values of the other arguments that a command requires
    "study": "small.yaml",
    "run": "0123456789ab",
    "module": "walk",
    "what": "config",
    "name": "mine",
    "folder": "sweep",
    "suite": "posteriors",
    "words": "+experiment=mog",
    "model": "model.zip",
    "file": "model.zip",
    "role": "inference",
    "action": "list",
    "suites": "topics",
}
RUN = ["+experiment=mog", "smoke=true", "tracking=false"]
STUDY = {
    "name": "small",
    "description": "One run.",
    "overrides": RUN[1:],
    "rows": [{"label": "a", "model": "m", "preset": "", "experiment": "mog"}],
    "tables": [{"name": "t", "title": "t", "columns": {"all": "error_mean"}, "better": "lower"}],
}


class ParsedError(Exception):
    """Error raised in place of parsing, with the parser."""


def parser_of(words):
    def refuse(parser, *_):
        raise ParsedError(parser)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", refuse)
        patch.setattr(argparse.ArgumentParser, "parse_intermixed_args", refuse)
        with pytest.raises(ParsedError) as parsed:
            importlib.import_module(sub_commands.COMMANDS[words[0]].module).main(words)
    return parsed.value.args[0]


def parsers():
    """Commands with their parsers, including sub-commands."""
    for name in sub_commands.COMMANDS:
        parser = parser_of([name])
        choices = [c for action in parser._get_positional_actions() for c in action.choices or ()]
        below = {choice: parser_of([name, choice]) for choice in choices}
        yield [name], parser
        yield from (
            ([name, c], parser_below)
            for c, parser_below in below.items()
            if parser_below.prog != parser.prog
        )


def command_lines(words, parser, paths):
    """A command line for each text argument and each path."""
    positional = parser._get_positional_actions()
    for action in parser._actions:
        if action.nargs == 0 or action.choices or action.type is int:
            continue
        for path in paths:
            required = [
                path if other is action else VALUES.get(other.dest, "x")
                for other in positional
                if other is action
                or other.nargs not in ("*", "?")
                or other.dest in ("study", "suites")
            ]
            option = [f"{action.option_strings[0]}={path}"] if action.option_strings else []
            yield [*words, *required, *option]


def text_of(argv):
    return " ".join(word if len(word) < 40 else word[:9] + word[-9:] for word in argv)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("paths")
    make_record(place / "outputs")
    for name in ("folder", "folder.csv", "folder.zip", "sweep/jobs"):
        (place / name).mkdir(parents=True)
    (place / "loop").symlink_to("loop")
    (place / "file.txt").write_text("text")
    (place / "walk.py").write_text("")
    (place / "small.yaml").write_text(yaml.safe_dump(STUDY))
    return place


@pytest.fixture
def answer(folder, monkeypatch, command_line):
    """Exit code and errors of a command line, without starting runs or servers."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(study, "launch", lambda *_, **__: 0)
    monkeypatch.setattr(ui, "serve", lambda _: 0)
    return lambda *argv: command_line(*argv)[::2]


def faults(answer, lines):
    """Command lines with more than one line of errors or with an internal error."""
    for argv in lines:
        code, error = answer(*argv)
        if code not in (0, 1, 2) or "Traceback" in error or "internal error" in error:
            yield text_of(argv), code, error


SLOW = ("arena run", "arena show", "arena publish", "price")  # these compute before they write
COMMANDS = [
    pytest.param(words, parser, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for words, parser in parsers()
    for name in [" ".join(words)]
]


@pytest.mark.parametrize(("words", "parser"), COMMANDS)
def test_invalid_arguments_cause_no_traceback(words, parser, answer):
    assert [answer(*words, option)[0] for option in ("--help", "--nonsuch")] == [0, 2]
    assert not list(faults(answer, command_lines(words, parser, PATHS)))


@pytest.mark.slow
@pytest.mark.parametrize(("words", "parser"), COMMANDS)
def test_unusual_paths_cause_no_traceback(words, parser, answer):
    assert not list(faults(answer, command_lines(words, parser, MORE_PATHS)))


@pytest.mark.parametrize(
    "key",
    [
        *("output_dir", "hydra.sweep.dir", "+experiment"),
        pytest.param("data_dir", marks=pytest.mark.slow),  # runs that succeed
    ],
)
def test_invalid_paths_of_a_run_cause_no_traceback(key, answer):
    given = RUN[key == "+experiment" :]
    lines = [["-m", *given, "seed=0,1", f"{key}={path}"] for path in PATHS]
    if key != "hydra.sweep.dir":
        lines += [[*given, f"{key}={path}"] for path in PATHS]
    assert not list(faults(answer, lines))


def test_removed_working_folder_is_one_line(tmp_path, answer, monkeypatch):
    lines = []
    for words, parser in parsers():
        required = (a.dest for a in parser._get_positional_actions() if not a.nargs)
        lines.append([*words, *(VALUES.get(name, "x") for name in required)])
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert not list(faults(answer, [*lines, RUN, ["-m", *RUN, "seed=0,1"], [*RUN, "--cfg", "job"]]))
    code, error = answer("rerun", "--failed", "small")
    assert (code, error.strip()) == (2, unexpected.NO_FOLDER)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.EROFS, "Read-only", "a/b"), 1, "a/b: Read-only; the disk is read-only"),
        (OSError(errno.ENOSPC, "No space left", "a"), 1, "a: No space left; free some"),
        (OSError(errno.EISDIR, "Is a directory", b"caf\xe9"), 2, r"caf\\xe9: Is a directory; give"),
        (FileNotFoundError(errno.ENOENT, "No file", LONG), 2, "^x{40}…x{40}: No file; give"),
        (RuntimeError("can't start new thread"), 1, "start another thread; .*[(]ulimit -u[)]"),
        (RuntimeError("Symlink loop from a"), 2, "Symlink loop from a; give another path"),
        (RecursionError(), 1, "nested too deeply"),
        (DamagedFileError("a.csv: damaged"), 2, "^a.csv: damaged$"),
        (MemoryError(), 1, "out of memory"),
        (KeyError("a"), 1, "internal error: KeyError: 'a'.*; RUNNER_DEBUG=1 shows the traceback"),
        (KeyboardInterrupt(), 130, "interrupted\ncontinue with: .*data list --data-dir '/a b'"),
        (SystemExit(143), 143, "^continue with: runner data list --data-dir '/a b'"),
    ],
)
def test_unexpected_error_is_one_line(error, code, message, answer, monkeypatch):
    def fail(_):
        raise error

    monkeypatch.setattr("runner.system.data.main", fail)
    given = answer("data", "list", "--data-dir", "/a b", "--fresh")
    assert given[0] == code
    assert re.search(message, given[1])
    assert "Traceback" not in given[1]
    monkeypatch.setenv(unexpected.DEBUG_VARIABLE, "1")
    assert ("Traceback" in answer("data", "list")[1]) != isinstance(error, SystemExit)


def test_signal_outside_of_a_run_is_one_line(answer, monkeypatch):
    monkeypatch.setattr("runner.system.data.main", lambda _: signal.raise_signal(signal.SIGTERM))
    assert answer("data", "list") == (143, "continue with: runner data list")


@pytest.mark.parametrize(("words", "megabytes"), [(["runs"], 200), (["predict", "a", "b"], 800)])
def test_limit_of_address_space_is_one_line(words, megabytes, answer, monkeypatch):
    monkeypatch.setattr(memory, "address_space_left", lambda: 2.0**27)
    code, error = answer(*words)
    assert (code, error.count("\n")) == (1, 0)
    assert f"leaves 128 MB, but threads=1 requires {megabytes} MB; raise the limit" in error


def test_thread_limit_stops_a_run_with_one_line(answer, monkeypatch):
    def fail(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    code, error = answer(*RUN, "output_dir=threads", "seed=5")
    assert (code, error.count("\n")) == (1, 0)
    assert "refuses to start another thread" in error


@pytest.mark.parametrize("file", ["run.json", "metrics.jsonl", "config.yaml"])
def test_deeply_nested_record_is_skipped_or_named(file, tmp_path, answer):
    folder = make_record(tmp_path / "outputs")
    (folder / file).write_text("[" * 100_000)
    given = ["--output-dir", str(tmp_path / "outputs")]
    run = ["0123456789ab", *given]
    lines = [["runs", *given], ["doctor", *given], ["clean", "--dry-run", *given], ["resume", *run]]
    lines += [["compare", *run], ["export", run[0], "a.zip", *given]]
    assert not list(faults(answer, lines))


def test_sweep_accepts_its_flag_anywhere(answer):
    code, error = answer(*RUN, "-m", "seed=3,4", "output_dir=flags")
    assert (code, error) == (0, "")
    assert len(list(Path("flags/mog").iterdir())) == 2
