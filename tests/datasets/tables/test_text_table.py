"""Files as other programs write them: encodings, delimiters and decimal marks, and what a table
cannot teach."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.runs.configured import component, generator, load, make_setting, normal

from components.datasets.own.collinear import collinear
from components.datasets.own.text_table import read_table
from components.errors import ConfigMismatchError, DamagedFileError
from runner.execution.rng import Streams

PLAIN = "größe,y\n1.5,2\n2.25,3\n-3,5\n"


def table_of(tmp_path: Path, content: str | bytes, **keys):
    path = tmp_path / "mine.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, keys.pop("delimiter", ","), ["", "NA"], **keys)


def numbers(table) -> dict[str, list[float | None]]:
    return {name: [table.number(cell) for cell in cells] for name, cells in table.cells.items()}


def problem_of(tmp_path: Path, content: str, **keys):
    (tmp_path / "mine.csv").write_text(content, encoding="utf-8")
    setting = make_setting(tmp_path)
    return component("dataset", "csv", path="mine.csv", **keys).load(Streams(0), setting)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (PLAIN.encode(), {}),
        (PLAIN.encode("utf-8-sig"), {}),
        (PLAIN.encode("utf-16"), {"encoding": "utf-16"}),
        (PLAIN.encode("utf-16-le"), {"encoding": "utf-16-le"}),
        (PLAIN.encode("cp1252"), {"encoding": "windows-1252"}),
        (PLAIN.replace("\n", "\r\n").encode(), {}),
        (PLAIN.replace(",", ";").encode(), {"delimiter": "';'"}),
        (PLAIN.replace(",", "\t").encode(), {"delimiter": "tabs"}),
        (PLAIN.replace(",", "|").encode(), {"delimiter": "'|'"}),
        (
            PLAIN.replace(",", ";").replace(".", ",").encode(),
            {"delimiter": "';'", "decimal mark": "comma"},
        ),
        (
            b'gr\xf6\xdfe,y\n"1,5",2\n"2,25",3\n-3,5\n',
            {"encoding": "windows-1252", "decimal mark": "comma"},
        ),
    ],
)
def test_what_a_file_is_written_in_is_recognised_and_said(tmp_path, content, facts):
    table = table_of(tmp_path, content)
    assert numbers(table) == {"größe": [1.5, 2.25, -3], "y": [2, 3, 5]}
    assert table.facts == facts
    assert table.lines == [2, 3, 4]


R_ROWS = "a column without a name, which counts the rows or is empty"
LEFT_OUT = {"lines left out": "4, blank or comments, the first is line 1"}


@pytest.mark.parametrize(
    ("content", "names", "x", "facts"),
    [
        ("sep=;\nx;y\n1,5;2\n3,25;4\n", "xy", [1.5, 3.25], {"delimiter": "';'", "decimal mark": "comma"}),
        ('"x"\t"y"\n"1.5"\t"2"\n3.25\t4\n', "xy", [1.5, 3.25], {"delimiter": "tabs"}),
        ('"";"x";"y"\n"1";1,5;2\n"2";3,25;4\n', "xy", [1.5, 3.25],
         {"delimiter": "';'", "left out": R_ROWS, "decimal mark": "comma"}),
        ('"x" "y"\n"1" 1.5 2\n"2" 3.25 4\n', "xy", [1.5, 3.25], {"delimiter": "blanks", "left out": R_ROWS}),
        ("x y\n1 1.5 2\n2 3.25 4\n", "xy", [1.5, 3.25], {"delimiter": "blanks", "left out": R_ROWS}),
        ("# by me, 2024\n\nx,y\n1.5,2\n\n# note\n \n3.25,4\n\n\n", "xy", [1.5, 3.25], LEFT_OUT),
        ("#,y\n1,a\n2,b\n", "#y", None, {}),
        ("x,y\n1.234,2\n5.678,3\n", "xy", [1.234, 5.678], {}),
        ("x\n1.234\n5.678\n", "x", [1.234, 5.678],
         {"decimal mark": "point, x holds 1.234"}),
        ("x\ty\n1.001\t2\n996\t2.5\n", "xy", [1.001, 996], {"delimiter": "tabs"}),
        ("x;y\n1.001;2\n12345;3\n", "xy", [1.001, 12345], {"delimiter": "';'"}),
        ("x;y\n1.234;2,5\n996;3\n", "xy", [None, 996],
         {"delimiter": "';'", "decimal mark": "comma"}),
        ("1,2\n3,4\n5,6\n", "12", None, {"names": "1, 2, numbers; the first line is not read as a row"}),
        ("x,y\na\u2028b,1\n", "xy", None, {}),
    ],
)  # fmt: skip
def test_files_of_other_programs(tmp_path, content, names, x, facts):
    table = table_of(tmp_path, content)
    assert table.names == list(names)
    assert table.facts == facts
    assert x is None or numbers(table)["x"] == x


def test_blank_lines_of_one_column_are_missing_times(tmp_path):
    content = 'y\n1.5\n\n""\n \n2.5\n""\n\n\n'
    table = table_of(tmp_path, content, by_time=True)
    assert table.cells == {"y": ["1.5", None, None, None, "2.5", None]}
    assert table.facts == {}
    assert table_of(tmp_path, content).facts["lines left out"].startswith("4, blank")
    series = load("csv_series", path=str(tmp_path / "mine.csv"), columns=["y"])[0]
    assert series.missing[0].tolist() == [False, True, True, True, False, True]


@pytest.mark.parametrize(
    ("content", "keys", "error", "said"),
    [
        (
            "x;y\n1,234;2\n5,678;3\n",
            {},
            ConfigMismatchError,
            "x holds 1,234, a fraction with dataset.decimal=',' or a thousand with the other mark; set it, or name",
        ),
        (
            "x;y\n996;2\n1.001;3\n",
            {},
            ConfigMismatchError,
            "x holds 1.001, a fraction with dataset.decimal='.' or a thousand with the other mark; set it, or name",
        ),
        ("x\n996\n1.001\n", {}, ConfigMismatchError, "x holds 1.001, a fraction"),
        ("x;y\n1.234;2\n5.678;3\n", {}, ConfigMismatchError, "x holds 1.234, a fraction"),
        (
            "Sales\nx,y\n1,2\n",
            {},
            DamagedFileError,
            "line 2: 2 cells under 1 names; name every column in the first line, repair",
        ),
        (
            "x;y\n1,5;2.5\n2,5;3.5\n",
            {},
            ConfigMismatchError,
            r"x holds 1,5, y holds 2.5; set dataset.decimal to .* in dataset.exclude",
        ),
        (
            b"x,y\n\x81,2\n",
            {},
            DamagedFileError,
            "no text in utf-8 or windows-1252; set dataset.encoding",
        ),
        (
            "x,y\n1,2\n",
            {"encoding": "klingon"},
            ConfigMismatchError,
            "dataset.encoding=klingon: no encoding",
        ),
        (
            "x,y\n1,2\n",
            {"exclude": ["z"]},
            ConfigMismatchError,
            "dataset.exclude=z: .* has no such column; there are x, y",
        ),
        ('x,y\n"1,2\n', {}, DamagedFileError, "no CSV file"),
    ],
)
def test_what_can_be_read_in_two_ways_is_asked_about(tmp_path, content, keys, error, said):
    with pytest.raises(error, match=said):
        table_of(tmp_path, content, **keys)


def test_keys_overrule_what_would_be_recognised(tmp_path):
    ambiguous = "x;y\n1,234;2\n5,678;3\n"
    assert numbers(table_of(tmp_path, ambiguous, decimal=","))["x"] == [1.234, 5.678]
    assert numbers(table_of(tmp_path, ambiguous, decimal="."))["x"] == [1234, 5678]
    for mark, cell in ((",", "1.234,5"), (".", "1,234.5")):
        table = table_of(tmp_path, f"x;y\n996;2\n{cell};3\n", decimal=mark)
        assert numbers(table)["x"] == [996, 1234.5]
    polish = "ciąg,y\n1,2\n2,3\n".encode("cp1250")
    assert table_of(tmp_path, polish, encoding="cp1250").names == ["ciąg", "y"]
    assert table_of(tmp_path, "a,b,c\n1,2,x\n", exclude=["b"]).names == ["a", "c"]


@pytest.mark.parametrize(
    ("cell", "decimal", "said"),
    [
        ("1 234", ".", "leave out the marks of thousands, or set dataset.decimal"),
        ("3,14", ".", "of such fractions set dataset.decimal=','"),
        ("3.14", ",", "of such fractions set dataset.decimal='.'"),
    ],
)
def test_a_number_that_cannot_be_read_is_no_text(tmp_path, cell, decimal, said):
    """Thirty such cells would be taken for thirty texts, an input for each."""
    content = "x;y\n" + "".join(f"{cell};{i}\n" for i in range(5))
    with pytest.raises(
        ConfigMismatchError,
        match=rf"line 2: x is '{cell}', no number; .* in dataset.exclude; {said}",
    ):
        problem_of(tmp_path, content, decimal=decimal)
    with pytest.raises(
        ConfigMismatchError, match=rf"line 2: x is '{cell}', no number; .* dataset.missing; {said}"
    ):
        load("csv_series", path=str(tmp_path / "mine.csv"), columns=["x"], decimal=decimal)


def test_columns_are_left_out_by_name(tmp_path):
    content = "id,x,note,y\n" + "".join(f"u{i},{i},free text {i},{i % 7}\n" for i in range(50))
    assert (
        problem_of(tmp_path, content, exclude=["id", "note"]).describe()["columns"] == "x: numbers"
    )
    series, _ = load(
        "csv_series",
        path=str(tmp_path / "mine.csv"),
        regressors=None,
        exclude=["id", "note"],
        n_ahead=2,
    )
    assert series.regressor_names == ["x"]


def test_constant_and_collinear_inputs_are_named(tmp_path):
    g = np.random.default_rng(0)
    rows = [(a, b, a + b, 7, 1000 * a + g.normal() * 0.1) for a, b in g.normal(size=(40, 2))]
    lines = [f"{a},{b},{c},{k},{d},{i % 5},train\n" for i, (a, b, c, k, d) in enumerate(rows)]
    content = "a,b,sum,k,scaled,y,s\n" + "".join(lines).removesuffix("train\n") + "test\n"
    facts = problem_of(tmp_path, content, split="s").describe()
    assert facts["constant inputs"].startswith("k: nothing is learnt from them")
    assert facts["collinear inputs"].startswith("sum with a, b; scaled with a;")
    assert not {"constant inputs", "collinear inputs"} & set(
        problem_of(tmp_path, content, inputs=["a", "b"]).describe()
    )


def test_nearly_equal_columns_are_found_and_correlated_ones_are_not():
    g = generator(0)
    a, noise = normal(g, 2, 500)
    assert collinear(torch.stack([1e9 + a, 1e-12 * (a + 0.01 * noise)], 1)) == {1: [0]}
    assert collinear(torch.stack([a, a + 0.2 * noise], 1)) == {}
    # fewer rows than columns: only pairs are told
    wide = normal(g, 20, 60)
    assert collinear(torch.cat([wide, -2 * wide[:, 7:8]], 1)) == {60: [7]}


def test_classes_and_texts_that_only_test_rows_have_are_named(tmp_path):
    def rows(*cells):
        return "x,city,a,s\n" + "".join(f"{i},{c}\n" for i, c in enumerate(cells))

    learnt = ["A,no,train", "B,yes,train", "A,no,train", "B,yes,train"]
    facts = problem_of(
        tmp_path,
        rows(*learnt, "C,maybe,test", "A,no,test"),
        labels="classes",
        targets=["a"],
        split="s",
    )
    told = facts.describe()
    assert told["texts not learnt from"] == "city C in 1 test row"
    assert told["classes not learnt from"].startswith("maybe: test rows alone have them")
    same = problem_of(
        tmp_path, rows(*learnt, "A,no,test"), labels="binary", targets=["a"], split="s"
    ).describe()
    assert not {"texts not learnt from", "classes not learnt from"} & set(same)
    with pytest.raises(
        ConfigMismatchError,
        match=r"the training labels of task a are all 'no'; leave it out of dataset.targets, or",
    ):
        problem_of(
            tmp_path,
            rows("A,no,train", "B,no,train", "A,yes,test"),
            labels="binary",
            targets=["a"],
            split="s",
        )
