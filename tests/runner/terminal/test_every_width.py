"""Every read-only command on pseudo-terminals of three widths, in a pipe, without colours and on a
dumb terminal: no control characters, no line wider than the terminal, no word broken."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from rich.cells import cell_len
from support.runs.made_records import make_record

from runner.commands.cli import _answer

COMMANDS = [
    "list",
    "list inference",
    "list study",
    "show inference/sgld",
    "show block/local_level",
    "show experiment/sarcos_mdgp",
    "show study/bnn_uci_repulsion",
    "show config",
    "data list",
    "runs",
    "compare aaaaaaaaaaaa cccccccccccc",
    "compare aaaaaaaaaaaa cccccccccccc dddddddddddd eeeeeeeeeeee ffffffffffff",
    "doctor",
    "arena",
    "arena show games",
    "--help",
    "runs --help",
    "sbc --help",
]
# All commands run in one process; each answer follows its name.
SCRIPT = """
import os, sys
from runner.arena import page
from runner.commands.cli import _answer
from runner.terminal import streams
page.list_figures = lambda *_: []  # the terminal names the page of a suite, without its figures
streams.install()
for command in sys.argv[1:]:
    os.write(1, f"@@{command}@@".encode())
    _answer(command.split())
    sys.stdout.flush()
"""
STYLE = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
LEGEND = re.compile(r"https?://|/")  # an address or a path may be wider than a terminal


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read_only")
    for letter in "acdef":
        make_record(folder / "outputs", letter * 12, replicates=2)
    make_record(folder / "outputs", "b" * 12, state="failed")
    return folder


def read_answers(folder, width, **environment):
    """Answers by command; ``width`` 0 means in a pipe."""
    words = [sys.executable, "-c", SCRIPT, *COMMANDS]
    environment = {**os.environ, "TERM": "xterm-256color", **environment}
    environment.pop("COLUMNS", None)
    if width:
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    else:
        parent, child = os.pipe()
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=child, stderr=child, env=environment, cwd=folder
    )
    os.close(child)
    with open(parent, "rb", buffering=0) as stream:
        text = b"".join(iter(lambda: read_some(stream), b"")).decode()
    assert process.wait() == 0
    names, answers = (text.replace("\r\n", "\n").split("@@")[start::2] for start in (1, 2))
    assert names == COMMANDS
    return dict(zip(names, answers, strict=True))


def read_some(stream):
    try:
        return stream.read(65536)
    except OSError:  # the other end of a pseudo-terminal is closed
        return b""


def find_faults(answer, width):
    """Lines with control characters, lines that are too wide, words broken over lines."""
    lines = STYLE.sub("", answer).split("\n")
    too_wide = [line for line in lines if width and cell_len(line.rstrip()) > width]
    yield from (line for line in too_wide if not LEGEND.search(line))
    yield from (line for line in lines if CONTROL.search(line))


@pytest.mark.parametrize(
    ("width", "environment"),
    [
        pytest.param(80, {}, id="80"),
        pytest.param(100, {}, id="100", marks=pytest.mark.slow),
        pytest.param(140, {}, id="140", marks=pytest.mark.slow),
        pytest.param(0, {}, id="pipe"),
        pytest.param(80, {"NO_COLOR": "1"}, id="NO_COLOR", marks=pytest.mark.slow),
        pytest.param(80, {"TERM": "dumb"}, id="dumb", marks=pytest.mark.slow),
    ],
)
def test_read_only_commands_fit_the_terminal(folder, width, environment):
    answers = read_answers(folder, width, **environment)
    faults = {name: list(find_faults(answer, width)) for name, answer in answers.items()}
    if not width:  # cells of a pipe are separated by tabs
        faults = {
            name: [line for line in lines if "\t" not in line] for name, lines in faults.items()
        }
    assert {name: lines for name, lines in faults.items() if lines} == {}
    if width == 0 or environment:
        assert not any(re.search(r"\x1b\[[0-9;]*3\dm", answer) for answer in answers.values())
    elif width == 80:
        assert "\x1b[1m" in answers["list inference"]


def test_runs_are_named_as_printed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = ("made/aaaa", "made/aaaaaaaaaaaa", "aaaa", "other/aaaa")
    assert [_answer(["compare", name, "cccc"]) for name in names] == [0, 0, 0, 2]


def test_broken_words_are_detected():
    assert list(find_faults("a line of twenty columns\n", 20))
    assert list(find_faults("a bell\x07", 80))
    assert not list(find_faults("\x1b[32mok\x1b[0m  fine\n", 80))
