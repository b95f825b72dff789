"""``runner archive STUDY``: records, frozen YAML, environment and report of a study in one file.

A zip file, laid out as an output folder:

studies/<study>/snapshot.yaml     the study as it was launched
<experiment>/<signature>/…        records: run.json, config, metrics, tables, figures, scores
environment/                      versions and commits of the runs, packages here, the lock
conf/                             the user's own study, components and published tables
plugins/                          source of the plug-ins of its runs
report/                           current pages
CITATION.cff                      citation
ro-crate-metadata.json            citation and all files, as an RO-Crate
archive.json                      format, study, SHA-256 of every file
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

from runner import CONF
from runner.catalogue.plugins import source_file
from runner.disk import conf_folders
from runner.disk.atomic import replace_file
from runner.disk.inside import inside, is_inside
from runner.disk.scratch import scratch_folder
from runner.errors import ConfigError
from runner.record import code
from runner.record.checks import failed_checks
from runner.record.facts import CHOSEN_ROLES, Facts
from runner.record.files import warn_damage
from runner.report.exchange.citation import add_origin, write_citation
from runner.report.exchange.opened import FORMAT, MANIFEST, SUFFIX
from runner.report.report import write
from runner.study import snapshot as snapshots
from runner.study.snapshot import Snapshot
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.printer import out
from runner.terminal.tables import print_named

# time of every entry, fixed so that equal files give equal archives
FIXED_TIME = (1980, 1, 1, 0, 0, 0)
# included only with --checkpoints, like files of posteriors
STATE_FOLDERS = frozenset({"checkpoints"})
PRIVATE_NAMES = frozenset({"mlflow.json"})  # files specific to this machine
LOCK = code.ROOT / "requirements.lock"
PLUGINS = "plugins"
Entry = tuple[str, Path | bytes]  # name in the archive, and a file or its content


def list_record_files(folder: Path, facts: Facts, checkpoints: bool) -> Iterator[Path]:
    """Sorted files of a record for an archive, without links to other locations."""
    posteriors = set(map(str, facts["artefacts"]))
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_temporary = any(part.startswith(".") for part in name.parts) or path.suffix == ".lock"
        is_state = STATE_FOLDERS & set(name.parts) or name.as_posix() in posteriors
        if is_temporary or name.name in PRIVATE_NAMES or (is_state and not checkpoints):
            continue
        if path.is_file() and not path.is_symlink() and is_inside(folder, path):
            yield path


def pack(
    snapshot: Snapshot,
    path: Path,
    checkpoints: bool = False,
    author: str | None = None,
    licence: str | None = None,
) -> dict[str, int]:
    """Write the archive of a launched study; return the numbers of its runs and files.

    Args:
        author: author in the citation; None for the name in git's settings.
        licence: SPDX name of the archive's licence, or None.

    Raises:
        ConfigError: the name of the file has another ending.
        OSError: a record cannot be read, or the file not written.
    """
    if path.suffix != SUFFIX:
        raise ConfigError(f"--to {path}: must end with {SUFFIX}")
    path.parent.mkdir(parents=True, exist_ok=True)
    records = {
        snapshot.folder(run): facts
        for run in snapshot.runs
        if (facts := snapshot.facts(run)) is not None
    }
    manifest = {"format": FORMAT, "study": snapshot.name, "checkpoints": checkpoints}
    files: dict[str, tuple[str, int]] = {}
    with replace_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        parts: tuple[Iterable[Entry], ...] = (
            [(f"studies/{snapshot.name}/snapshot.yaml", snapshot.file)],
            _list_records(snapshot, records, checkpoints),
            _list_environment(snapshot, list(records.values())),
            _list_conf(snapshot),
            _list_plugins(snapshot),
            _list_report(snapshot),
            write_citation(snapshot, author, licence, files),
        )
        for name, source in itertools.chain.from_iterable(parts):
            content = source if isinstance(source, bytes) else source.read_bytes()
            files[name] = (hashlib.sha256(content).hexdigest(), len(content))
            _add(archive, name, content)
        digests = {name: digest for name, (digest, _) in files.items()}
        text = json.dumps({**manifest, "files": digests}, indent=1, ensure_ascii=False)
        _add(archive, MANIFEST, text.encode())
    return {"runs": len(records), "files": len(files)}


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, FIXED_TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100644 << 16
    archive.writestr(info, content)


def _list_records(
    snapshot: Snapshot, records: dict[Path, Facts], checkpoints: bool
) -> Iterator[Entry]:
    """Files of the records of all runs."""
    for folder, facts in sorted(records.items()):
        warn_damage(folder, facts, hashes=True)
        for file in list_record_files(folder, facts, checkpoints):
            yield file.relative_to(snapshot.output_dir).as_posix(), file


def _list_environment(snapshot: Snapshot, facts: list[Facts]) -> Iterator[Entry]:
    """Versions and commits of the runs, installed packages and the lock file of the checkout."""
    versions = [run["versions"] for run in facts]
    commits = [run["git"].get("sha") for run in facts]
    summary = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "frozen_at_commit": snapshot.git,
        "sources_sha256": code.source_digest(),
        "commits_of_runs": sorted({commit for commit in commits if commit}),
        "versions_of_runs": [dict(v) for v in {tuple(sorted(entry.items())) for entry in versions}],
        "runs_with_failed_checks": sum(bool(failed_checks(run)) for run in facts),
    }
    yield "environment/environment.json", json.dumps(summary, indent=1).encode()
    packages = {f"{package.metadata['Name']}=={package.version}\n" for package in distributions()}
    yield "environment/packages.txt", "".join(sorted(packages)).encode()
    if LOCK.is_file():
        yield "environment/requirements.lock", LOCK


def _list_conf(snapshot: Snapshot) -> Iterator[Entry]:
    """The user's own YAML of the study, its components and published tables."""
    names = [("study", snapshot.study.name)]
    names += [("published", table.published) for table in snapshot.study.tables if table.published]
    names += [
        (role, run.config[role]["name"])
        for run in snapshot.runs
        for role in CHOSEN_ROLES
        if run.config.get(role)
    ]
    for group, name in dict.fromkeys(names):
        file = conf_folders.find(group, name)
        if file is not None and not is_inside(CONF, file):
            yield f"conf/{group}/{file.name}", file


