"""Sub-commands of ``runner`` by name: a table, from which their modules are imported when called."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Command(NamedTuple):
    """A sub-command."""

    module: str  # its ``main`` takes the words of the command line
    usage: str
    meaning: str
    loads: Literal["nothing", "arrays", "torch"] = "torch"  # the largest library that it may import
    prints: bool = False  # it does nothing else


COMMANDS = {
    "list": Command(
        "runner.catalogue.listing",
        "list [role]",
        "families of components, experiments and studies; of a role, its names",
        loads="nothing",
        prints=True,
    ),
    "show": Command(
        "runner.catalogue.show",
        "show <role>/<name>",
        "every key of one, with its meaning and default",
        loads="nothing",
        prints=True,
    ),
    "new": Command(
        "runner.catalogue.new",
        "new <role> <name>",
        "a component, experiment or study of your own: file, YAML and test",
        loads="nothing",
    ),
    "test": Command(
        "runner.conformance.command",
        "test <module>",
        "checks of your own components: keys, steps, checkpoints, random numbers",
        prints=True,
    ),
    "sbc": Command(
        "runner.commands.sbc.sbc_command",
        "sbc [key=value]",
        "simulation-based calibration: is the posterior of an inference right?",
    ),
    "data": Command(
        "runner.system.data",
        "data list|fetch|verify",
        "data files: what is there, download, check",
        loads="nothing",
    ),
    "resume": Command("runner.commands.resume", "resume <run>", "go on with an interrupted run"),
    "study": Command(
        "runner.study.study", "study <name>", "all runs of a table or figure, in parallel"
    ),
    "price": Command(
        "runner.study.pricing.price_command",
        "price <study>",
        "CPU hours, memory and disk of its rows, before anything runs",
    ),
    "rerun": Command(
        "runner.study.study", "rerun --failed <study>", "the failed runs of a study again"
    ),
    "sweep": Command(
        "runner.sweep.table",
        "sweep <folder>",
        "the table of a sweep again: settings, scores over seeds, failures",
        loads="arrays",
        prints=True,
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
        "your method next to all others, on problems where truth is known",
    ),
    "archive": Command(
        "runner.report.exchange.archive",
        "archive <study>",
        "records, YAML, environment and report in one file for others",
        loads="arrays",
    ),
    "runs": Command(
        "runner.python.runs_table",
        "runs [key=value]",
        "table of the recorded runs; --to FILE.parquet, .csv or .json",
        loads="arrays",
        prints=True,
    ),
    "compare": Command(
        "runner.report.compare",
        "compare <run> <run> …",
        "configs and results side by side",
        loads="arrays",
        prints=True,
    ),
    "export": Command(
        "runner.python.export.export_command",
        "export <run> <file>",
        "a fitted model as one file that predicts without data and record",
    ),
    "predict": Command(
        "runner.python.export.predict_command",
        "predict <file> <rows>",
        "predictions of an exported model: mean, sd, quantiles, probabilities",
        prints=True,
    ),
    "sync": Command("runner.tracking.sync", "sync", "push to MLflow what it has not got yet"),
    "ui": Command("runner.system.ui", "ui", "MLflow's pages on 127.0.0.1"),
    "doctor": Command(
        "runner.system.doctor",
        "doctor",
        "versions, threads, GPU, store, data: what is fine, what is not",
        prints=True,
    ),
    "clean": Command(
        "runner.system.clean",
        "clean",
        "remove smoke runs, orphans, checkpoints of done runs; asks first",
        loads="nothing",
    ),
    "completion": Command(
        "runner.commands.completion",
        "completion <shell>",
        "tab completion for bash, zsh or fish",
        loads="nothing",
        prints=True,
    ),
}
