"""Processes of runs, forked from one that has imported torch, gpytorch and the runs' components.

Importing them takes more than a second of CPU time, the largest part of a short run.  A ``Server`` is
a child process that imports once and then forks a child for each run.  A run has a process of its
own, as without the server: its crash affects no other run.  The server never imports plug-ins and
never starts a thread.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from components import registry
from runner.study import one_run
from runner.study.left_going import DetachedRun
from runner.study.snapshot import FrozenRun, Snapshot

LARGEST = 65_536  # bytes of a message
PRELOADED = ("runner.execution.execute", "runner.commands.app")


class Server:
    """Process that forks runs; ``variables`` of its environment are set before it imports torch."""

    def __init__(self, variables: dict[str, str]):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # -P prevents that modules in the current folder shadow others
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-P", "-m", "runner.study.fork_server"],
                stdin=theirs.fileno(),
                env={**os.environ, **variables},
                start_new_session=True,
            )

    def _ask(self, message: dict[str, Any], files: list[int]) -> Any:
        socket.send_fds(self._socket, [json.dumps(message).encode()], files)
        answer = self._socket.recv(LARGEST)
        if not answer:
            raise ConnectionError("the process that forks runs has died")
        return json.loads(answer)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def start(self, snapshot: Snapshot, run: FrozenRun, lock: int, log: int) -> ForkedRun:
        """Fork a run that keeps the lock's file open and writes to the log.

        Raises:
            OSError: the server has died.
        """
        names = {role: part["name"] for role in registry.CHOSEN if (part := run.config.get(role))}
        message = {"arguments": [str(snapshot.file), run.name], "components": names}
        return ForkedRun(snapshot, run, self, self._ask(message, [lock, log]))

    def poll(self, pid: int) -> int | None:
        """Exit code of a run (negative for a signal), or None while it is active.

        Raises:
            OSError: the server has died.
        """
        code: int | None = self._ask({"poll": pid}, [])
        return code

    def close(self) -> None:
        """Let the server end; its runs continue."""
        self._socket.close()
        self._process.wait()


@dataclass(frozen=True)
class ForkedRun(DetachedRun):
    """A run forked by a server, with the interface of a child process."""

    server: Server
    pid: int
    codes: list[int] = field(default_factory=list)  # the exit code, once it is known

    def number(self) -> int:
        return self.pid

    def poll(self) -> int | None:
        """Exit code, or None while the run is active; read from the record if the server has died."""
        if self.codes:
            return self.codes[0]
        try:
            code = self.server.poll(self.pid)
        except OSError:
            code = super().poll()
        if code is not None:
            self.codes.append(code)
        return code


def _import(components: dict[str, str]) -> None:
    """Import the modules of the components of each role; a run reports the error of one that cannot
    be imported.
    """
    for role, name in components.items():
        with suppress(Exception):
            registry.get(role, name)


def _run(arguments: list[str], log: int) -> int:
    """Execute a run in this process, just forked, as the command line would."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv[1:] = arguments
    return one_run.main(arguments)


def serve() -> None:
    """Fork a run for each message on standard input, and answer about the ends of runs."""
    from runner.execution.memory import load_blas

    load_blas()  # before torch
    for module in PRELOADED:
        import_module(module)
    requests = socket.socket(fileno=os.dup(0))
    while True:
        data, files, _, _ = socket.recv_fds(requests, LARGEST, 2)
        if not data:
            return
        message = json.loads(data)
        answer: int | None
        if "poll" in message:
            number, status = os.waitpid(message["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if number else None
        else:
            _import(message["components"])
            answer = os.fork()
            if answer == 0:
                requests.close()
                _, log = files  # the run keeps the lock's file open
                raise SystemExit(_run(message["arguments"], log))
        for file in files:
            os.close(file)
        requests.send(json.dumps(answer).encode())


if __name__ == "__main__":
    # imported objects stay alive; a run enables garbage collection
    gc.disable()
    from runner.terminal import streams

    streams.install()
    serve()
