"""Data files: found, downloaded, verified, and never used when they are not what they should be."""

import gzip
import hashlib
import http.server
import multiprocessing
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from components.datasets import files
from components.datasets.data_files import DataFile
from components.errors import DamagedFileError, DataUnavailableError
from runner.errors import ConfigError
from runner.system import data

CONTENT = bytes(range(256)) * 500
SHA256 = hashlib.sha256(CONTENT).hexdigest()
GIT_BLOB = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
FILE = DataFile("toy", "toy/file.bin", (), len(CONTENT), "none", "nowhere", sha256=SHA256)


class Handler(http.server.BaseHTTPRequestHandler):
    """/good: the file; /other: another one; /short: the first half; everything else: 404."""

    def do_GET(self):
        self.server.asked.append(self.path)
        body = {
            "/good": CONTENT,
            "/other": b"<html>log in first</html>",
            "/short": CONTENT[: len(CONTENT) // 2],
        }.get(self.path)
        self.send_response(200 if body else 404)
        # A connection that breaks half-way: more is promised than sent.
        self.send_header(
            "Content-Length", str(len(CONTENT) if self.path == "/short" else len(body or b""))
        )
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        running.address = f"http://127.0.0.1:{running.server_port}"
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def closed():
    """An address at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}/good"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(files.platformdirs, "user_cache_path", lambda _: tmp_path / "cache")
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)
    files.forget()
    yield
    files.forget()


def listed(monkeypatch, *urls, **facts):
    """The toy file, alone in the catalogue, with these addresses."""
    file = replace(FILE, urls=urls, **facts)
    monkeypatch.setattr(files, "catalogue", lambda: (file,))
    return file


def put(folder, content=CONTENT):
    path = folder / FILE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_catalogue_gives_every_file_a_checksum_a_mirror_and_a_licence():
    for file in files.catalogue():
        assert file.sha256 or file.content_sha256 or file.git_blob or file.numbers_sha256
        # london_air is made from thousands of files, which no address offers as one; other copies
        # of year are other archives; those of oil flow and of faces other formats
        if file.dataset not in {"london_air", "year", "gplvm", "images_small"}:
            assert len({url.split("/")[2] for url in file.urls}) >= 2, (
                "mirrors are on different hosts"
            )
        assert file.path.startswith(f"{file.dataset}/")
        assert file.licence
        assert file.source
        assert file.bytes > 0
    assert {f.path for f in files.catalogue()} >= {
        "sarcos/sarcos_inv.mat",
        "sarcos/sarcos_inv_test.mat",
    }


def test_numbers_are_the_same_however_they_are_written(tmp_path):
    """Row by row as little-endian float64, in a text file or under ``data`` of an .npz file."""
    rows = np.array([[0.1, -2.0], [1e-300, 3.0], [0.0, 7.25]])
    literal = b"".join(struct.pack("<d", v) for row in rows.tolist() for v in row)
    file = replace(FILE, sha256=None, numbers_sha256=hashlib.sha256(literal).hexdigest())
    (tmp_path / "a.txt").write_text("0.1 -2\n1e-300\t3.000\n0 7.25\n")
    np.savez(tmp_path / "b.npz", data=rows, other=rows)
    np.savez(tmp_path / "c.npz", data=rows + 1e-16)
    np.savez(tmp_path / "d.npz", other=rows)
    (tmp_path / "e.txt").write_text("<html>log in first</html>")
    for good in ("a.txt", "b.npz"):
        files.verify(tmp_path / good, file)
    for bad in ("c.npz", "d.npz", "e.txt"):
        with pytest.raises(DamagedFileError, match="sha256 of the numbers"):
            files.verify(tmp_path / bad, file)


def test_git_blob_is_what_git_computes(tmp_path):
    path = put(tmp_path)
    computed = subprocess.run(
        ["git", "hash-object", path], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert computed == GIT_BLOB
    files.verify(path, replace(FILE, sha256=None, git_blob=computed))


def test_downloads_once_and_then_finds(tmp_path, monkeypatch, server):
    listed(monkeypatch, f"{server.address}/good")
    path = files.locate(tmp_path / "data", FILE.path)
    assert path == tmp_path / "data" / FILE.path
    assert path.read_bytes() == CONTENT
    assert files.locate(tmp_path / "data", FILE.path) == path
    assert server.asked == ["/good"]
    assert list(path.parent.iterdir()) == [path], "no temporary file is left"


@pytest.mark.parametrize("first", ["/missing", "/other", "/short"])
def test_tries_the_next_mirror(tmp_path, monkeypatch, server, first):
    listed(monkeypatch, f"{server.address}{first}", f"{server.address}/good")
    assert files.locate(tmp_path, FILE.path).read_bytes() == CONTENT
    assert server.asked == [first, "/good"]


def test_tries_the_next_mirror_when_nobody_listens(tmp_path, monkeypatch, server, closed):
    listed(monkeypatch, closed, f"{server.address}/good")
    assert files.locate(tmp_path, FILE.path).read_bytes() == CONTENT


def test_one_message_names_file_addresses_reasons_and_mend(tmp_path, monkeypatch, server, closed):
    urls = (closed, f"{server.address}/missing", f"{server.address}/other")
    listed(monkeypatch, *urls)
    with pytest.raises(DataUnavailableError) as caught:
        files.locate(tmp_path, FILE.path)
    message = str(caught.value)
    found = hashlib.sha256(b"<html>log in first</html>").hexdigest()
    assert message == (
        f"toy/file.bin: not in {tmp_path} and could not be downloaded from {urls[0]} (no connection), "
        f"{urls[1]} (HTTP 404), {urls[2]} (sent another file: sha256 expected {SHA256}, found {found}); "
        "run `runner data fetch toy` where there is a network, or set data_dir (RUNNER_DATA_DIR) to a folder that "
        "holds it"
    )
    assert not list((tmp_path / "toy").iterdir()), "nothing is left of a download that failed"


def test_a_failed_download_is_remembered_by_the_process(tmp_path, monkeypatch, server):
    listed(monkeypatch, f"{server.address}/missing")
    messages = []
    for _ in range(3):
        with pytest.raises(DataUnavailableError) as caught:
            files.locate(tmp_path, FILE.path)
        messages.append(str(caught.value))
    assert server.asked == ["/missing"]
    assert len(set(messages)) == 1
    put(tmp_path)  # someone else puts the file there
    assert files.locate(tmp_path, FILE.path).is_file()


def test_offline_attempts_no_download(tmp_path, monkeypatch, server):
    listed(monkeypatch, f"{server.address}/good")
    with pytest.raises(DataUnavailableError, match="offline"):
        files.locate(tmp_path, FILE.path, offline=True)
    assert server.asked == []


def test_a_silent_network_costs_seconds(tmp_path, monkeypatch):
    """Addresses that never answer, as behind a firewall that drops packets, and names that never
    resolve."""
    listed(monkeypatch, *(f"http://host-{i}.invalid/good" for i in range(6)))
    monkeypatch.setattr(files, "CONNECT_SECONDS", 0.2)

    def silence(*_, **__):
        time.sleep(2)
        raise TimeoutError

    monkeypatch.setattr(files.socket, "create_connection", silence)
    started = time.monotonic()
    with pytest.raises(DataUnavailableError, match="no connection"):
        files.locate(tmp_path, FILE.path)
    assert time.monotonic() - started < 1.5, (
        "all six are tried at once, and none is waited for longer than the limit"
    )


def test_a_server_that_stalls_is_given_up(tmp_path, monkeypatch):
    listener = socket.create_server(("127.0.0.1", 0))  # accepts, and says nothing
    listed(monkeypatch, f"http://127.0.0.1:{listener.getsockname()[1]}/good")
    monkeypatch.setattr(files, "STALL_SECONDS", 0.3)
    with listener, pytest.raises(DataUnavailableError, match="Timeout"):
        files.locate(tmp_path, FILE.path)


def test_connections_are_probed_at_the_proxy_when_there_is_one(tmp_path, monkeypatch, server):
    """Behind a proxy the hosts themselves cannot be reached; the test server plays the proxy."""
    monkeypatch.setenv("http_proxy", server.address)
    listed(monkeypatch, "http://unreachable.invalid/good")
    # it was asked for the whole address, which it does not know
    with pytest.raises(DataUnavailableError, match="HTTP 404"):
        files.locate(tmp_path, FILE.path)
    assert server.asked == ["http://unreachable.invalid/good"]


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT[:-1] + b"x"])
def test_a_damaged_file_is_never_used(tmp_path, monkeypatch, server, content):
    listed(monkeypatch, f"{server.address}/good")
    path = put(tmp_path, content)
    for _ in range(2):
        with pytest.raises(DamagedFileError) as caught:
            files.locate(tmp_path, FILE.path)
    assert str(caught.value) == (
        f"{path}: not the file it should be: sha256 expected {SHA256}, found {hashlib.sha256(content).hexdigest()}; "
        "replace it with `runner data fetch toy`, or remove it, or set data_dir (RUNNER_DATA_DIR) to another folder"
    )
    assert server.asked == [], "not replaced without being asked"
    assert path.read_bytes() == content


def test_a_file_that_changes_after_it_was_verified_is_read_again(tmp_path, monkeypatch):
    listed(monkeypatch)
    path = put(tmp_path)
    files.locate(tmp_path, FILE.path)
    reads = []
    mismatch = files.mismatch
    monkeypatch.setattr(files, "mismatch", lambda *given: reads.append(given) or mismatch(*given))
    files.locate(tmp_path, FILE.path)
    assert not reads, "verified, unchanged: not read again"
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(DamagedFileError):
        files.locate(tmp_path, FILE.path)


def test_gzip_content_counts_however_it_was_compressed(tmp_path):
    file = replace(FILE, sha256="0" * 64, content_sha256=SHA256)
    for level in (1, 9):
        files.verify(put(tmp_path / str(level), gzip.compress(CONTENT, level, mtime=level)), file)
    compressed = gzip.compress(CONTENT)
    for torn in (
        CONTENT,
        compressed[: len(compressed) // 2],
        compressed[:40] + b"????" + compressed[44:],
    ):
        with pytest.raises(DamagedFileError, match="sha256 of the content expected"):
            files.verify(put(tmp_path / "torn", torn), file)


def test_a_read_only_folder_is_used_and_not_written(tmp_path, monkeypatch, server):
    listed(monkeypatch, f"{server.address}/good")
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o555)
    assert not files.writable(folder), "also when the superuser asks"
    assert not files.writable(folder / "deeper" / "still")
    path = files.locate(folder, FILE.path)
    assert path == tmp_path / "cache" / FILE.path
    assert files.locate(folder, FILE.path) == path
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    put(folder)
    for p in (folder / "toy", folder):
        p.chmod(0o555)
    assert files.locate(folder, FILE.path) == folder / FILE.path
    for p in (folder, folder / "toy"):
        p.chmod(0o755)


def test_no_folder_can_be_written(tmp_path, monkeypatch, server):
    listed(monkeypatch, f"{server.address}/good")
    monkeypatch.setattr(files, "writable", lambda _: False)
    with pytest.raises(DataUnavailableError, match="no folder to download it to can be written"):
        files.locate(tmp_path, FILE.path)


def _locate(folder, address, results):
    file = replace(FILE, urls=(f"{address}/good",))
    files.catalogue = lambda: (file,)
    results.put(files.locate(folder, FILE.path).read_bytes() == CONTENT)


def test_processes_that_download_at_once_do_not_harm_each_other(tmp_path, server):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=_locate, args=(tmp_path, server.address, results)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    assert [results.get(timeout=30) for _ in processes] == [True] * 4
    for process in processes:
        process.join()
    assert [p.name for p in (tmp_path / "toy").iterdir()] == ["file.bin"]


# ---- runner data
# -----------------------------------------------------------------------------------------------------
def test_data_lists_fetches_and_verifies(tmp_path, monkeypatch, server, capsys):
    listed(monkeypatch, f"{server.address}/good")
    folder = ["--data-dir", str(tmp_path)]
    assert data.main(["data", "list", *folder]) == 0
    assert "toy/file.bin\t128.0 kB\tnot here: runner data fetch toy" in capsys.readouterr().out
    assert data.main(["data", "fetch", "toy", *folder]) == 0
    assert (
        f"toy/file.bin: downloaded to {tmp_path / 'toy'}, checksum fits" in capsys.readouterr().out
    )
    assert data.main(["data", "fetch", "all", *folder]) == 0
    assert "already in" in capsys.readouterr().out
    assert data.main(["data", "verify", *folder]) == 0
    assert capsys.readouterr().out == f"toy/file.bin\tgenuine\t{tmp_path}\n"
    assert data.main(["data", "list", "toy", *folder]) == 0
    assert f"toy/file.bin\t128.0 kB\tin {tmp_path}" in capsys.readouterr().out


def test_data_finds_and_replaces_a_damaged_file(tmp_path, monkeypatch, server, capsys):
    listed(monkeypatch, f"{server.address}/good")
    path = put(tmp_path, b"damaged")
    assert data.main(["data", "verify", "--data-dir", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "toy/file.bin\tDAMAGED" in shown.out
    assert SHA256 in shown.err
    assert data.main(["data", "fetch", "toy", "--data-dir", str(tmp_path)]) == 0
    assert "is damaged and will be replaced" in capsys.readouterr().out
    assert path.read_bytes() == CONTENT


def test_data_says_what_could_not_be_fetched(tmp_path, monkeypatch, closed, capsys):
    listed(monkeypatch, closed)
    assert data.main(["data", "fetch", "toy", "--data-dir", str(tmp_path)]) == 1
    assert "could not be downloaded" in capsys.readouterr().err


def test_data_names_the_nearest(monkeypatch):
    with pytest.raises(ConfigError, match=r"sarcas: no data set with files, did you mean sarcos\?"):
        data.main(["data", "list", "sarcas"])
    with pytest.raises(ConfigError, match="name what to download: sarcos, mnist"):
        data.main(["data", "fetch"])


def test_data_dir_is_the_one_that_runs_use(monkeypatch):
    from omegaconf import OmegaConf

    config = Path(__file__).parents[2] / "conf" / "config.yaml"
    for value in (None, "/somewhere"):
        monkeypatch.setenv("RUNNER_DATA_DIR", value) if value else monkeypatch.delenv(
            "RUNNER_DATA_DIR", raising=False
        )
        assert str(data.default_data_dir()) == OmegaConf.load(config).data_dir


def test_data_imports_neither_torch_nor_a_download_library():
    code = "import runner.system.data, sys; print([m for m in ('torch', 'requests', 'pooch', 'pydantic') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        == "[]"
    )
