"""Fixtures of tests of data sets."""

import pytest

from components.datasets import files


def forget_files():
    """Forgets which files were found, as the next process does."""
    files.why_unavailable.cache_clear()
    files.forget()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache in place of the user's."""
    monkeypatch.setattr(files.platformdirs, "user_cache_path", lambda _: tmp_path / "cache")
    forget_files()
    yield
    forget_files()
