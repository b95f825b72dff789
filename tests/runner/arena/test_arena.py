"""The arena: suites, the length of a run by its budget, kept scores, standings, and the page."""

from __future__ import annotations

import json
import math
import os
import re

import pytest
import yaml

from runner.arena import command, lengths, listing, page, rows
from runner.arena.scores import Line, find_state, read_kept, read_snapshot, to_csv, write_kept
from runner.arena.standings import median_interval, rank_rows
from runner.arena.suite import Suite, load_suite
from runner.compose.overrides import explicit_keys
from runner.disk import conf_folders
from runner.errors import ConfigError
from runner.study.plan import plan
from runner.study.snapshot import FrozenRun, Snapshot

TOY = {
    "name": "toy",
    "measures": "two densities",
    "description": "Two densities.",
    "replicates": 2,
    "overrides": ["model=target_density", "tracking=false"],
    "problems": {"normal": ["dataset=gaussian"], "mixture": ["dataset=mixture_of_gaussians_1d"]},
    "budgets": {"small": {"gradients": 400, "densities": 1200}},
    "rows": [
        {"label": "SGLD", "model": "sgld", "preset": "", "overrides": ["inference=sgld"]},
        {"label": "walk", "model": "walk", "preset": "", "overrides": ["inference=random_walk_mh"]},
    ],
    "tables": [
        {"name": "error", "title": "Error", "columns": "problem", "metric": "error_mean"},
        {"name": "ess", "title": "ESS", "columns": "problem", "metric": "ess"},
    ],
}


def toy(**changes) -> Suite:
    return Suite(**TOY | changes)


@pytest.fixture
def toy_folder(tmp_path):
    """A folder of YAML files with the toy suite, in use."""
    (tmp_path / "conf" / "arena").mkdir(parents=True)
    (tmp_path / "conf" / "arena" / "toy.yaml").write_text(yaml.safe_dump(TOY, sort_keys=False))
    with conf_folders.restore_folders_on_exit():
        conf_folders.use(str(tmp_path / "conf"))
        yield tmp_path


def line(row, problem, score, state="done", replicate=0, step=-1, cost=100.0, **more) -> Line:
    values = {"error_mean": score, "cost/gradients": cost} if score is not None else {}
    return Line("small", row, problem, 0, replicate, step, state, "data", "abc", values | more)


# ---- suites
def test_problems_stand_for_overrides():
    suite = toy()
    runs = list(plan(suite.to_study(suite.rows[:1]), ["steps=3"]))
    assert [run.name for run in runs] == ["SGLD problem=normal", "SGLD problem=mixture"]
    words = ["dataset=gaussian", "inference=sgld", "steps=3"]
    assert runs[0].overrides == ["replicates=2", *TOY["overrides"], *words]


def test_a_suite_of_the_users_own_is_found(toy_folder):
    assert load_suite("toy") == toy()
    with pytest.raises(ConfigError, match="arena tiy: no such suite, did you mean toy"):
        load_suite("tiy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problems": {}}, "problems: there is none"),
        (
            {"tables": [TOY["tables"][0] | {"columns": "seed"}]},
            "grid key problem is neither its columns",
        ),
        ({"tables": [TOY["tables"][0] | {"metric": "mean"}]}, "neither side of mean is better"),
        ({"budgets": {"small": {"gradients": 0}}}, "greater than 0"),
    ],
)
def test_mistakes_of_a_suite(changes, message):
    with pytest.raises(ValueError, match=message):
        toy(**changes)


def test_a_score_without_a_better_side_is_shown_and_ranks_nothing():
    shown = TOY["tables"][0] | {"name": "middle", "metric": "coverage90"}
    suite = toy(tables=[TOY["tables"][0], shown])
    assert [table.name for table in suite.ranked] == [TOY["tables"][0]["name"]]
    assert "coverage90" in suite.metrics


def test_a_misspelt_key_is_named(toy_folder):
    path = toy_folder / "conf" / "arena" / "toy.yaml"
    path.write_text(yaml.safe_dump(TOY | {"budgts": {}}))
    with pytest.raises(ConfigError, match="budgts: unknown key, did you mean budgets"):
        load_suite("toy")


