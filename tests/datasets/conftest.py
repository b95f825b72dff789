"""Fixtures of tests of data sets."""

import http.server
import socket
import threading
from dataclasses import replace

import pytest
from support.runs.toy_file import FILE, Handler

from components.datasets import data_files, files


def forget_files():
    """Clear the cache of located files, as a new process does."""
    files.why_unavailable.cache_clear()
    files.forget()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache in place of the user's cache."""
    monkeypatch.setattr(data_files.platformdirs, "user_cache_path", lambda _: tmp_path / "cache")
    forget_files()
    yield
    forget_files()


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        running.address = f"http://127.0.0.1:{running.server_port}"
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def closed_address():
    """An address without a listening server."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}/good"


@pytest.fixture
def own_network(own_cache, monkeypatch):
    """Remove the user's cache and proxy settings."""
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)


@pytest.fixture
def list_addresses(own_network, monkeypatch):
    """Replace the catalogue by the toy file with the given addresses."""

    def list_file(*urls):
        monkeypatch.setattr(files, "catalogue", lambda: (replace(FILE, urls=urls),))

    return list_file


@pytest.fixture
def good(list_addresses, server):
    """The server of the file in the catalogue."""
    list_addresses(f"{server.address}/good")
    return server
