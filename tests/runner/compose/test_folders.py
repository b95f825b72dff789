"""Paths of folders as users write them."""

from __future__ import annotations

import pytest

from runner.compose.settings import validate_folder


def test_a_tilde_is_the_users_own_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert validate_folder("~/runs") == "/home/somebody/runs"
    assert validate_folder("runs/~") == "runs/~"


@pytest.mark.parametrize("path", ["", "  ", "a\0b"])
def test_a_path_that_no_disk_can_have_is_refused(path):
    with pytest.raises(ValueError, match="is no folder"):
        validate_folder(path)
