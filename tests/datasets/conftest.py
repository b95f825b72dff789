"""Fixtures of tests of data sets."""

from __future__ import annotations

import pytest

from components.datasets import files


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Nothing is found in, or written to, the user's own cache."""
    monkeypatch.setattr(files.platformdirs, "user_cache_path", lambda _: tmp_path / "cache")
    files.why_unavailable.cache_clear()
    files.forget()