def test_budgets_by_name():
    assert toy().budget(None) == "small"
    assert toy(budgets={}).budget(None) == ""
    with pytest.raises(ConfigError, match="--budget huge: no such budget; there are: small"):
        toy().budget("huge")


# ---- lengths
def test_steps_keep_every_limit():
    costs = {"gradients": (420.0, 820.0), "densities": (220.0, 320.0)}  # 20 and 5 a step
    assert lengths.count_steps(costs, {"gradients": 2000, "densities": 9000}, 20) == 40 + 59
    assert lengths.count_steps(costs, {"gradients": 2000, "densities": 400}, 20) == 40 + 16
    assert lengths.count_steps(costs, {"forwards": 5}, 20) is None


def test_a_dear_warm_up_leaves_steps_for_draws(monkeypatch):
    """A warm-up that reaches 40 steps with half of the budget, whatever its length."""
    monkeypatch.setattr(lengths, "_rehearse_warm_up", lambda words, warm_up: min(40, warm_up + 2))
    suite = toy()
    assert suite.warm_up == 0.25
    steps = lengths._fit_warm_up(suite, {"gradients": 100.0}, [], 1000)
    assert 110 < steps < 168
    assert int(0.25 * steps) < 42
    assert lengths._fit_warm_up(suite, {"gradients": 100.0}, [], 100) == 100


def test_length_of_a_row_by_its_budget():
    suite = toy()
    row = [*suite.rows[0].overrides, "inference.thinning=2"]
    runs = list(plan(suite.to_study([rows.make_row(row, "mine")]), []))
    words = lengths.find_length(suite, suite.budgets["small"], runs[0].overrides)
    # 20 chains: 20 gradients at the start, and 20 a step
    assert words[:2] == ["steps=19", "eval_every=2"]
    assert "inference.burn_in=4" in words
    assert not any("thinning" in word for word in words)  # the user's own
    assert words[-2:] == ["budget.gradients=400", "budget.densities=1200"]


def test_a_length_of_the_users_own_stays():
    suite = toy()
    row = ["inference=sgld", "steps=50", "inference.burn_in=10"]
    runs = list(plan(suite.to_study([rows.make_row(row, "mine")]), []))
    words = lengths.find_length(suite, suite.budgets["small"], runs[0].overrides)
    assert words == ["budget.gradients=400", "budget.densities=1200"]
    assert "steps" in explicit_keys(runs[0].overrides)


# ---- rows
def test_rows_are_named_by_their_component():
    assert rows.name_row(["inference.scale=2", "inference=walk"]) == "walk"
    assert rows.name_row(["+steps=3"]) == "+steps=3"
    with pytest.raises(ConfigError, match="--as 'a/b': no name of a row"):
        rows.make_row([], "a/b")


def test_states():
    run = FrozenRun("a", "a", {"problem": "x"}, [])
    done = {"state": "done", "result": {"cost/gradients": [100.0]}}
    doubt = {"checks": {"0": [{"about": "run", "check": "rhat", "passed": False, "detail": ""}]}}
    assert find_state(run, done, {"gradients": 100}) == "done"
    assert find_state(run, done, {"gradients": 80}) == "over budget"
    assert find_state(run, done | doubt, {}) == "doubted"
    assert find_state(run, {"state": "diverged"}, {}) == "failed"
    assert find_state(run, {}, {}) == "not run"
    refused = {"name": "a", "row": "a", "cell": {}, "overrides": [], "refused": "no"}
    assert find_state(FrozenRun(**refused, unfit=True), {}, {}) == "not applicable"
    assert find_state(FrozenRun(**refused), {}, {}) == "not run"


def test_kept_scores_are_read_as_written(tmp_path):
    lines = [line("b", "x", 0.125), line("a", "x", None, "failed"), line("a", "y", 2.0, step=5)]
    write_kept(lines, tmp_path / "toy.csv.gz")
    first = (tmp_path / "toy.csv.gz").read_bytes()
    write_kept(reversed(lines), tmp_path / "toy.csv.gz")
    assert (tmp_path / "toy.csv.gz").read_bytes() == first
    assert read_kept(tmp_path / "toy.csv.gz") == [lines[1], lines[2], lines[0]]
    (tmp_path / "toy.csv.gz").write_bytes(first[:-20])
    with pytest.raises(ConfigError, match="cannot be read"):
        read_kept(tmp_path / "toy.csv.gz")


