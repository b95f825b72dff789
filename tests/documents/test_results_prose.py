"""Numbers in the prose of docs/results come from kept scores."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from runner.study.definition import load_study
from scripts.prose import origin_notes
from scripts.prose.fields import fill_field
from scripts.prose.pages import TEMPLATES, list_templates, list_unscored, make_missing, make_page
from scripts.prose.printed_page import NAME, make_printed
from scripts.prose.scores import (
    FOLDER,
    Lookup,
    ProseError,
    clear_caches,
    list_scores,
    load_scores,
)

KEY = "spoofed:Kalman, all:8:rmse"
FIELD = 'RMSE {{{{ score("{}") }}}}'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Kept scores of one study: five replicates of Kalman, and a failed check of WoLF."""
    scores = {"Kalman, all": [1.0, 2.0, 3.0, 4.0, 5.0], "WoLF, all": [2.0, 2.0, 4.0, 4.0, 8.0]}
    with (tmp_path / "spoofed_replicates.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "row", "column", "data", "seed", "replicate", "score"])
        for row, values in scores.items():
            for r, value in enumerate(values):
                writer.writerow(["rmse", row, "8", "wiener_velocity", 0, r, value])
        writer.writerow(["rmse", "Kalman, all", "4", "wiener_velocity", 0, 0, 0.5])
    doubted = {"table": "rmse", "row": "WoLF, all", "column": "8", "doubted": True, "why": ""}
    origin = {"provenance": [["code", "abc1234567"]], "cells": [doubted]}
    (tmp_path / "spoofed_origin.json").write_text(json.dumps(origin), encoding="utf-8")
    monkeypatch.setattr(origin_notes, "read_history", lambda: frozenset({"abc1234567"}))
    clear_caches()
    return tmp_path


def write_template(folder: Path, text: str) -> Path:
    template = folder / TEMPLATES / "README.md.in"
    template.parent.mkdir(exist_ok=True)
    template.write_text(f"# Page\n\n{text}\n\n## End\n", encoding="utf-8")
    return template


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'score("{KEY}")', "3.0 ± 0.7"),  # sd √2.5 over √5
        (f'n("{KEY}")', "5"),
        (f'score("{KEY}") | show(decimals=2)', "3.00 ± 0.71"),
        ('score("spoofed:WoLF, all:8:rmse")', "4.0 ± 1.1†"),
        ('score("spoofed:Kalman, all:4:rmse")', "0.500‡"),
        (f'diff("{KEY}", ":WoLF, all::")', "−1.0 ± 0.5†"),
        (f'ratio("{KEY}", ":WoLF, all::")', "0.75 ± 0.09†"),
        (f'wins("{KEY}", ":WoLF, all::")', "3 of 5†"),
        ('score("spoofed:*, all:8:rmse") | range', "3.0 to 4.0† (SE ≤ 1.1)"),
        ('score("spoofed:*, all:8:rmse") | best', "3.0 ± 0.7"),
        (f'score("{KEY}") | show(percent=true)', "300 ± 71 %"),
        (
            'score("spoofed:*, all:8:rmse") | table',
            "| row | 8 |\n|---|---:|\n| Kalman, all | 3.0 ± 0.7 |\n| WoLF, all | 4.0 ± 1.1† |",
        ),
        (
            'score("spoofed:*, all:8:rmse") | join(score(":Kalman, all::")) | table',
            "| row | 8 | rmse, 8 |\n|---|---:|---:|\n"
            "| Kalman, all | 3.0 ± 0.7 | 3.0 ± 0.7 |\n| WoLF, all | 4.0 ± 1.1† |  |",
        ),
        (
            'diff("spoofed:W*, all:8:rmse", ":Kalman, all::") | table',
            "| row | 8 |\n|---|---:|\n| WoLF, all | +1.0 ± 0.5† |",
        ),
    ],
)
def test_fields_match_hand_computed_values(folder, text, expected):
    assert fill_field(text, Lookup(folder)) == expected


