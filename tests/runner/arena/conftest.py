"""Fixtures of the tests of the arena."""

import pytest
from support.runs.arena_suites import TOY, use_suite


@pytest.fixture
def toy_suite(tmp_path):
    """The YAML of the toy suite, which is in use."""
    with use_suite(tmp_path, TOY) as path:
        yield path