# ---- standings
PROBLEMS = [f"p{i}" for i in range(6)]


def many(**scores) -> list[Line]:
    return [
        line(row, p, s) for row, each in scores.items() for p, s in zip(PROBLEMS, each, strict=True)
    ]


def test_places_follow_mean_ranks():
    lines = many(a=[1, 1, 1, 1, 1, 9], b=[2, 2, 2, 2, 2, 2], c=[3, 3, 3, 3, 3, 3])
    standings = rank_rows(lines, "error_mean", "lower")
    assert [s.row for s in standings] == ["a", "b", "c"]
    assert standings[0].mean_rank == pytest.approx((5 * 1 + 3) / 6)
    assert standings[0].typical == 1
    assert [s.row for s in rank_rows(lines, "error_mean", "higher")] == ["c", "b", "a"]


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_equal_mean_ranks_are_ordered_by_the_median(direction):
    """Three rows on three problems, each first, second and last once; names run against it."""
    sign = 1 if direction == "lower" else -1
    scores = {"a": (1, 5, 9), "b": (2, 6, 4), "c": (3, 1, 8), "d": (0, 0, 0)}
    lines = [
        line(row, problem, sign * score)
        for row, each in scores.items()
        for problem, score in zip("xyz", each, strict=True)
    ]
    standings = rank_rows(lines, "error_mean", direction)
    assert [s.row for s in standings] == ["d", "c", "b", "a"]
    assert [s.mean_rank for s in standings] == pytest.approx([1, 3, 3, 3])
    assert [s.tied for s in standings] == [(), ("b", "a"), ("c", "a"), ("c", "b")]


def test_of_equal_mean_ranks_a_row_without_a_median_is_last():
    """A row that failed on the one problem that it has, next to one with a score elsewhere."""
    lines = [line("a", "x", None, "failed"), line("b", "x", None, "failed"), line("c", "x", 1.0)]
    lines += [line("b", "y", 2.0), line("c", "y", 1.0), line("d", "y", 2.0)]
    standings = rank_rows(lines, "error_mean", "lower")
    assert [(s.row, s.mean_rank) for s in standings] == [
        ("c", 1),
        ("b", 2.5),
        ("d", 2.5),
        ("a", 2.5),
    ]


def test_failures_rank_last_and_what_does_not_apply_is_left_out():
    lines = [
        *[line("a", p, 1.0) for p in PROBLEMS],
        *[line("b", p, None, "failed") for p in PROBLEMS[:2]],
        *[line("b", p, None, "not applicable") for p in PROBLEMS[2:]],
        *[line("c", p, 0.5, "over budget") for p in PROBLEMS],
    ]
    a, b, c = sorted(rank_rows(lines, "error_mean", "lower"), key=lambda s: s.row)
    assert a.mean_rank == 1
    assert b.ranks == dict.fromkeys(PROBLEMS[:2], 2.5)
    assert c.mean_rank == pytest.approx((2.5 * 2 + 2 * 4) / 6)
    assert (b.count("failed"), b.count("not applicable"), c.count("over budget")) == (2, 4, 6)


def test_a_problem_without_a_score_ranks_nobody():
    """A table need not have its score on every problem: a failure there is no last place."""
    lines = [line("a", "x", 1.0), line("b", "x", 2.0), line("a", "y", None, "failed")]
    lines += [line("b", "y", None)]
    a, b = rank_rows(lines, "error_mean", "lower")
    assert (a.row, a.ranks, a.n_problems) == ("a", {"x": 1.0}, 1)
    assert b.ranks == {"x": 2.0}


def test_rows_that_fail_their_checks_are_below():
    lines = [
        *[line("a", p, 1.0, "doubted") for p in PROBLEMS],
        *[line("b", p, 2.0) for p in PROBLEMS],
    ]
    standings = rank_rows(lines, "error_mean", "lower")
    assert [s.row for s in standings] == ["b", "a"]
    assert [s.is_doubted for s in standings] == [False, True]


