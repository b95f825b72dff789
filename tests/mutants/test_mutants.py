"""Mutants (``scripts.mutants``): each applies to the current tree, and the tests that it names
detect it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import mutants
from scripts.mutant_edits import Edit
from scripts.mutant_operators import generate_edits, list_tests, mutate

EVERY = mutants.select_mutants([])
FAMILIES = sorted({mutant.name.split("/")[0] for mutant in EVERY})


def test_every_family_has_mutants():
    assert 100 <= len(EVERY) <= 200  # operators generate the others
    assert {
        "attacks",
        "defences",
        "filters",
        "games",
        "gp",
        "hamiltonian",
        "linear",
        "mcmc",
        "metrics",
        "networks",
        "sgmcmc",
        "variational",
        "verdicts",
    } <= set(FAMILIES)
    assert len({mutant.what for mutant in EVERY}) == len(EVERY)


def test_every_mutant_applies_and_names_existing_tests():
    wrong = {}
    sources: dict[str, str] = {}
    for mutant in EVERY:
        files = " ".join(mutant.tests).partition(" -k ")[0].split()
        if missing := [name for name in files if not (mutants.ROOT / name).is_file()]:
            wrong[mutant.name] = f"no {missing}"
        edited: dict[str, str] = {}
        for edit in mutant.edits:
            source = sources.setdefault(
                edit.file, (mutants.ROOT / edit.file).read_text(encoding="utf-8")
            )
            try:
                edited[edit.file] = edit.apply(edited.get(edit.file, source))
            except ValueError as error:
                wrong[mutant.name] = str(error)
        if not wrong.get(mutant.name):
            for name, source in edited.items():
                ast.parse(source)
                assert source != sources[name], mutant.name
    assert not wrong, "the code that these mutants change has changed: edit them, or leave them out"


@pytest.mark.parametrize(
    ("source", "old", "new", "edited"),
    [
        (
            "def f(a):\n    return (a  +  b) * 2\n",
            "a + b",
            "a - b",
            "def f(a):\n    return (a - b) * 2\n",
        ),
        (
            "def f(a):\n    a = 1\n    # why\n    return a\n",
            "a = 1\nreturn a",
            "return 2",
            "def f(a):\n    return 2\n",
        ),
        (
            "class C:\n  def f(self):\n    if x: y()\n",
            "y()",
            "pass",
            "class C:\n  def f(self):\n    if x: pass\n",
        ),
        ("def f(a):\n  return α(a, 'β')\n", "α(a, 'β')", "a", "def f(a):\n  return a\n"),
    ],
)
def test_edits_compare_syntax_and_keep_other_text(source, old, new, edited):
    function = "C.f" if source.startswith("class") else "f"

    assert Edit("x.py", function, old, new).apply(source) == ast.unparse(ast.parse(edited))


def test_registry_finds_edited_component():
    source = '@register("model", "mine")\nclass C:\n    a = 1\n'
    assert '@register("model", "mine")' in Edit("x.py", "C", "1", "2").apply(source)


def test_absent_and_ambiguous_edits_are_refused():
    source = "def f(a):\n    return a + 1, a + 1\n"
    with pytest.raises(ValueError, match="2 times"):
        Edit("x.py", "f", "a + 1", "a").apply(source)
    with pytest.raises(ValueError, match="0 times"):
        Edit("x.py", "f", "a + 2", "a").apply(source)
    with pytest.raises(ValueError, match="no function g"):
        Edit("x.py", "g", "a + 1", "a").apply(source)


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("a + b", "a - b"),
        ("a / b", "a * b"),
        ("a <= b", "a < b"),
        ("-a", "a"),
        ("a[0]", "a[1]"),
        ("f(a, b, c)", "f(b, a, c)"),
        ("f(*a, b)", None),
        ("a == b", None),
    ],
)
def test_operators_change_one_expression(expression, wrong):
    made = mutate(ast.parse(expression, mode="eval").body)
    assert (made and ast.unparse(made)) == wrong


def test_operators_edit_functions_that_cite_a_source(tmp_path):
    folder = tmp_path / "components"
    folder.mkdir()
    cited = 'class C:\n    """Robbins (1951)."""\n    def f(self, a):\n        return a + 1\n'
    (folder / "sums.py").write_text(f"{cited}def g(a):\n    return a - 1\n")
    (edit,) = generate_edits(tmp_path, seed=0)
    assert edit == Edit("components/sums.py", "C.f", "a + 1", "a - 1")
    (tmp_path / "tests").mkdir()
    importing = tmp_path / "tests" / "test_all.py"
    importing.write_text("from components.sums import C\n")
    assert list_tests(tmp_path, edit.file) == ("tests/test_all.py",)


def test_sample_is_fixed_by_its_seed():
    first, second = (mutants.generate_mutants(3, seed=5) for _ in range(2))
    assert first == second
    assert all(mutant.tests and mutant.name.startswith("generated/") for mutant in first)


@pytest.mark.slow  # takes 9 s
def test_survivors_and_unmatched_edits_are_failures(tmp_path):
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("")
    (tmp_path / "components" / "sums.py").write_text("def total(a, b):\n    return a + b\n")
    (tmp_path / "tests").mkdir()
    test = "from components.sums import total\n\ndef test_total():\n    assert total(2, {}) == {}\n"
    (tmp_path / "tests" / "test_weak.py").write_text(test.format(2, 4))
    (tmp_path / "tests" / "test_total.py").write_text(test.format(3, 5))

    def complain(tests: str, old: str = "a + b") -> str:
        edit = Edit("components/sums.py", "total", old, "a * b")
        return mutants.find_complaint(
            mutants.Mutant("own/one", "a product", tuple(tests.split()), (edit,)), tmp_path
        )

    assert complain("tests/test_total.py") == ""
    assert complain("tests/test_weak.py") == "SURVIVES"
    assert complain("tests/test_total.py", "a - b").startswith("an edit does not match")
    assert complain("tests/test_total.py -k nothing").startswith("its tests cannot be run (5)")
    assert "return a + b" in (tmp_path / "components" / "sums.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_mutant_is_caught(family):
    command = [sys.executable, "-m", "scripts.mutants", f"{family}/", "--jobs", "1"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent.parent.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
