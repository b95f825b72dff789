"""Sub-commands of ``runner`` by name; their modules are imported on demand."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Command(NamedTuple):
    """A sub-command."""

    module: str  # its ``main`` receives the words of the command line
    usage: str
    meaning: str
    loads: Literal["nothing", "arrays", "torch"] = "torch"  # the largest library that it may import
    prints: bool = False  # it only prints
    # types of the objects that it prints with --json, as module:name
    objects: tuple[str, ...] = ()


COMMANDS = {
    "list": Command(
        "runner.catalogue.listing",
        "list [role]",
        "list families of components, experiments and studies, or the names in a role",
        loads="nothing",
        prints=True,
        objects=("runner.catalogue.listing:KEYS",),
    ),
    "show": Command(
        "runner.catalogue.show",
        "show <role>/<name>",
        "show all keys of a component, with meanings and defaults",
        loads="nothing",
        prints=True,
        objects=("runner.catalogue.show:Shown",),
    ),
    "new": Command(
        "runner.catalogue.new",
        "new <role> <name>",
        "create a component, experiment or study: file, YAML and test",
        loads="nothing",
    ),
    "schema": Command(
        "runner.arena.schemas.command",
        "schema --to DIR",
        "write JSON Schemas of experiments, studies, suites and outputs",
        loads="arrays",
    ),
    "test": Command(
        "runner.conformance.command",
        "test <module>",
        "check your own components: keys, steps, checkpoints, random numbers",
        prints=True,
        objects=("runner.conformance.outcomes:CheckResult",),
    ),
    "sbc": Command(
        "runner.commands.sbc.sbc_command",
        "sbc [key=value]",
        "run simulation-based calibration of an inference method",
        objects=("runner.commands.sbc.rank_record:HEADER",),
    ),
    "data": Command(
        "runner.system.data",
        "data list|fetch|verify",
        "list, download or verify data files",
        loads="nothing",
        objects=("runner.system.data:COLUMNS",),
    ),
    "resume": Command(
        "runner.commands.resume",
        "resume <run>",
        "resume an interrupted run",
        objects=("runner.execution.screen.show_run:PRINTED_TYPES", "runner.sweep.rows:SweepRow"),
    ),
    "study": Command(
        "runner.study.study",
        "study <name>",
        "execute all runs of a table or figure in parallel",
        objects=("runner.study.display:RunLine",),
    ),
    "price": Command(
        "runner.study.pricing.price_command",
        "price <study>",
        "estimate CPU hours, memory and disk space before running it",
        objects=("runner.study.pricing.price_list:Line",),
    ),
    "rerun": Command(
        "runner.study.study",
        "rerun --failed <study>",
        "repeat the failed runs of a study",
        objects=("runner.study.display:RunLine",),
    ),
    "sweep": Command(
        "runner.sweep.table",
        "sweep <folder>",
        "print the table of a sweep: settings, scores over seeds, failures",
        loads="arrays",
        prints=True,
        objects=("runner.sweep.rows:SweepRow",),
    ),
    "report": Command(
        "runner.report.command",
        "report <study>",
        "published | ours | difference | verdict, as HTML, Markdown, CSV, PNG",
        loads="arrays",
    ),
    "arena": Command(
        "runner.arena.command",
        "arena [run|show]",
        "rank your method against all others on problems with known answers",
        objects=(
            "runner.arena.summary:LISTED",
            "runner.arena.summary:BOARD",
            "runner.arena.tune:COLUMNS",
        ),
    ),
    "fit": Command(
        "runner.arena.fit.command",
        "fit <file>:<function>",
        "run all methods on your density or model (NumPyro, PyMC, Stan) and recommend one",
        objects=("runner.arena.summary:BOARD",),
    ),
    "archive": Command(
        "runner.report.exchange.archive",
        "archive <study>",
        "pack records, YAML, environment and report into one file",
        loads="arrays",
    ),
    "runs": Command(
        "runner.python.runs_table",
        "runs [<run>|key=value]",
        "print a table of recorded runs; --to FILE.parquet, .csv or .json",
        loads="arrays",
        prints=True,
        objects=("runner.python.frames:RunRow",),
    ),
    "compare": Command(
        "runner.report.compare",
        "compare <run> <run> …",
        "show configs and results side by side",
        loads="arrays",
        prints=True,
        objects=("runner.report.compare:Compared",),
    ),
    "export": Command(
        "runner.python.export.export_command",
        "export <run> <file>",
        "save a fitted model to one file that predicts without data or record",
    ),
    "predict": Command(
        "runner.python.export.predict_command",
        "predict <run> <rows>",
        "predict with a run or an exported model: mean, sd, quantiles, probabilities",
        prints=True,
        objects=("runner.python.export.predict_command:PredictedRow",),
    ),
    "sync": Command("runner.tracking.sync", "sync [<run>]", "upload pending runs to MLflow"),
    "ui": Command("runner.system.ui", "ui [<run>]", "serve MLflow's pages on 127.0.0.1"),
    "doctor": Command(
        "runner.system.doctor",
        "doctor",
        "check versions, threads, GPU, storage and data",
        prints=True,
        objects=("runner.system.machine:Finding",),
    ),
    "clean": Command(
        "runner.system.clean",
        "clean",
        "remove smoke runs, orphans, checkpoints of finished runs, after confirmation",
        loads="nothing",
        objects=("runner.system.clean:COLUMNS",),
    ),
    "completion": Command(
        "runner.commands.completion",
        "completion <shell>",
        "print tab completion for bash, zsh or fish",
        loads="nothing",
        prints=True,
    ),
}
