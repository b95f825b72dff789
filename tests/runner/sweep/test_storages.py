"""Trials in a journal file and in PostgreSQL, and runs on an MLflow server with PostgreSQL, on
loopback."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import optuna
import pytest
from support.runs.local_servers import free_port, wait_for

from runner.errors import ConfigError
from runner.sweep.search_space import absolute, storage


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """URL of an empty database on a test server."""
    if importlib.util.find_spec("psycopg2") is None:
        pytest.skip("psycopg2 is an extra: pip install 'bayes-runner[postgresql]'")
    initdb = shutil.which("initdb")
    server = shutil.which("postgres")
    if initdb is None or server is None:
        pytest.skip("PostgreSQL's initdb and postgres are not on the PATH")
    # Not in pytest's own folder, which only root can access: each session of pytest restores its
    # permissions.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    port = free_port()
    options = {}
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        who = pwd.getpwnam("nobody")
        options = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        os.chown(folder, who.pw_uid, who.pw_gid)
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    subprocess.run(
        [initdb, "-D", data, "-U", "runner", "-A", "trust", "-N", "--locale=C", "--encoding=UTF8"],
        check=True,
        **quiet,
        **options,
    )
    words = [server, "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", "", "-F"]
    process = subprocess.Popen(words, start_new_session=True, **quiet, **options)
    try:
        import psycopg2

        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None
            assert time.monotonic() < deadline
            try:
                with psycopg2.connect(
                    host="127.0.0.1", port=port, user="runner", dbname="postgres"
                ):
                    break
            except psycopg2.OperationalError:
                time.sleep(0.1)
        yield f"postgresql://runner:secret@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        shutil.rmtree(folder)


def test_relative_file_is_the_same_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("journal:///trials.log") == f"journal:///{tmp_path}/trials.log"
    assert absolute("sqlite:////a/b.db") == "sqlite:////a/b.db"
    assert absolute("postgresql://h/n") == "postgresql://h/n"


def test_trials_are_stored_in_output_folders_of_any_name(tmp_path):
    folder = tmp_path / "a %41 b?x=1#y"
    optuna.create_study(study_name="s", storage=storage(absolute(f"sqlite:///{folder}/optuna.db")))
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert (folder / "optuna.db").is_file()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgresql://me:secret@127.0.0.1:9/trials",
            "hydra.sweeper.storage=postgresql://me:***@127.0.0.1:9/trials: ",
        ),
        (
            "journal:////proc/no/trials.log",
            "hydra.sweeper.storage=journal:////proc/no/trials.log: cannot be opened",
        ),
        ("redis://h", "hydra.sweeper.storage=redis://h: "),
    ],
)
def test_unavailable_storage_is_one_line(url, message):
    with pytest.raises(ConfigError) as error:
        storage(url)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


def swept(folder: Path, url: str) -> optuna.Study:
    """A sweep with two parallel jobs and pruning, continued by a second command."""
    command = [
        sys.executable,
        "-m",
        "runner.commands.cli",
        "-m",
        "+experiment=friend_or_foe",
        "smoke=true",
        "tracking=false",
    ]
    command += [
        "hydra/sweeper=optuna",
        f"hydra.sweeper.storage='{url}'",
        "hydra.sweeper.sampler=random",
        "eval_every=20",
    ]
    command += [
        f"output_dir={folder}",
        "inference.alpha=interval(0.05,0.5)",
        "hydra.sweeper.pruner=median",
    ]
    for trials in (2, 3):
        done = subprocess.run(
            [*command, f"hydra.sweeper.n_trials={trials}"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return optuna.load_study(study_name="friend_or_foe", storage=storage(absolute(url)))


def assert_kept(study: optuna.Study) -> None:
    assert [t.number for t in study.trials] == [0, 1, 2]
    assert all(t.state.is_finished() and "run" in t.user_attrs for t in study.trials)


@pytest.mark.slow
def test_a_sweep_keeps_its_trials_in_a_journal(tmp_path):
    assert_kept(swept(tmp_path, f"journal:///{tmp_path}/trials.log"))
    assert (tmp_path / "trials.log").exists()


@pytest.mark.slow
def test_a_sweep_keeps_its_trials_in_postgresql(tmp_path, postgresql):
    assert_kept(swept(tmp_path, postgresql))
    written = "".join(p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file())
    assert "secret" not in written


@pytest.mark.slow
def test_run_is_pushed_to_a_server_with_postgresql(tmp_path, postgresql):
    import psycopg2

    client = psycopg2.connect(postgresql)
    client.autocommit = True
    # Optuna and MLflow both use a table alembic_version
    client.cursor().execute("create database tracking")
    client.close()
    postgresql = postgresql.removesuffix("postgres") + "tracking"
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    words = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    words += ["--backend-store-uri", postgresql, "--artifacts-destination", str(tmp_path / "files")]
    environment = {**os.environ, "NO_PROXY": "*", "MLFLOW_TRACKING_URI": address}
    server = subprocess.Popen(words, env=environment, start_new_session=True)
    try:
        wait_for(server, address)
        for command in (
            ["+experiment=friend_or_foe", "smoke=true", f"output_dir={tmp_path}"],
            ["sync", "--output-dir", tmp_path],
        ):
            done = subprocess.run(
                [sys.executable, "-m", "runner.commands.cli", *command],
                env=environment,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        assert f"1 run is in {address}" in done.stdout
        with psycopg2.connect(postgresql) as connection, connection.cursor() as cursor:
            cursor.execute("select status from runs")
            assert cursor.fetchall() == [("FINISHED",)]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
