"""Untrusted text is printed literally and never executed or interpreted."""

import pytest
from matplotlib.figure import Figure

from components.figures.labels import readable
from runner.report.pages import markdown
from runner.terminal.csv_cells import escape_cell, unescape_cell


@pytest.mark.parametrize(
    ("cell", "written"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-x", "'-x"), ("-1.5", "-1.5"), ("a", "a"), (-2, -2)],
)
def test_spreadsheet_executes_no_cell(cell, written):
    assert escape_cell(cell) == written
    assert unescape_cell(written) == cell if isinstance(cell, str) else True


def test_markdown_shows_words_verbatim():
    assert (
        markdown("a|b <i> *c* [d](e) n_train _f_\nx")
        == r"a\|b \<i\> \*c\* \[d\](e) n_train \_f\_ x"
    )


def test_invalid_label_does_not_lose_a_figure(tmp_path):
    figure = Figure()
    figure.text(0.5, 0.5, r"$\frac{1$")
    figure.text(0.5, 0.2, "$x^2$")
    with pytest.raises(ValueError):
        figure.savefig(tmp_path / "a.png")
    readable(figure).savefig(tmp_path / "a.png")
    assert [text.get_parse_math() for text in figure.texts] == [False, True]
