"""``runner ui``: serve MLflow's pages for the runner's store, on this machine only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import FrameType

from components.errors import require_package
from runner.disk.secrets import mask_secrets
from runner.errors import ConfigError
from runner.record.folders import find
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.handlers import handle_signals
from runner.tracking.pages import (
    find_experiments,
    find_server,
    list_page,
    page_of_record,
    runs_page,
)
from runner.tracking.schema import check_schema
from runner.tracking.store import database_file, fault, remove_stray_folders, tracking_uri

HOST = "127.0.0.1"
PORT = 5000
MOST_EXPERIMENTS = 10  # largest number of listed experiments
READY_TRIES = 120  # timeout for the start of MLflow in seconds


def command(port: int, output_dir: Path) -> list[str]:
    """Command of the MLflow server: one worker, this machine only.

    The URI of the store is passed in the environment, because all users of the machine can list the
    arguments of a process."""
    # the folder used by runs, not ./mlartifacts of the current folder
    artefacts = (output_dir / "mlartifacts").resolve()
    return [
        *(sys.executable, "-m", "mlflow", "ui"),
        *("--host", HOST, "--port", str(port), "--workers", "1"),
        *("--artifacts-destination", artefacts.as_uri()),
    ]


def check(uri: str, port: int) -> None:
    """Check for errors that MLflow reports with a traceback or hides by creating an empty store.

    Raises:
        ConfigError: the store does not exist, or the port is in use.
    """
    file = database_file(uri)
    if file is not None:
        if not file.is_file():
            raise ConfigError(
                f"{file}: MLflow store not found; execute a run first, or set the folder with --output-dir"
            )
        if (wrong := fault(uri)) is not None:
            raise ConfigError(
                f"{wrong}; move it away, then runner sync creates a new one from the records"
            )
        _, problem, fix = check_schema(file)
        if problem:
            raise ConfigError(f"{file}: {problem}; {fix}")
    with socket.socket() as probe:
        # like servers, treat a just released port as free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ConfigError(
                f"--port {port}: not available ({error.strerror}), possibly in use by another runner ui; "
                f"choose another port, such as --port {port + 1}"
            ) from None


def serve(words: Sequence[str], uri: str) -> int:
    """Run the server of the store ``uri``, with its child processes, until it ends or is stopped."""
    environment = os.environ | {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_BACKEND_STORE_URI": uri,
    }
    # MLflow's child processes would outlive it, so they get a session that is ended as a
    # whole.
    server = subprocess.Popen(words, env=environment, start_new_session=True)
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)

    with handle_signals(stop, signal.SIGINT, signal.SIGTERM):
        code = server.wait()
    return 0 if stopped else min(abs(code), 1)


def choose_page(run: str | None, output_dir: Path, server: str) -> str:
    """Page of an experiment, of a run, or of the latest experiment.

    Raises:
        ConfigError: the run or experiment does not exist or is not in MLflow.
    """
    experiments = find_experiments(output_dir)
    if run is None:
        return runs_page(server, experiments[0].number) if experiments else list_page(server)
    for experiment in experiments:
        if experiment.name == run:
            return runs_page(server, experiment.number)
    page = page_of_record(find(run, output_dir), output_dir, server)
    if page is None:
        raise ConfigError(f"{run}: not in MLflow yet; upload it with runner sync")
    return page


def has_browser() -> bool:
    """True if a graphical browser can be opened; text browsers are not used."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and (sys.platform == "darwin" or bool(screen))


def open_when_ready(server: str, page: str) -> None:
    """Open a page in the browser once the server responds."""
    for _ in range(READY_TRIES):
        with suppress(OSError), urllib.request.urlopen(f"{server}/health", timeout=1):
            webbrowser.open(page)
            return
        time.sleep(1.0)


def main(argv: list[str]) -> int:
    """Serve until Ctrl-C; return 0, or 1 if MLflow failed."""
    parser = Parser(
        description="Show recorded runs in MLflow's pages, served on this machine only (127.0.0.1). The store is "
        "mlflow.db in the output folder, or MLFLOW_TRACKING_URI if set.",
        epilog="On a remote machine: ssh -L 5000:127.0.0.1:5000 <machine>, then open the address locally. "
        "Exit code 0 when stopped, 1 if MLflow failed, 2 for invalid arguments.",
    )
    parser.add_argument(
        "run",
        nargs="?",
        help="experiment, or a run: its folder, the beginning of its signature, or experiment/signature "
        "(default: the latest experiment)",
    )
    parser.add_count("--port", f"port to serve on (default: {PORT})", PORT, most=65535)
    add_output_dir(parser, must_exist=True)
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    arguments = parser.parse(argv)
    output_dir = arguments.output_dir
    uri = tracking_uri(output_dir)
    served = find_server(output_dir)
    if served is not None:
        page = choose_page(arguments.run, output_dir, served)
        print(f"MLFLOW_TRACKING_URI is a server, open {page}")
        if not arguments.no_browser and has_browser():
            webbrowser.open(page)
        return 0
    require_package("flask", "runner ui", "mlflow")
    check(uri, arguments.port)
    server = f"http://{HOST}:{arguments.port}"
    page = choose_page(arguments.run, output_dir, server)
    print(f"MLflow  {page}\n        ready in a few seconds; Ctrl-C stops it", flush=True)
    for experiment in find_experiments(output_dir)[:MOST_EXPERIMENTS]:
        other = runs_page(server, experiment.number)
        if other != page:
            print(f"        {other}  {experiment.name}", flush=True)
    print(f"store   {mask_secrets(uri)}", flush=True)
    if not arguments.no_browser and has_browser():
        Thread(target=open_when_ready, args=(server, page), daemon=True).start()
    with remove_stray_folders(uri):
        return serve(command(arguments.port, output_dir), uri)
