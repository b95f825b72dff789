"""Local servers for tests."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for(server: subprocess.Popen, address: str, seconds: float = 300.0) -> None:
    """Wait until an MLflow server is healthy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + seconds
    while True:
        assert server.poll() is None, "the server ended"
        try:
            opener.open(f"{address}/health", timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.5)
