"""Protocols of kept scores: a row with other steps is distinguished, excluded or marked."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from support.runs.made_records import make_record

from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.errors import ConfigError
from runner.report.csv_files import write_replicates
from runner.report.exchange.expected import expect_protocols
from runner.report.latex.tables import score_table
from runner.report.notes import note_protocols
from runner.report.origin import Kept, Origin, collect_protocols
from runner.report.results import layout_table
from runner.report.scores.earlier import HEADER, PROTOCOL, read_earlier
from runner.report.scores.gathering import belongs
from runner.study.definition import StudyDefinition, load_study
from runner.study.plan import plan
from runner.study.protocol import find_protocol
from runner.study.snapshot import FrozenRun, Snapshot

CONFIG = {
    "experiment": "made",
    "seed": 0,
    "replicates": 2,
    "steps": 6,
    "eval_every": None,
    "threads": 1,
    "dtype": "float64",
    "device": "cpu",
    "output_dir": "/somewhere",
    "smoke": False,
    "dataset": {"name": "gaussian", "sd": 1.0},
    "model": {"name": "target_density"},
    "inference": {"name": "sgld", "step_size": 0.1},
}
STUDY = StudyDefinition(
    name="small",
    description="",
    rows=[
        {"label": name, "model": name, "preset": "", "experiment": "made"} for name in ("A", "B")
    ],
    tables=[{"name": "t", "title": "", "columns": {"error": "rmse"}}],
    reference="A",
)
FULL = find_protocol(CONFIG, "rmse")
SHORT = find_protocol(CONFIG | {"steps": 3}, "rmse")
SHORT_ORIGIN = Origin(protocols={SHORT.digest: SHORT.parts})


def snapshot_with(tmp_path, *rows: str) -> Snapshot:
    """A launched study with records of some rows."""
    runs = []
    for row in ("A", "B"):
        signature = row.lower() * 12
        runs.append(FrozenRun(row, row, {}, [], "made", signature, "made-data", CONFIG))
        if row in rows:
            make_record(tmp_path, signature, replicates=2)
    return Snapshot("small", STUDY, "2026-11-01", "", [], runs, tmp_path)


def keep_scores(tmp_path, row: str, protocol: str, scores=(1.0, 2.0)):
    """Earlier scores of a row, with a protocol or without (an empty one)."""
    path = tmp_path / f"{row}{protocol}_replicates.csv"
    header = [*HEADER, PROTOCOL] if protocol else HEADER
    lines = [["t", row, "error", "made-data", 0, r, score] for r, score in enumerate(scores)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [header, *(line + [protocol] * bool(protocol) for line in lines)]
        )
    return {str(path): path}


def cells_of(tables):
    return {row.name: cell for laid in tables for row, cells in laid.rows for cell in cells}


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"seed": 3, "replicates": 9, "threads": 4, "output_dir": "/elsewhere"}, True),
        ({"device": "cuda", "description": "other words", "tracking": False}, True),
        ({"validation": None, "side_by_side": False, "budget": {"gradients": None}}, True),
        ({"decision": {"loss": None, "level": 0.9}}, True),
        ({"decision": {"loss": "pinball", "level": 0.9}}, False),
        ({"steps": 30}, False),
        ({"smoke": True}, False),
        ({"eval_every": 2}, False),
        ({"dataset": {"name": "gaussian", "sd": 2.0}}, False),
        ({"inference": {"name": "sgld", "step_size": 0.2}}, False),
        ({"attacker": {"name": "fgsm", "eps": [0.1]}}, False),
    ],
)
def test_protocol_defines_a_cell(changes, is_same):
    assert (find_protocol(CONFIG | changes, "rmse") == FULL) is is_same
    assert find_protocol(CONFIG, "nlpp") != FULL


def test_differences_are_described_in_words():
    other = find_protocol(
        CONFIG | {"steps": 30, "dataset": {"name": "gaussian", "sd": 2.0}}, "rmse"
    )
    assert FULL.differences(other.parts) == "settings of dataset=gaussian, steps=30 (here 6)"
    assert FULL.differences(FULL.parts) == ""
    assert (
        find_protocol(CONFIG | {"model": {"name": "mlp"}}, "rmse")
        .differences(FULL.parts)
        .startswith("model=target_density:")
    )


def test_scores_of_other_steps_are_excluded_next_to_records(tmp_path):
    snapshot = snapshot_with(tmp_path, "A", "B")
    earlier = read_earlier(keep_scores(tmp_path, "A", SHORT.digest, (7.0, 8.0, 9.0)), STUDY)
    tables = layout_table(STUDY, snapshot, Kept(earlier, SHORT_ORIGIN))
    cell = cells_of(tables)["A"]
    assert len(cell.values) == 2
    assert cell.protocol == FULL.digest
    assert note_protocols(tables) == [
        "Earlier scores excluded for A (error): other protocol: steps=3 (here 6)."
    ]


def test_row_of_other_steps_is_marked_and_not_compared(tmp_path):
    snapshot = snapshot_with(tmp_path, "A")
    earlier = read_earlier(keep_scores(tmp_path, "B", SHORT.digest, (0.0, 0.1)), STUDY)
    tables = layout_table(STUDY, snapshot, Kept(earlier, SHORT_ORIGIN))
    cells = cells_of(tables)
    assert cells["B"].other_protocol == "other protocol: steps=3 (here 6)"
    assert not cells["B"].bold
    assert cells["B"].against is None
    assert [cells[row].mark for row in ("A", "B")] == ["", "§"]
    assert note_protocols(tables) == [
        "§ B (error): other protocol: steps=3 (here 6); excluded from comparisons."
    ]
    assert "\\textsuperscript{\\S}" in score_table(tables[0], "small")


def test_scores_of_the_same_or_an_unknown_protocol_count(tmp_path):
    snapshot = snapshot_with(tmp_path, "A")
    for protocol in (FULL.digest, ""):
        cell = cells_of(
            layout_table(
                STUDY, snapshot, Kept(read_earlier(keep_scores(tmp_path, "B", protocol), STUDY))
            )
        )["B"]
        assert (cell.earlier, cell.other_protocol, cell.protocol) == (2, "", protocol)
        assert cell.against is not None


def test_study_defines_the_protocol_without_records(tmp_path):
    earlier = read_earlier(keep_scores(tmp_path, "B", SHORT.digest), STUDY)
    tables = layout_table(STUDY, None, Kept(earlier, expected={("t", "B", "error"): FULL}))
    assert cells_of(tables)["B"].other_protocol == f"other protocol: {SHORT.digest}"
    assert not cells_of(layout_table(STUDY, None, Kept(earlier)))["B"].other_protocol


def test_two_protocols_in_one_cell_are_refused(tmp_path):
    full = keep_scores(tmp_path, "B", FULL.digest)
    with pytest.raises(
        ConfigError, match=f"line 2: protocol {SHORT.digest}, but other lines of this"
    ):
        read_earlier(full | keep_scores(tmp_path, "B", SHORT.digest), STUDY)
    mixed = read_earlier(full | keep_scores(tmp_path, "B", ""), STUDY)
    assert set(mixed[PROTOCOL]) == {""}


def test_kept_scores_store_and_restore_the_protocol(tmp_path):
    tables = layout_table(STUDY, snapshot_with(tmp_path, "A", "B"))
    path = tmp_path / "small_replicates.csv"
    write_replicates(tables, path)
    assert path.read_text().splitlines()[1].endswith(f",{FULL.digest}")
    earlier = read_earlier({"": path}, STUDY)
    assert set(earlier[PROTOCOL]) == {FULL.digest}
    assert collect_protocols(tables, Origin()) == {FULL.digest: FULL.parts}


def test_kept_scores_without_protocols_are_written_unchanged(tmp_path):
    file = keep_scores(tmp_path, "B", "")
    path = tmp_path / "again.csv"
    write_replicates(layout_table(STUDY, None, Kept(read_earlier(file, STUDY))), path)
    assert path.read_text() == next(iter(file.values())).read_text()


def test_rank_diagram_excludes_other_protocols(tmp_path):
    from runner.report.figures.ranks import collect_blocks
    from runner.study.figure_specs import RankSpec

    (laid,) = layout_table(STUDY, snapshot_with(tmp_path, "A", "B"))
    spec = RankSpec(name="r", title="", table="t", blocks="all")
    assert set(collect_blocks(spec, laid, ["A", "B"])) == {"A", "B"}
    (row, (cell,)) = laid.rows[1]
    laid.rows[1] = row, [replace(cell, other_protocol="steps=3")]
    assert set(collect_blocks(spec, laid, ["A", "B"])) == {"A"}


def test_study_definition_determines_the_protocol(tmp_path):
    study = load_study("moe_mog_steps")
    table = study.tables[0]
    run = next(
        run for run in plan(study, []) if belongs(run, table, run.row, study.columns(table)[0])
    )
    place = table.name, run.row, study.columns(table)[0]
    metric = table.column_metric(place[2])
    expected = expect_protocols(study, [place])[place]
    for extra, is_same in (["seed=7", f"output_dir={tmp_path}"], True), (["steps=600"], False):
        job = prepare(compose([*run.overrides, *extra]))
        assert (find_protocol(job.config, metric) == expected) is is_same
