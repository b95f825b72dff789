"""``runner data``: lists, fetches and verifies data files."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.runs.toy_file import CONTENT, SHA256, write_toy

from runner.errors import ConfigError
from runner.system import data

pytestmark = pytest.mark.usefixtures("own_network")


def test_command_lists_fetches_and_verifies(tmp_path, capsys, good):
    folder = ["--data-dir", str(tmp_path)]
    assert data.main(["data", "list", *folder]) == 0
    assert "toy/file.bin\t128.0 kB\tmissing: runner data fetch toy" in capsys.readouterr().out
    assert data.main(["data", "fetch", "toy", *folder]) == 0
    assert (
        f"toy/file.bin: downloaded to {tmp_path / 'toy'}, checksum verified"
        in capsys.readouterr().out
    )
    assert data.main(["data", "fetch", "all", *folder]) == 0
    assert "already in" in capsys.readouterr().out
    assert data.main(["data", "verify", *folder]) == 0
    assert capsys.readouterr().out == f"toy/file.bin\t128.0 kB\tgenuine, in {tmp_path}\n"
    assert data.main(["data", "list", "toy", *folder]) == 0
    assert f"toy/file.bin\t128.0 kB\tin {tmp_path}" in capsys.readouterr().out


def test_command_finds_and_replaces_a_damaged_file(tmp_path, capsys, good):
    path = write_toy(tmp_path, b"damaged")
    assert data.main(["data", "verify", "--data-dir", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "toy/file.bin\t128.0 kB\tDAMAGED, in" in shown.out
    assert SHA256 in shown.err
    assert data.main(["data", "fetch", "toy", "--data-dir", str(tmp_path)]) == 0
    assert "is damaged and will be replaced" in capsys.readouterr().out
    assert path.read_bytes() == CONTENT


def test_command_reports_failed_downloads(tmp_path, closed_address, capsys, list_addresses):
    list_addresses(closed_address)
    assert data.main(["data", "fetch", "toy", "--data-dir", str(tmp_path)]) == 1
    assert "could not be downloaded" in capsys.readouterr().err


def test_command_names_the_nearest_file():
    with pytest.raises(ConfigError, match=r"sarcas: .* did you mean sarcos\?"):
        data.main(["data", "list", "sarcas"])
    with pytest.raises(ConfigError, match="choose sarcos, mnist"):
        data.main(["data", "fetch"])


def test_data_dir_is_shared_with_runs(monkeypatch):
    from omegaconf import OmegaConf

    config = Path(__file__).parents[2] / "conf" / "config.yaml"
    for value in (None, "/somewhere"):
        monkeypatch.setenv("RUNNER_DATA_DIR", value) if value else monkeypatch.delenv(
            "RUNNER_DATA_DIR", raising=False
        )
        assert str(data.default_data_dir()) == OmegaConf.load(config).data_dir


def test_command_imports_neither_torch_nor_pooch():
    code = "import runner.system.data, sys; print([m for m in ('torch', 'requests', 'pooch', 'pydantic') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        == "[]"
    )
