"""Patches of wrong science (``scripts.mutants``): each fits the tree as it is, and the tests that it names find it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import mutants

EVERY = mutants.mutants([])
FAMILIES = sorted({mutant.name.split("/")[0] for mutant in EVERY})


def test_there_are_many_of_every_family():
    assert len(EVERY) >= 80
    assert {"attacks", "defences", "filters", "games", "gp", "hamiltonian", "linear", "mcmc", "metrics", "networks",
            "sgmcmc", "variational", "verdicts"} <= set(FAMILIES)  # fmt: skip
    assert len({mutant.what for mutant in EVERY}) == len(EVERY)


def test_every_patch_fits_and_names_tests_that_exist():
    wrong = {}
    for mutant in EVERY:
        files = " ".join(mutant.tests).partition(" -k ")[0].split()
        if missing := [name for name in files if not (mutants.ROOT / name).is_file()]:
            wrong[mutant.name] = f"no {missing}"
        elif complaint := mutants.patched(mutants.ROOT, mutant.patch, "--check"):
            wrong[mutant.name] = complaint
    assert not wrong, "what these patches change has changed: make them anew (a diff -U0), or leave them out"


@pytest.mark.slow  # 9 s
def test_a_survivor_a_patch_that_does_not_fit_and_idle_tests_are_failures(tmp_path, monkeypatch):
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("")
    (tmp_path / "components" / "sums.py").write_text("def total(a, b):\n    return a + b\n")
    (tmp_path / "tests").mkdir()
    test = "from components.sums import total\n\ndef test_total():\n    assert total(2, {}) == {}\n"
    (tmp_path / "tests" / "test_weak.py").write_text(test.format(2, 4))
    (tmp_path / "tests" / "test_total.py").write_text(test.format(3, 5))
    patch = "What: a product\nTests: {}\n\n--- a/components/sums.py\n+++ b/components/sums.py\n@@ -2 +2 @@\n"
    patch += "-    return a {} b\n+    return a * b\n"
    monkeypatch.setattr(mutants, "PATCHES", tmp_path)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    told = {}
    for name, (tests, sign) in {
        "caught": ("tests/test_total.py", "+"),
        "survives": ("tests/test_weak.py", "+"),
        "refused": ("tests/test_total.py", "-"),
        "idle": ("tests/test_total.py -k nothing", "+"),
    }.items():
        path = tmp_path / f"{name}.patch"
        path.write_text(patch.format(tests, sign))
        told[name] = mutants.complaint(mutants.Mutant.read(path), tmp_path)
    assert told["caught"] == ""
    assert told["survives"] == "SURVIVES"
    assert told["refused"].startswith("the patch does not apply")
    assert told["idle"].startswith("its tests do not run (5)")
    assert "return a + b" in (tmp_path / "components" / "sums.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_mutant_is_caught(family):
    command = [sys.executable, "-m", "scripts.mutants", f"{family}/", "--jobs", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
