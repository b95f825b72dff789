"""Material for a paper: valid LaTeX tables, figures with the width of a column, unique references."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.runs.small_study import NOISE, STUDY, record

from runner.report import report
from runner.report.latex.paper import PAGE_WIDTH_INCHES, SMALLEST, SOFTWARE, TESTS, fit_to_column
from runner.report.latex.text import latex
from runner.study.table_specs import Splits


def test_latex_characters_are_escaped():
    assert latex("50 % of {a_b} & α ≤ 1, R̂ < 2\\x") == (
        r"50 \% of \{a\_b\} \& $\alpha$ $\le$ 1, $\widehat{R}$ \textless{} 2\textbackslash{}x"
    )


def test_table_has_a_cell_for_every_column_of_the_page(study):
    noise = np.concatenate([NOISE, NOISE[:2]])
    record(study, "a", 1000, 0.20 + noise)  # published 0.15(0.1)
    record(study, "b", 1000, -0.20 + noise)
    record(study, "c", 1000, 1.60 + noise)
    written, _ = report.write("small", STUDY, study, study.output_dir / "out", paper=True)
    path, paired = sorted((p for p in written if p.suffix == ".tex"), key=lambda p: len(p.name))
    text = path.read_text()
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len({row.count("&") - row.count(r"\&") for row in rows}) == 1, (
        "all rows have the same number of cells"
    )
    se = noise.std(ddof=1) / np.sqrt(8)
    assert rf"sMDGP & as published & {{--}} & {0.20:.2f} \pm {se:.2f} \\" in text
    assert rf"\bfseries -0.20 \pm {se:.2f}" in text, "the best"
    assert re.search(r"\\quad published & +& .* & 0.15 \\pm 0.10", text)
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    assert "Mean and standard error of n = 8 replicates. Bold:" in text
    assert "two-sided t test, paired by replicate" in text
    lines = paired.read_text()
    assert r"sMDGP, as published & 1000 & 0.400 & 0.000 & 8 & $0.0078$ & $0.016$ \\" in lines
    assert "Mean difference from sMDGP, tuned over n pairs" in lines
    assert "Positive differences are worse." in lines


def test_captions_name_the_corrected_test_of_overlapping_splits(study):
    noise = np.concatenate([NOISE, NOISE[:2]])
    record(study, "a", 1000, 0.20 + noise)
    record(study, "b", 1000, -0.20 + noise + 0.01 * np.arange(8))
    overlapping = STUDY.model_copy(update={"splits": Splits(test_share=0.1)})
    folder = study.output_dir / "out" / "paper"
    report.write("small", overlapping, study, folder.parent, paper=True)
    for name in ("table_nlpp", "table_nlpp_paired"):
        text = (folder / f"{name}.tex").read_text()
        assert "Wilcoxon" not in text
        assert "two-sided t test" in text
        assert "(Nadeau and Bengio, 2003)" in text
    references = (folder / "references.bib").read_text()
    assert "nadeau2003" in references
    assert "holm1979" in references
    assert "wilcoxon1945" not in references


def test_published_rows_follow_ours_once_within_the_line_width(study):
    for name, value in (("a", 0.2), ("b", 0.1)):
        record(study, name, 1000, value + NOISE)
    report.write("small", STUDY, study, study.output_dir / "out", paper=True)
    text = (study.output_dir / "out" / "paper" / "table_nlpp.tex").read_text()
    body = text.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    ours = [row for row in rows if not row.startswith(r"\quad published")]
    assert len(ours) == 2, "rows without runs are left out"
    assert all(r"\pm" in row for row in ours)
    labels = [row.split(" & ")[0] for row in ours]
    assert len(rows) - len(ours) == len(set(labels)), "below the last printed row with this label"
    assert r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%" in text
    assert text.count("{") == text.count("}")


def test_figures_are_vectors_of_column_width(study):
    for n in (100, 1000):
        record(study, "b", n, 0.1 + NOISE)
    written, _ = report.write("small", STUDY, study, study.output_dir / "out", paper=True)
    paper = [p for p in written if p.parent.name == "paper"]
    assert {p.name for p in paper} == {"table_nlpp.tex", "curve.pdf", "curve.svg", "references.bib"}
    assert next(p for p in paper if p.suffix == ".pdf").read_bytes().startswith(b"%PDF")
    figure = Figure(figsize=(10, 5))
    text = figure.text(0.5, 0.5, "words", fontsize=7)
    fit_to_column(figure)
    assert figure.get_size_inches() == pytest.approx([PAGE_WIDTH_INCHES, 3.5])
    assert text.get_fontsize() == SMALLEST


def test_references_of_all_runs_occur_once(study):
    first = record(study, "a", 1000, 0.2 + NOISE)
    second = record(study, "b", 1000, 0.2 + NOISE)
    entry = "@book{b,\n  title = {B},\n}"
    two = "@article{a,\n  title = {A},\n}"
    (first / "references.bib").write_text(f"{entry}\n\n{two}\n")
    (second / "references.bib").write_text(f"{two}\n")
    report.write("small", STUDY, study, study.output_dir / "out", paper=True)
    bibliography = (study.output_dir / "out" / "paper" / "references.bib").read_text()
    keys = re.findall(r"@\w+\{(\w+),", bibliography)
    assert keys == sorted({"a", "b", *TESTS, *SOFTWARE.values()})
    assert bibliography.count("note = {Version 2.13.0}") == 1, (
        "the version of torch that the runs have recorded"
    )
    assert not (study.output_dir / "out" / "small.tex").exists()