def test_differences_are_tested_over_problems_and_corrected():
    lines = many(a=[1, 2, 3, 4, 5, 6], b=[2, 3.1, 4, 5, 6, 7.2], c=[2, 1, 4, 3, 6, 5.5])
    by_row = {s.row: s for s in rank_rows(lines, "error_mean", "lower", "a")}
    assert by_row["a"].against is None
    assert by_row["b"].against.p == pytest.approx(2 / 2**6)
    assert by_row["b"].against.p_holm == pytest.approx(4 / 2**6)
    assert by_row["b"].against.difference == pytest.approx(6.3 / 6)


def test_the_leaders_score_at_a_tenth_of_its_cost():
    lines = [
        line("a", "x", 1.0, cost=100),
        line("b", "x", 2.0, cost=90),
        line("b", "x", 0.9, step=1, cost=10),
        line("c", "x", 3.0, cost=100),
        line("c", "x", 0.9, step=1, cost=11),
    ]
    early = {s.row: s.early for s in rank_rows(lines, "error_mean", "lower")}
    assert early == {"a": 0, "b": 1, "c": 0}


def test_interval_of_a_median():
    low, high = median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert 1 <= low < 4 < high <= 7
    assert math.isnan(median_interval([1.0, 2.0])[0])


# ---- the page
@pytest.mark.slow  # figures
def test_figures_of_a_page():
    lines = many(a=[1, 1, 1, 1, 1, 9], b=[2, 2, 2, 2, 2, 2], c=[3, 3, 3, 3, 3, 3])
    suite = toy(problems={p: ["dataset=gaussian"] for p in PROBLEMS}, tables=TOY["tables"][:1])
    standings = rank_rows(lines, "error_mean", "lower")
    captions = [f["caption"] for f in page._figures(suite, [(suite.tables[0], standings)])]
    assert [caption.split(":")[0] for caption in captions] == ["Error", "Error against gradients"]
    assert "mean ranks over 6 problems" in captions[0]


def test_page_shows_own_rows_next_to_kept_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "_figures", lambda *_: [])
    suite = toy()
    own = rows.make_row(["inference=walk", "plugins=[walk]"], "mine")
    lines = [
        *[
            line(row, p, s, ess=10.0)
            for row, s in (("SGLD", 1.0), ("mine", 0.5))
            for p in suite.problems
        ],
        line("walk", "normal", None, "failed"),
        line("walk", "mixture", 1.0, "doubted", ess=3.0),
    ]
    path = page.write(suite, "small", lines, [own], tmp_path / "page.html")
    text = path.read_text()
    assert "http:" not in text.split("<main>")[1].split("</main>")[0]
    boards = re.findall(r'<tr class="(\w*)">(.*?)</tr>', text)
    assert boards[0][0] == "own"
    assert ">mine<" in boards[0][1]
    cells = json.loads(re.search(r'id="details">(.*?)</script>', text, re.S)[1])["cells"]
    assert cells[0]["title"] == "mine, normal"
    assert cells[0]["command"].startswith(
        "runner arena run toy inference=walk 'plugins=[walk]' --as 'mine'"
    )
    assert "failed" in text


# ---- from the command line
def test_a_row_is_run_and_shown(toy_folder, capsys, monkeypatch):
    """The launch stands in for its processes: runs are rehearsed here."""
    from omegaconf import OmegaConf

    from runner.compose.config import prepare
    from runner.execution.execute import run
    from runner.terminal.printer import suppress_output

    monkeypatch.chdir(toy_folder)

    def run_here(snapshot, runs, jobs, launcher=None):
        for frozen in runs:
            cfg = OmegaConf.create({**frozen.config, "output_dir": str(snapshot.output_dir)})
            cfg.pop("experiment")
            with suppress_output():
                run(prepare(cfg, frozen.experiment, None))
        return 0

    monkeypatch.setattr(command, "run_remaining", run_here)
    monkeypatch.setattr("runner.execution.replicate.Replicate.write", lambda *_: None)
    monkeypatch.setattr(page, "_figures", lambda *_: [])
    words = ["arena", "run", "toy", "inference=sgld", "--as", "mine", "--only", "problem=normal"]
    assert command.main(words) == 0
    told = capsys.readouterr().out
    assert "error_mean\t1 of 1\t1.0" in told
    assert "page     runner arena show toy --budget small" in told
    suite = load_suite("toy")
    (snapshot,) = rows.find_snapshots(suite, "small", toy_folder / "outputs")
    assert snapshot.runs[0].experiment == "arena.toy"
    lines = read_snapshot(suite, "small", snapshot)
    assert len([x for x in lines if x.is_final and x.problem == "normal"]) == 2
    assert {x.state for x in lines if x.problem == "mixture"} == {"not run"}
    assert snapshot.study.rows[0].overrides == ["inference=sgld"]
    assert to_csv(lines).count("\n") == 1 + len(lines)
    configs = {run.cell["problem"]: run.config for run in snapshot.runs}
    assert configs["normal"]["steps"] == 19
    with pytest.raises(ConfigError, match="row mine was frozen with inference=sgld; give another"):
        command.main(["arena", "run", "toy", "inference=psgld", "--as", "mine"])
    assert command.main(["arena", "show", "toy"]) == 0
    assert (toy_folder / "outputs" / "arena" / "toy" / "small.html").is_file()


