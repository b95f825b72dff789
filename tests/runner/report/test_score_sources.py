"""``--with``: several files, and URLs of a server on this machine."""

import csv
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runner.errors import ConfigError
from runner.report import command
from runner.report.exchange import download
from runner.report.exchange.score_files import open_score_files
from runner.report.origin import read_kept_scores
from runner.report.scores.earlier import HEADER
from runner.study.definition import load_study

STUDY = load_study("sarcos_table")
LINES = [["nlpp", "iGP, tuned", "1000", "sarcos", 0, r, 0.1 + r] for r in range(3)]
PLACE = ("nlpp", "iGP, tuned", "1000")


def write_csv(path, lines=LINES):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *lines])
    return path


@pytest.fixture
def server(tmp_path):
    """Address of a server of a folder; ``/away…`` redirects to a file, ``/slow`` never answers."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = folder / self.path.partition("?")[0].lstrip("/")
            if self.path.startswith("/away"):
                self.send_response(302)
                self.send_header("Location", "file:///etc/hostname")
                self.end_headers()
                return
            if self.path == "/slow":
                stop.wait(20)
                return
            content = path.read_bytes() if path.is_file() else b""
            self.send_response(200 if content else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words):
            pass

    stop = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        stop.set()
        running.shutdown()
        thread.join()


def test_a_url_brings_its_scores_and_their_origin(server, tmp_path):
    url, folder = server
    write_csv(folder / "a_replicates.csv")
    (folder / "a_origin.json").write_text('{"notes": ["kept in November"]}')
    with open_score_files([f"{url}/a_replicates.csv?raw=1", str(tmp_path / "b.csv")]) as files:
        address, here = files.items()
        assert here == (str(tmp_path / "b.csv"), tmp_path / "b.csv")
        kept = read_kept_scores(dict([address]), STUDY)
        place = address[1]
    assert kept.scores[PLACE].values == {(0, r): 0.1 + r for r in range(3)}
    assert kept.origin.notes == ["kept in November"]
    assert not place.exists()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("{}/none.csv", r"--with http://.*/none\.csv: not there \(404\)"),
        (
            "{}/away.csv",
            r"cannot be read \(302 .*Redirection to url 'file:///etc/hostname' is not allowed",
        ),
        ("file:///etc/hostname", "must be an address with http:// or https://"),
        ("http://127.0.0.1:9/a.csv", "cannot be read"),
    ],
)
def test_an_address_without_scores_is_one_line(server, address, message):
    with (
        pytest.raises(ConfigError, match=message) as error,
        open_score_files([address.format(server[0])]),
    ):
        pass
    assert "\n" not in str(error.value)


def test_downloads_end_at_a_size_and_after_a_time(server, tmp_path, monkeypatch):
    url, folder = server
    (folder / "a.csv").write_bytes(b"0" * 3000)
    with pytest.raises(ConfigError, match="larger than 0 MiB; download it"):
        download.download(f"{url}/a.csv", tmp_path, 2000)
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.1)
    with pytest.raises(ConfigError, match="timed out"):
        download.download(f"{url}/slow", tmp_path, 2000)


@pytest.mark.parametrize(
    "words", [["sarcos_table", "--with", "a", "b"], ["--with", "a", "b", "sarcos_table"],
              ["sarcos_table", "--with", "a", "--with", "b"]]
)  # fmt: skip
def test_with_takes_several_files_before_or_after_the_study(words, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(
        command, "read_kept_scores", lambda files, study: given.extend(files) or _stop()
    )
    with pytest.raises(InterruptedError):
        command.main(["report", *words, "--output-dir", str(tmp_path)])
    assert given == ["a", "b"]


def _stop():
    raise InterruptedError
