"""``runner ui``: MLflow's pages over the runner's store, on this machine only."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from runner.disk.secrets import mask_secrets
from runner.errors import ConfigError
from runner.record.facts import UnreadableRecordError
from runner.terminal.arguments import Parser, add_output_dir
from runner.tracking.store import database_file, fault, remove_stray_folders, tracking_uri

HOST = "127.0.0.1"
PORT = 5000


def command(uri: str, port: int, output_dir: Path) -> list[str]:
    """The MLflow server: one worker, this machine only."""
    # where runs keep them, not ./mlartifacts of the current folder
    artefacts = (output_dir / "mlartifacts").resolve()
    return [
        *(sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", uri),
        *("--host", HOST, "--port", str(port), "--workers", "1"),
        *("--artifacts-destination", artefacts.as_uri()),
    ]


def check(uri: str, port: int) -> None:
    """Refuses what MLflow would answer with a traceback, or with an empty store of its own making.

    Raises:
        ConfigError: there is no store, or the port is taken.
    """
    file = database_file(uri)
    if file is not None:
        try:
            is_there = file.is_file()
        except PermissionError as error:
            raise UnreadableRecordError(file.parent, error) from None
        if not is_there:
            raise ConfigError(
                f"{file}: no MLflow store here; run something first, or name the folder with --output-dir"
            )
        if (wrong := fault(uri)) is not None:
            raise ConfigError(
                f"{wrong}; move it away, and runner sync fills a new one from the records"
            )
    with socket.socket() as probe:
        # As servers do: a port that was just released is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ConfigError(
                f"--port {port}: cannot be had ({error.strerror}); give another, for instance --port {port + 1}"
            ) from None


def serve(words: Sequence[str]) -> int:
    """Runs the server until it ends or is told to stop; its own processes end with it."""
    environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
    # MLflow starts child processes, which would outlive it: they get a session that is ended as a
    # whole.
    server = subprocess.Popen(words, env=environment, start_new_session=True)
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = server.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0 if stopped else min(abs(code), 1)


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text}: must be a port, 1 to 65535")
    return int(text)


def main(argv: list[str]) -> int:
    """Serves until Ctrl-C; exit code 0, 1 if MLflow failed, 2 for a mistake."""
    parser = Parser(
        prog="runner ui",
        description="Shows recorded runs in MLflow's pages, served to this machine only (127.0.0.1). The store is "
        "mlflow.db in the output folder; MLFLOW_TRACKING_URI, when set, wins.",
        epilog="On a machine far away: ssh -L 5000:127.0.0.1:5000 <machine>, then open the address here. "
        "Exit code 0 when stopped, 1 if MLflow failed, 2 for a mistake.",
    )
    parser.add_argument(
        "--port", type=_port, default=PORT, help=f"port to serve on (default: {PORT})"
    )
    add_output_dir(parser)
    arguments = parser.parse_args(argv[1:])
    output_dir = Path(arguments.output_dir)
    uri = tracking_uri(output_dir)
    if uri.startswith(("http://", "https://")):
        print(f"MLFLOW_TRACKING_URI is a server already, open it: {mask_secrets(uri)}")
        return 0
    check(uri, arguments.port)
    print(
        f"MLflow  http://{HOST}:{arguments.port}  ready in some seconds, Ctrl-C stops it",
        flush=True,
    )
    print(f"store   {mask_secrets(uri)}", flush=True)
    with remove_stray_folders(uri):
        return serve(command(uri, arguments.port, output_dir))
