"""``--with`` takes several files."""

import pytest

from runner.report import command


@pytest.mark.parametrize(
    "words",
    [
        ["sarcos_table", "--with", "a", "b"],
        ["--with", "a", "b", "sarcos_table"],
        ["sarcos_table", "--with", "a", "--with", "b"],
    ],
)
def test_with_option_takes_files_before_or_after_the_study(words, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(
        command, "read_kept_scores", lambda files, study: given.extend(files) or _stop()
    )
    with pytest.raises(InterruptedError):
        command.main(["report", *words, "--output-dir", str(tmp_path)])
    assert given == ["a", "b"]


def _stop():
    raise InterruptedError
