"""Round robins: scores of every pair, the frontier of two scores, and the kept suites' keys."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from support.runs.arena_suites import make_line

from runner.arena.figures import draw_frontier, draw_pairs, pair_scores
from runner.arena.scores import to_frame
from runner.arena.suite import Suite, load_suite
from runner.compose.compose import compose

ROUND = {
    "name": "round",
    "measures": "two games",
    "description": "Two games.",
    "replicates": 4,
    "opponents": ["one", "two"],
    "frontier": {"x": "exploitability", "y": "reward"},
    "problems": {"dilemma": ["dataset=iterated_matrix"], "blotto": ["dataset=blotto"]},
    "rows": [],
    "tables": [
        {"name": "reward", "title": "Reward", "columns": "problem", "metric": "reward"},
        {"name": "loss", "title": "Loss", "columns": "problem", "metric": "exploitability"},
    ],
}
# row -> reward by replicate, exploitability of all replicates
PLAYED = {"mine": ([1.0, 10.0, 3.0, 30.0], 0.5), "best": ([4, 4, 4, 4], 0.2), "weak": ([0] * 4, 1)}


def round_robin(**changes) -> Suite:
    return Suite(**ROUND | {"rows": [{"label": "a", "model": "a", "preset": ""}]} | changes)


@pytest.fixture
def lines() -> pd.DataFrame:
    return to_frame(
        make_line(row, "dilemma", None, replicate=r, reward=v, exploitability=loss)
        for row, (rewards, loss) in PLAYED.items()
        for r, v in enumerate(rewards)
    )


def test_pairs_are_means_over_the_replicates_of_an_opponent(lines):
    rows = ["mine", "best", "failed"]
    scores = pair_scores(round_robin(), lines, "reward", rows)
    assert scores.keys() == {"dilemma"}  # no values of the other game
    expected = [[2.0, 20.0], [4.0, 4.0], [np.nan, np.nan]]
    np.testing.assert_array_equal(scores["dilemma"], expected)


def test_round_robin_has_its_figures(lines):
    pairs = draw_pairs(round_robin(), lines, list(PLAYED)).figure
    (axes,) = (ax for ax in pairs.axes if ax.images)
    assert [t.get_text() for t in axes.get_xticklabels()] == ROUND["opponents"]
    assert [t.get_text() for t in axes.texts] == ["2", "20", "4", "4", "0", "0"]
    frontier = draw_frontier(round_robin(), lines, list(PLAYED)).figure
    front, *points = frontier.axes[0].lines
    # best earns less than mine but loses less; weak is worse than both
    assert list(zip(*front.get_data(), strict=True)) == [(0.2, 4.0), (0.5, 11.0)]
    faces = {line.get_xdata()[0]: line.get_markerfacecolor() for line in points}
    assert faces[1.0] == "white"
    assert "white" not in (faces[0.2], faces[0.5])


def test_suites_without_the_keys_have_no_such_figures(lines):
    plain = round_robin(opponents=[], frontier=None)
    assert draw_pairs(plain, lines, list(PLAYED)) is None
    assert draw_frontier(plain, lines, list(PLAYED)) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replicates": 5}, "opponents: 2 do not share 5 replicates evenly"),
        ({"frontier": {"x": "welfare", "y": "reward"}}, "frontier.x: welfare has no table"),
    ],
)
def test_invalid_round_robins_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        round_robin(**changes)


def test_opponents_of_the_kept_suite_are_its_rows():
    """Labels match rows with the same agent and keys, in the order of the members."""
    suite = load_suite("games")
    shared = [*suite.overrides, *suite.problems["blotto"]]
    attacker = OmegaConf.to_container(compose(shared).cfg.attacker)
    rows = {row.label: compose([*shared, *row.overrides]).cfg for row in suite.rows}
    for label, member in zip(suite.opponents, attacker["members"], strict=True):
        agent = member["agent"]
        agent = agent if isinstance(agent, dict) else {"name": agent}
        played = OmegaConf.to_container(rows[label].inference)
        assert agent.items() <= played.items()