@pytest.fixture
def claims(folder):
    """Two additional rows: Kalman's plus about 1, and plus 1 with a spread, so that p is 0.017."""
    with (folder / "spoofed_replicates.csv").open("a", encoding="utf-8") as file:
        for row, more in {
            "BPF": [0.9, 1.1, 1, 1.05, 0.95],
            "t-BPF": [0.3, 0.6, 1, 1.4, 1.7],
        }.items():
            for r, value in enumerate(more):
                file.write(f'rmse,"{row}, all",8,wiener_velocity,0,{r},{r + 1 + value}\n')
    return Lookup(folder)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'ahead("{KEY}", ":BPF, all::")', "−1.00 ± 0.04, p < 0.001"),
        (f'behind("spoofed:BPF, all:8:rmse", "{KEY}")', "+1.00 ± 0.04, p < 0.001"),
        (f'undecided("{KEY}", ":t-BPF, all::")', "−1.0 ± 0.3, p 0.052"),
        (f'undecided("{KEY}", "spoofed:Kalman, all:4:rmse")', "+0.5000‡, too few replicates"),
        (f'level("{KEY}", ":BPF, all::", 1.1)', "−1.00 ± 0.04, with 95 % confidence within ±1.1"),
        (f'ahead("{KEY}", ":t-BPF, all::")', "is undecided, not ahead: −1.0 ± 0.3, p 0.052"),
        (f'behind("{KEY}", ":BPF, all::")', "is ahead, not behind"),
        (f'undecided("{KEY}", ":BPF, all::")', "is ahead, not undecided"),
        (f'level("{KEY}", ":BPF, all::", 1.0)', "may be 1.1 from"),
    ],
)
def test_comparative_words_require_significance(claims, text, expected):
    """Among three tests 0.017 is the smallest p: 0.052 after Holm."""
    if ", not" in expected or "may be" in expected:
        with pytest.raises(ProseError, match=expected):
            fill_field(text, claims)
    else:
        assert fill_field(text, claims) == expected


def test_untested_comparison_is_detected(claims, monkeypatch, capsys):
    from scripts import results

    field = f'{{{{ ahead("{KEY}", ":t-BPF, all::") }}}}'
    write_template(
        claims.folder, f"Kalman is ahead ({field}). It is better. A [words: better] one."
    )
    monkeypatch.setattr(results, "FOLDER", claims.folder)
    assert results.main(["--check", "--prose"]) == 1
    out = capsys.readouterr().out
    assert "README.md.in, line 3: 'better' without a field that tests it" in out
    assert ":t-BPF, all:8:rmse is undecided, not ahead: −1.0 ± 0.3, p 0.052" in out


def test_missing_score_is_detected(folder):
    with pytest.raises(ProseError, match="no kept score"):
        fill_field('score("spoofed:BPF, all:8:rmse")', Lookup(folder))
    with pytest.raises(ProseError, match="no kept scores"):
        fill_field('score("shaping:BPF, all:8:rmse")', Lookup(folder))
    text = f'RMSE {{{{ score("spoofed:BPF, all:8:rmse") }}}}, {{{{ n("{KEY}") }}}}.'
    page = make_page(write_template(folder, text), folder)
    assert ["no kept score" in error for error in page.errors] == [True]
    assert "RMSE **no kept score**, 5." in page.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('score("spoofed:*, all:8:rmse")', "use range, or name one"),
        ('score("spoofed:8:rmse")', "a key has the form study:row:column:table"),
        ("spread('a:b:c:d')", "'spread' is undefined"),
        (f'score("{KEY}") | spread', "No filter named 'spread'"),
        (f'score("{KEY}"', "unexpected"),
        (f'diff("{KEY}")', "missing 1 required positional argument"),
    ],
)
def test_invalid_field_is_reported(folder, text, message):
    with pytest.raises(ProseError, match=message):
        fill_field(text, Lookup(folder))


