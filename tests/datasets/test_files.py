"""Data files: search, download, verification, and rejection of wrong files."""

import gzip
import hashlib
import multiprocessing
import os
import socket
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from support.runs.toy_file import CONTENT, FILE, GIT_BLOB, SHA256, write_toy

from components.datasets import files
from components.errors import DamagedFileError, DataUnavailableError

pytestmark = pytest.mark.usefixtures("own_network")


def locate(folder, **keys):
    return files.locate(folder, FILE.path, **keys)


def test_every_file_has_checksum_mirror_and_licence():
    for file in files.catalogue():
        assert file.sha256 or file.content_sha256 or file.git_blob or file.numbers_sha256
        # london_air consists of thousands of files; other copies of year are different archives;
        # copies of oil flow and faces have other formats; the moments of the Inference Gym are
        # modules of its package
        if file.dataset not in {"london_air", "year", "gplvm", "images_small", "inference_gym"}:
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


def test_numbers_are_equal_in_every_format(tmp_path):
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


def test_git_blob_hash_equals_git(tmp_path):
    path = write_toy(tmp_path)
    computed = subprocess.run(
        ["git", "hash-object", path], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert computed == GIT_BLOB
    files.verify(path, replace(FILE, sha256=None, git_blob=computed))


def test_download_happens_once(tmp_path, good):
    path = locate(tmp_path / "data")
    assert path == tmp_path / "data" / FILE.path
    assert path.read_bytes() == CONTENT
    assert locate(tmp_path / "data") == path
    assert good.asked == ["/good"]
    assert list(path.parent.iterdir()) == [path], "no temporary file is left"


@pytest.mark.parametrize("first", ["/missing", "/other", "/short"])
def test_next_mirror_is_tried_after_an_error(tmp_path, server, first, list_addresses):
    list_addresses(f"{server.address}{first}", f"{server.address}/good")
    assert locate(tmp_path).read_bytes() == CONTENT
    assert server.asked == [first, "/good"]


def test_next_mirror_is_tried_when_nobody_listens(tmp_path, server, closed_address, list_addresses):
    list_addresses(closed_address, f"{server.address}/good")
    assert locate(tmp_path).read_bytes() == CONTENT


def test_message_names_file_addresses_reasons_and_fix(
    tmp_path, server, closed_address, list_addresses
):
    urls = (closed_address, f"{server.address}/missing", f"{server.address}/other")
    list_addresses(*urls)
    with pytest.raises(DataUnavailableError) as caught:
        locate(tmp_path)
    message = str(caught.value)
    digest = hashlib.sha256(b"<html>log in first</html>").hexdigest()
    assert message == (
        f"toy/file.bin: not in {tmp_path} and could not be downloaded from {urls[0]} (no connection), "
        f"{urls[1]} (HTTP 404), {urls[2]} (sent a different file: sha256 expected {SHA256}, found {digest}); "
        "run `runner data fetch toy` with a network connection, or set data_dir (RUNNER_DATA_DIR) to a folder that "
        "holds it"
    )
    assert not list((tmp_path / "toy").iterdir()), "nothing is left of a download that failed"


def test_failed_download_is_remembered_by_the_process(tmp_path, server, list_addresses):
    list_addresses(f"{server.address}/missing")
    messages = []
    for _ in range(3):
        with pytest.raises(DataUnavailableError) as caught:
            locate(tmp_path)
        messages.append(str(caught.value))
    assert server.asked == ["/missing"]
    assert len(set(messages)) == 1
    write_toy(tmp_path)  # someone else puts the file there
    assert locate(tmp_path).is_file()


def test_offline_mode_attempts_no_download(tmp_path, good):
    with pytest.raises(DataUnavailableError, match="offline"):
        locate(tmp_path, offline=True)
    assert good.asked == []


def test_silent_host_is_contacted_once_for_all_files(tmp_path, monkeypatch, list_addresses):
    """Addresses that never respond, as behind a firewall that drops packets."""
    list_addresses(*(f"http://host.invalid/{i}" for i in range(6)))
    asked = []

    def silence(host, timeout):
        asked.append((host, timeout))
        raise TimeoutError

    monkeypatch.setattr(files.socket, "create_connection", silence)
    with pytest.raises(DataUnavailableError, match="no connection"):
        locate(tmp_path)
    assert asked == [(("host.invalid", 80), files.CONNECT_SECONDS)]


def test_stalled_server_times_out(tmp_path, monkeypatch, list_addresses):
    listener = socket.create_server(("127.0.0.1", 0))  # accepts connections, and never responds
    list_addresses(f"http://127.0.0.1:{listener.getsockname()[1]}/good")
    monkeypatch.setattr(files, "STALL_SECONDS", 0.3)
    with listener, pytest.raises(DataUnavailableError, match="Timeout"):
        locate(tmp_path)


def test_connections_are_probed_at_the_proxy(tmp_path, monkeypatch, server, list_addresses):
    """Behind a proxy the hosts are not reachable directly; the test server acts as the proxy."""
    monkeypatch.setenv("http_proxy", server.address)
    list_addresses("http://unreachable.invalid/good")
    # the proxy received the full address, which is unknown to it
    with pytest.raises(DataUnavailableError, match="HTTP 404"):
        locate(tmp_path)
    assert server.asked == ["http://unreachable.invalid/good"]


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT[:-1] + b"x"])
def test_damaged_file_is_never_used(tmp_path, content, good):
    path = write_toy(tmp_path, content)
    for _ in range(2):
        with pytest.raises(DamagedFileError) as caught:
            locate(tmp_path)
    assert str(caught.value) == (
        f"{path}: unexpected content: sha256 expected {SHA256}, found {hashlib.sha256(content).hexdigest()}; "
        "replace it with `runner data fetch toy`, or remove it, or set data_dir (RUNNER_DATA_DIR) to another folder"
    )
    assert good.asked == [], "not replaced without being asked"
    assert path.read_bytes() == content


