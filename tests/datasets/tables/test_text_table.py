"""Files of other programs: encodings, delimiters, decimal marks and unsuitable tables."""

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from support.runs.configured import generator, load, normal

from components import errors
from components.datasets.own.collinear import collinear
from components.datasets.own.text_table import read_table
from components.errors import ConfigMismatchError

FIXTURES = Path(__file__).parents[2] / "fixtures"
PLAIN = "größe,y\n1.5,2\n2.25,3\n-3,5\n"


def read_cases(name):
    return yaml.safe_load((FIXTURES / f"{name}.yaml").read_text(encoding="utf-8"))


def table_of(tmp_path, content, **keys):
    path = tmp_path / "mine.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, keys.pop("delimiter", ","), ["", "NA"], **keys)


def numbers(table):
    return {name: [table.number(cell) for cell in cells] for name, cells in table.cells.items()}


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
def test_encoding_and_delimiter_are_detected_and_reported(tmp_path, content, facts):
    table = table_of(tmp_path, content)
    assert numbers(table) == {"größe": [1.5, 2.25, -3], "y": [2, 3, 5]}
    assert table.facts == facts
    assert table.lines == [2, 3, 4]


@pytest.mark.parametrize("case", read_cases("foreign_tables"))
def test_files_of_other_programs_are_read(tmp_path, case):
    table = table_of(tmp_path, case["content"])
    assert (table.names, table.facts) == (list(case["names"]), case["facts"])
    assert case["x"] is None or numbers(table)["x"] == case["x"]


def test_blank_lines_of_one_column_are_missing_times(tmp_path):
    content = 'y\n1.5\n\n""\n \n2.5\n""\n\n\n'
    table = table_of(tmp_path, content, by_time=True)
    assert table.cells == {"y": ["1.5", None, None, None, "2.5", None]}
    assert table.facts == {}
    assert table_of(tmp_path, content).facts["lines left out"].startswith("4, blank")
    series = load("csv_series", path=str(tmp_path / "mine.csv"), columns=["y"])[0]
    assert series.missing[0].tolist() == [False, True, True, True, False, True]


@pytest.mark.parametrize(
    "case",
    [
        *read_cases("ambiguous_tables"),
        {
            "content": b"x,y\n\x81,2\n",
            "error": "DamagedFileError",
            "said": "not text in utf-8 or windows-1252; set dataset.encoding",
        },
    ],
)
def test_ambiguous_formats_require_a_key(tmp_path, case):
    error = getattr(errors, case.get("error", "ConfigMismatchError"))
    with pytest.raises(error, match=case["said"]):
        table_of(tmp_path, case["content"], **case.get("keys", {}))


def test_keys_override_detection(tmp_path):
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
    ("cell", "decimal", "message"),
    [
        ("1 234", ".", "remove the thousands marks, or set dataset.decimal"),
        ("3,14", ".", "for such fractions set dataset.decimal=','"),
        ("3.14", ",", "for such fractions set dataset.decimal='.'"),
    ],
)
def test_malformed_number_is_not_text(tmp_path, load_table, cell, decimal, message):
    """Thirty such cells would be read as thirty texts with an input each."""
    content = "x;y\n" + "".join(f"{cell};{i}\n" for i in range(5))
    with pytest.raises(
        ConfigMismatchError,
        match=rf"line 2: x is '{cell}', not a number; .* to dataset.exclude; {message}",
    ):
        load_table(content, decimal=decimal)
    with pytest.raises(
        ConfigMismatchError,
        match=rf"line 2: x is '{cell}', not a number; .* dataset.missing; {message}",
    ):
        load("csv_series", path=str(tmp_path / "mine.csv"), columns=["x"], decimal=decimal)


def test_columns_can_be_excluded_by_name(tmp_path, load_table):
    content = "id,x,note,y\n" + "".join(f"u{i},{i},free text {i},{i % 7}\n" for i in range(50))
    assert load_table(content, exclude=["id", "note"]).describe()["columns"] == "x: numbers"
    series, _ = load(
        "csv_series",
        path=str(tmp_path / "mine.csv"),
        regressors=None,
        exclude=["id", "note"],
        n_ahead=2,
    )
    assert series.regressor_names == ["x"]


def test_constant_and_collinear_inputs_are_named(load_table):
    g = np.random.default_rng(0)
    rows = [(a, b, a + b, 7, 1000 * a + g.normal() * 0.1) for a, b in g.normal(size=(40, 2))]
    lines = [f"{a},{b},{c},{k},{d},{i % 5},train\n" for i, (a, b, c, k, d) in enumerate(rows)]
    content = "a,b,sum,k,scaled,y,s\n" + "".join(lines).removesuffix("train\n") + "test\n"
    facts = load_table(content, split="s").describe()
    assert facts["constant inputs"].startswith("k: no information")
    assert facts["collinear inputs"].startswith("sum with a, b; scaled with a;")
    assert not {"constant inputs", "collinear inputs"} & set(
        load_table(content, inputs=["a", "b"]).describe()
    )


def test_nearly_equal_columns_are_detected():
    g = generator(0)
    a, noise = normal(g, 2, 500)
    assert collinear(torch.stack([1e9 + a, 1e-12 * (a + 0.01 * noise)], 1)) == {1: [0]}
    assert collinear(torch.stack([a, a + 0.2 * noise], 1)) == {}
    # fewer rows than columns: only pairs are reported
    wide = normal(g, 20, 60)
    assert collinear(torch.cat([wide, -2 * wide[:, 7:8]], 1)) == {60: [7]}


def test_classes_and_texts_of_test_rows_only_are_named(load_table):
    def rows(*cells):
        return "x,city,a,s\n" + "".join(f"{i},{c}\n" for i, c in enumerate(cells))

    learnt = ["A,no,train", "B,yes,train", "A,no,train", "B,yes,train"]
    facts = load_table(
        rows(*learnt, "C,maybe,test", "A,no,test"),
        labels="classes",
        targets=["a"],
        split="s",
    )
    summary = facts.describe()
    assert summary["texts without training rows"] == "city C in 1 test row"
    assert summary["classes without training rows"].startswith("maybe: only in test rows")
    same = load_table(
        rows(*learnt, "A,no,test"), labels="binary", targets=["a"], split="s"
    ).describe()
    assert not {"texts without training rows", "classes without training rows"} & set(same)
    with pytest.raises(
        ConfigMismatchError,
        match=r"labels of task a .* 'no'; remove it from dataset.targets",
    ):
        load_table(
            rows("A,no,train", "B,no,train", "A,yes,test"),
            labels="binary",
            targets=["a"],
            split="s",
        )