def test_a_problem_without_data_is_left_out(toy_folder, monkeypatch, capsys):
    monkeypatch.chdir(toy_folder)
    monkeypatch.setenv("RUNNER_DATA_DIR", str(toy_folder / "empty"))
    away = ["dataset=posteriordb", "dataset.posterior=sblri-blr", "dataset.offline=error"]
    problems = TOY["problems"] | {"away": [*away, "offline=true"]}
    suite = Suite(**TOY | {"problems": problems})
    row = rows.make_row(["inference=sgld"], None)
    snapshot = rows.freeze(suite, "small", row, toy_folder / "outputs", [])
    (left_out,) = [run for run in snapshot.runs if run.lacks_data]
    assert left_out.cell == {"problem": "away"}
    assert find_state(left_out, {}, {}) == "not run"
    shown = capsys.readouterr()
    assert "1 of 3 problems have no data here, and are left out" in shown.out + shown.err


def test_a_mistake_is_no_missing_capability(toy_folder, monkeypatch):
    monkeypatch.chdir(toy_folder)
    with pytest.raises(ConfigError, match="step_siz"):
        command.main(["arena", "run", "toy", "inference=sgld", "inference.step_siz=3"])


@pytest.mark.slow  # a refusal tries what would fit
def test_a_method_that_fits_no_problem(toy_folder, monkeypatch):
    monkeypatch.chdir(toy_folder)
    with pytest.raises(ConfigError, match="no run can be composed"):
        command.main(["arena", "run", "toy", "inference=gibbs"])


def test_the_list(toy_folder, capsys):
    seconds = {"cost/cpu_seconds": 600.0}
    kept = [line("SGLD", p, 1.0, replicate=r, **seconds) for p in TOY["problems"] for r in (0, 1)]
    write_kept(kept, toy_folder / "conf" / "arena" / "toy.csv.gz")
    assert command.main(["arena"]) == 0
    lines = [each.split("\t") for each in capsys.readouterr().out.splitlines()]
    toys = next(each for each in lines if each[0] == "toy")
    minutes = math.ceil((4 * 600 + 2 * listing.START_SECONDS) / 60 / (os.cpu_count() or 1))
    assert toys[1:] == ["two densities", "2 problems, 2 rows", "SGLD", f"small {minutes} min"]


@pytest.mark.parametrize(
    ("method", "expected"), [("gaussian_vi", False), ("nuts", True), ("of_mine", True)]
)
def test_independent_draws_of_a_fit_have_no_effective_sample_size(
    tmp_path, monkeypatch, method, expected
):
    suite = toy(tables=[TOY["tables"][0], TOY["tables"][0] | {"name": "ess", "metric": "ess"}])
    first = suite.metrics[0]
    run = FrozenRun(
        "a", "a", {"problem": "gauss"}, [], "e", "s", "d", {"inference": {"name": method}}
    )
    snapshot = Snapshot(
        "arena.toy.a", suite.to_study(list(suite.rows)), "", "", [], [run], tmp_path
    )
    facts = {"state": "done", "result": {first: [0.5], "ess": [900.0]}, "checks": {}, "seed": 0}
    monkeypatch.setattr(Snapshot, "facts", lambda self, run: facts)
    (line,) = read_snapshot(suite, "", snapshot)
    assert ("ess" in line.values) is expected
    assert line.values[first] == 0.5
