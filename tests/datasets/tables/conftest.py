"""Fixtures of tests of tables."""

import pytest
from support.runs.configured import component, make_setting

from runner.execution.rng import Streams


@pytest.fixture
def load_table(tmp_path):
    """Function that loads a user's table from its text."""

    def load(content, **keys):
        (tmp_path / "mine.csv").write_text(content, encoding="utf-8")
        dataset = component("dataset", "csv", path="mine.csv", **keys)
        return dataset.load(Streams(0), make_setting(tmp_path))

    return load