def test_changed_file_is_read_again(tmp_path, monkeypatch, list_addresses):
    list_addresses()
    path = write_toy(tmp_path)
    locate(tmp_path)
    reads = []
    mismatch = files.mismatch
    monkeypatch.setattr(files, "mismatch", lambda *given: reads.append(given) or mismatch(*given))
    locate(tmp_path)
    assert not reads, "verified, unchanged: not read again"
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(DamagedFileError):
        locate(tmp_path)


def test_gzip_content_is_independent_of_compression(tmp_path):
    file = replace(FILE, sha256="0" * 64, content_sha256=SHA256)
    for level in (1, 9):
        files.verify(
            write_toy(tmp_path / str(level), gzip.compress(CONTENT, level, mtime=level)), file
        )
    compressed = gzip.compress(CONTENT)
    for torn in (
        CONTENT,
        compressed[: len(compressed) // 2],
        compressed[:40] + b"????" + compressed[44:],
    ):
        with pytest.raises(DamagedFileError, match="sha256 of the content expected"):
            files.verify(write_toy(tmp_path / "torn", torn), file)


def test_read_only_folder_is_used_and_not_written(tmp_path, good):
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o555)
    assert not files.writable(folder), "also when the superuser asks"
    assert not files.writable(folder / "deeper" / "still")
    path = locate(folder)
    assert path == tmp_path / "cache" / FILE.path
    assert locate(folder) == path
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    write_toy(folder)
    for p in (folder / "toy", folder):
        p.chmod(0o555)
    assert locate(folder) == folder / FILE.path
    for p in (folder, folder / "toy"):
        p.chmod(0o755)


def test_unwritable_folders_are_refused(tmp_path, monkeypatch, good):
    monkeypatch.setattr(files, "writable", lambda _: False)
    with pytest.raises(DataUnavailableError, match="no download folder is writable"):
        locate(tmp_path)


def _locate(folder, address, results):
    file = replace(FILE, urls=(f"{address}/good",))
    files.catalogue = lambda: (file,)
    results.put(locate(folder).read_bytes() == CONTENT)


def test_simultaneous_downloads_do_not_conflict(tmp_path, server):
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


def test_leftover_parts_are_removed(tmp_path):
    leftover = tmp_path / ".file.bin.4321.part"
    growing = tmp_path / ".other.bin.4322.part"
    leftover.write_bytes(b"half")
    growing.write_bytes(b"growing")
    os.utime(leftover, (0, 0))
    files.remove_parts(tmp_path)
    assert list(tmp_path.iterdir()) == [growing]
