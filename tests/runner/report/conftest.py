"""Fixtures of the tests of reports."""

import pytest
from support.runs.small_study import launch


@pytest.fixture
def study(tmp_path):
    """A launched study of eight runs that are not started."""
    return launch(tmp_path)
