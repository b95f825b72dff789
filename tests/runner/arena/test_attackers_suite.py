"""Suites with attackers as rows: norms of problems, better sides of scores, and costs."""

import pytest
from support.runs.arena_suites import make_line, use_suite

from runner.arena import packed, rows
from runner.arena.scores import FIXED, to_frame
from runner.arena.standing.standings import rank_rows
from runner.arena.suite import Suite, load_suite
from runner.arena.summary import time_of_row
from scripts.arena import write_kept

DIGITS = [
    "+experiment=digits_security",
    "inference=map",
    "inference.optimizer=sgd",
    "attacker.eps=[0.0,0.1]",
]
SUITE = {
    "name": "attacked",
    "measures": "attackers",
    "description": "Attackers of one defence.",
    "replicates": 2,
    "overrides": ["steps=3"],
    "costs": ["attack_gradients"],
    "norms": {"flat": "linf", "round": "l2"},
    "problems": {"flat": DIGITS, "round": DIGITS},
    "rows": [{"label": "FGSM", "model": "mlp", "preset": "", "overrides": ["attacker=fgsm"]}],
    "tables": [
        {
            "name": "left",
            "title": "Accuracy left",
            "columns": "problem",
            "metric": "robust_accuracy",
            "side": "attacker",
        }
    ],
}


@pytest.fixture
def folder(tmp_path):
    with use_suite(tmp_path, SUITE):
        yield tmp_path


def freeze(folder, *words):
    row = rows.make_row(list(words), "mine")
    return rows.freeze(load_suite("attacked"), "", row, folder, [])


@pytest.mark.parametrize(
    ("words", "norms", "refused"),
    [
        (["attacker=fgsm"], ["linf", "l2"], [None, None]),
        (
            ["attacker=square"],
            [None, None],
            [None, "square is bounded in linf, but the problem requires l2"],
        ),
        (
            ["attacker=cw"],
            [None, None],
            ["cw is bounded in l2, but the problem requires linf", None],
        ),
        (["attacker=fgsm", "attacker.norm=l1"], [None, None], ["fgsm is bounded in l1"] * 2),
    ],
)
def test_attacker_has_the_norm_of_the_problem_or_is_excluded(folder, words, norms, refused):
    snapshot = freeze(folder, *words)
    for run, norm, why in zip(snapshot.runs, norms, refused, strict=True):
        assert bool(run.refused) == run.unfit == (why is not None)
        if why is not None:
            assert f"attacker={why}" in run.refused
        elif norm is not None:
            assert run.config["attacker"]["norm"] == norm


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ([], []),
        (["inference.lr=0.01"], ["inference"]),
        (["attacker.eps=[0.0,0.3]"], ["attacker.eps"]),
    ],
)
def test_pack_with_another_victim_deviates(folder, monkeypatch, words, keys):
    monkeypatch.setattr(rows, "refuse_frozen", lambda suite, row: None)
    snapshot = freeze(folder, "attacker=fgsm", *words)
    ending = f": {', '.join(keys)}: differs from suite attacked in this installation"
    expected = [f"{run.name}{ending}" for run in snapshot.runs] if keys else []
    assert list(packed.list_deviations(snapshot)) == expected


def test_strongest_attacker_leads():
    suite = Suite(**SUITE)
    (table,) = suite.tables
    assert table.column_direction("flat") == "lower"
    lines = [
        make_line(row, problem, None, robust_accuracy=remaining)
        for row, remaining in {"weak": 0.9, "strong": 0.1}.items()
        for problem in suite.problems
    ]
    standings = rank_rows(to_frame(lines), "robust_accuracy", "lower")
    assert [s.row for s in standings] == ["strong", "weak"]


def test_costs_that_do_not_count_are_excluded(folder):
    """Excluded from the page and the ranks, but not from the kept scores, which give the duration
    of a row."""
    suite = load_suite("attacked")
    values = {"robust_accuracy": 0.5, "cost/attack_gradients": 7.0, "cost/cpu_seconds": 3.0}
    kept = to_frame([make_line("FGSM", "flat", None, budget="", **values)])
    write_kept(kept, folder / "conf" / "arena" / "attacked.csv.gz")
    counted = rows.read_lines(suite, "", []).columns
    assert {*counted}.difference(FIXED) == {"robust_accuracy", "cost/attack_gradients"}
    counted = rows.read_lines(Suite(**SUITE | {"costs": None}), "", []).columns
    assert {*counted}.difference(FIXED) == values.keys()
    assert time_of_row(suite, "", kept, suite.problems)


def test_norms_belong_to_problems():
    with pytest.raises(ValueError, match=r"norms: rond .* did you mean round"):
        Suite(**SUITE | {"norms": {"rond": "l2"}})


def test_every_problem_of_the_kept_suite_has_a_norm():
    suite = load_suite("attackers")
    assert suite.norms == {name: name.rpartition("_")[2] for name in suite.problems}


@pytest.mark.parametrize(
    ("name", "label", "change", "message"),
    [
        ("attackers", "PGD", [], None),
        ("robustness", "SGLD", [], None),
        ("robustness", "none", ["attacker.members=[fgsm]"], "attacker"),
        ("games", "FPQ", [], None),
        ("games", "FPQ", ["attacker.members=[fixed_policy]"], "attacker"),
    ],
)
def test_rows_of_kept_suites_keep_their_rules(tmp_path, monkeypatch, name, label, change, message):
    """A row with another opponent or a weaker attack deviates from the kept row."""
    monkeypatch.setattr(rows, "refuse_frozen", lambda suite, row: None)
    suite = load_suite(name)
    row = next(row for row in suite.rows if row.name == label)
    problem = next(iter(suite.problems))
    few = suite.model_copy(
        update={"problems": {problem: suite.problems[problem]}, "grid": {"problem": [problem]}}
    )
    changed = row.model_copy(update={"overrides": [*row.overrides, *change]})
    snapshot = rows.freeze(few, "", changed, tmp_path, [])
    deviations = list(packed.list_deviations(snapshot))
    assert [message in t for t in deviations] == [True] if message else deviations == []