def test_hand_typed_number_is_detected(folder):
    page = make_page(write_template(folder, FIELD.format(KEY) + ", elsewhere 0.42."), folder)
    assert page.errors == ["README.md.in, line 3: 0.42 is typed by hand"]


def test_edited_page_differs_from_its_template(folder, monkeypatch, capsys):
    from scripts import results

    write_template(folder, FIELD.format("spoofed:WoLF, all:8:rmse"))
    monkeypatch.setattr(results, "FOLDER", folder)
    assert results.make_prose(check=False) == []
    page = folder / "README.md"
    right = page.read_text(encoding="utf-8")
    assert "4.0 ± 1.1†" in right
    assert "† a run behind" in right
    assert results.make_prose(check=True) == []
    for wrong in (right.replace("1.1†", "1.1"), right.replace("4.0", "3.9")):
        page.write_text(wrong, encoding="utf-8")
        assert results.make_prose(check=True) == ["README.md: differs from its template and scores"]


def test_missing_marks_are_listed(folder):
    template = write_template(folder, "A [print: 0.5], b.\n[missing: the RMSE of c | spoofed]")
    page = make_page(template, folder)
    assert "A 0.5, b." in page.text
    assert "missing" not in page.text
    assert "| the RMSE of c | spoofed |" in make_missing([page], folder)


def test_missing_mark_must_name_a_study(folder):
    page = make_page(write_template(folder, "[missing: the RMSE of c]"), folder)
    assert page.errors == ["README.md.in: [missing: the RMSE of c] names no study or command"]


def test_scores_of_uncommitted_code_are_marked(folder):
    path = folder / "spoofed_origin.json"
    origin = {"provenance": [["code", "abc1234567 with uncommitted changes"]]}
    path.write_text(json.dumps(origin), encoding="utf-8")
    page = make_page(write_template(folder, FIELD.format(KEY)), folder)
    assert "Studies to run again" in page.text
    assert "`spoofed`" in page.text


@pytest.mark.parametrize("template", list_templates(), ids=lambda path: path.stem)
def test_pages_match_templates_and_scores(template):
    page = make_page(template)
    assert page.errors == []
    assert page.path.read_text(encoding="utf-8") == page.text


def test_studies_state_what_replicates_redraw():
    for name in list_scores(FOLDER):
        study, _ = load_scores(FOLDER, name)
        assert study.draws_anew, name
        page = FOLDER / f"{name}.md"
        if page.is_file():
            assert "Redrawn for each replicate: " in page.read_text(encoding="utf-8"), name


def test_published_numbers_have_scores_or_reasons():
    text, errors = make_printed()
    assert errors == []
    assert (FOLDER / NAME).read_text(encoding="utf-8") == text


def test_every_page_has_kept_scores_or_template(folder):
    assert list_unscored() == []
    write_template(folder, "A.")
    (folder / "chapters").mkdir()
    for name in ("README", "missing", "printed", "sbc", "spoofed", "typed", "chapters/new"):
        (folder / f"{name}.md").write_text("0.42\n")
    (folder / "sbc_ranks.csv").write_text("")
    assert [page.name for page in list_unscored(folder)] == ["new.md", "typed.md"]


def test_split_studies_correct_standard_errors():
    # 1,000 test rows and N training rows from one pool of 4,449
    overlap = load_study("sarcos_table").overlap
    assert overlap("500", "sarcos-test-file") == pytest.approx(1000 / 3449)
    assert overlap("2000", "sarcos-test-file") == pytest.approx(2000 / 2449)
    assert load_study("sarcos_table").overlap("500", "sarcos-sim") == 0.0
    assert load_study("aadm_uci").overlap("boston", "uci") == pytest.approx(1 / 9)
    assert load_study("spoofed").overlap("8", "wiener_velocity") == 0.0


@pytest.mark.slow  # takes 90 seconds
def test_every_page_matches_its_scores(capsys):
    from scripts import results

    assert results.main(["--check"]) == 0, capsys.readouterr().out