def _list_plugins(snapshot: Snapshot) -> Iterator[Entry]:
    """Source of every plug-in: its file, or the complete package."""
    for module in sorted({name.partition(".")[0] for name in snapshot.plugins}):
        file = source_file(module)
        if file is None:
            continue
        is_package = file.name == "__init__.py"
        for source in sorted(file.parent.rglob("*.py")) if is_package else [file]:
            name = source.relative_to(file.parents[1] if is_package else file.parent)
            yield f"{PLUGINS}/{name.as_posix()}", source


def _list_report(snapshot: Snapshot) -> Iterator[Entry]:
    """Files of the current report."""
    with scratch_folder() as place:
        write(snapshot.name, snapshot.study, snapshot, place)
        for file in sorted(path for path in place.rglob("*") if path.is_file()):
            yield f"report/{file.relative_to(place).as_posix()}", file


def main(argv: list[str]) -> int:
    """Write the archive of a study, without running anything."""
    parser = Parser(
        description="Packs a launched study into one zip file: records, frozen YAML, environment and report. "
        "`runner report FILE` and `runner compare FILE` open it anywhere, read-only.",
        epilog="Records are packed as they are, including names of users, machines and folders. "
        "Exit code 0, or 2 for a study that was never launched here.",
    )
    parser.add_argument(
        "study", help="name of a study, or the name under which it was launched (--as)"
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="the file (default: <output-dir>/<study>/<study>.zip)",
    )
    parser.add_argument(
        "--checkpoints",
        action="store_true",
        help="also checkpoints and files of posteriors, so that runs can resume elsewhere",
    )
    add_origin(parser)
    add_output_dir(parser, must_exist=True)
    conf_folders.add_option(parser)
    arguments = parser.parse(argv)
    output_dir = arguments.output_dir.resolve()
    snapshot = snapshots.load(arguments.study, output_dir)
    if snapshot is None:
        raise ConfigError(
            f"study {arguments.study} was never launched under {output_dir}; launch it with runner study "
            f"{arguments.study}, or give its folder with --output-dir"
        )
    path = arguments.to or inside(output_dir, snapshot.name, "study") / f"{snapshot.name}{SUFFIX}"
    counts = pack(snapshot, path, arguments.checkpoints, arguments.author, arguments.licence)
    states = [snapshot.state(run) for run in snapshot.runs]
    done = states.count("done")
    size = path.stat().st_size / 2**20
    out.print(f"study {snapshot.name}: {done} of {len(states)} runs done, {counts['runs']} records")
    print_named("written", f"{path} ({counts['files']} files, {size:.1f} MiB)")
    return 0
