"""Results of a run on the terminal, next to the published ones."""

from __future__ import annotations

from typing import Any

from runner.compose.validate import ResolvedConfig
from runner.execution.screen import show_run as console
from runner.record.checks import combine_checks
from runner.sweep.objectives import values
from runner.terminal import printer
from runner.tracking.handover import Handover, ensure_pushed


def show_done(job: ResolvedConfig, facts: dict[str, Any]) -> float | list[float]:
    """Show the record of a finished run; returns its objectives."""
    printer.out.print(
        f"done already, {facts['ended']}: showing the recorded results; fresh=true repeats the run"
    )
    return show(job, facts["result"], facts, ensure_pushed(job.settings, job.folder))


def show(
    job: ResolvedConfig,
    result: dict[str, list[float]],
    facts: dict[str, Any],
    handover: Handover | None,
) -> float | list[float]:
    """Show the results and the folder of a run; returns its objectives."""
    is_smoke = job.settings.smoke
    console.show_result(job, result, *(() if is_smoke else published_scores(job)))
    if is_smoke:
        printer.note("smoke run: it shows that everything works; its scores mean nothing")
    for about, subject in (("run", "run"), ("attack", "security evaluation")):
        if rows := combine_checks(facts, about):
            console.show_checks(f"checks of the {subject}", rows)
    console.show_whereabouts(
        job.folder, handover, facts.get("artefacts", ()), facts.get("left_out", ())
    )
    return values(result, job.settings.objective)


def published_scores(job: ResolvedConfig) -> tuple[dict[str, str], str]:
    """Published scores for this run, by metric, and the reason why ours are not comparable.

    The reason is empty if the scores are comparable.

    Raises:
        ConfigError: ``paper_tables`` names a table that is not in conf/published.
    """
    from runner.statistics.published import load_published

    printed_scores: dict[str, str] = {}
    reason = ""
    for name in job.settings.paper_tables:
        table = load_published(name)
        numbers = table.beside(job.config)
        printed_scores |= numbers
        if numbers and not table.is_comparable_on(job.data):
            reason = f"not comparable: this run uses {job.data}, the paper {table.data_label}"
        elif numbers and table.not_comparable:
            reason = f"not comparable: {table.not_comparable}"
    return printed_scores, reason
