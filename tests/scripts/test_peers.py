"""A benchmark without its peer prints one line that names the target, and ``make bench``
continues."""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts import bench
from scripts.peers import installed

ROOT = Path(__file__).parents[2]


def test_missing_import_is_reported_in_one_line(capsys):
    with pytest.raises(SystemExit) as ended, installed.peer_imports():
        import a_peer_that_nobody_has  # noqa: F401
    assert ended.value.code == installed.ABSENT
    message = capsys.readouterr().err
    assert (
        message
        == "a_peer_that_nobody_has, a peer of this benchmark, is not installed: make bench-peers\n"
    )


def test_broken_peer_is_an_error():
    with pytest.raises(ImportError, match="no_such_name"), installed.peer_imports():
        from json import no_such_name  # noqa: F401


def test_missing_environment_is_reported_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(installed, "OWN", tmp_path / "python")
    with pytest.raises(SystemExit) as ended:
        installed.own_interpreter("GPflux")
    assert ended.value.code == installed.ABSENT
    assert "make bench-peers" in capsys.readouterr().err


def test_make_bench_continues_without_a_peer(monkeypatch, capsys):
    versions = {
        "benchmark": "b",
        "peer": "P",
        "ratios": {"case": [2.0, 1.9, 2.1]},
        "goals": {"case": 1.5},
    }
    outcomes = {
        "a": SimpleNamespace(returncode=installed.ABSENT, stdout=""),
        "b": SimpleNamespace(returncode=0, stdout=json.dumps(versions)),
    }
    monkeypatch.setattr(subprocess, "run", lambda command, **_: outcomes[command[-1]])
    monkeypatch.setattr(bench.sys, "argv", ["bench", "a", "b"])
    assert bench.main() == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "no peer" in shown
    assert "reached" in shown
    outcomes["a"] = SimpleNamespace(returncode=1, stdout="")
    assert bench.main() == 1


def test_makefile_target_installs_the_imports_of_benchmarks():
    """Peers are installed by the extra ``bench``, by the two that need ``--no-deps``, or in their
    own environment."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert installed.TARGET.removeprefix("make ") + ":" in makefile
    assert str(installed.OWN.relative_to(ROOT).parent.parent) in makefile
    for path in sorted((ROOT / "scripts" / "benchmarks").glob("*.py")):
        versions = re.findall(
            r"pip install|except (?:ImportError|ModuleNotFoundError)",
            path.read_text(encoding="utf-8"),
        )
        assert not versions, f"{path.name}: scripts/peers/installed.py reports absent peers"
