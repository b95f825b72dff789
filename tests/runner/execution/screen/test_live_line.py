"""Progress line of a run: columns that keep their width, and columns that shrink."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from components.contracts.progress import listen, report_each
from components.metrics import regression
from runner.execution.screen import progress
from runner.execution.screen.progress import Live
from runner.terminal import printer
from runner.terminal.streams import PlainStream

METRICS = {"elbo": -316.2, "log_likelihood": -249.4, "kl": 66.81, "log_hyperprior": -10.2}


@pytest.fixture
def line(monkeypatch):
    """Progress line on a terminal of given width, after step 1 and, five minutes later, step 2001."""

    def draw(width: int, replicates: int = 1) -> str:
        clock = [0.0]
        console = Console(
            force_terminal=True, width=width, file=io.StringIO(), get_time=lambda: clock[0]
        )
        monkeypatch.setattr(printer, "out", console)
        live = Live(10_000, replicates)
        assert live.progress is not None
        live.progress.stop()
        live.update(1, 0, METRICS)
        clock[0] = 300.0
        live.update(2001, 0, METRICS)
        with console.capture() as shown:
            console.print(live.progress.get_renderable())
        (drawn,) = shown.get().splitlines()
        return Console(file=io.StringIO()).render_str(drawn, markup=False).plain

    return draw


@pytest.mark.parametrize("replicates", [1, 12])
@pytest.mark.parametrize(("width", "fewest"), [(80, 0), (100, 1), (120, 2)])
def test_step_total_rate_and_remaining_time_are_never_cut(line, width, fewest, replicates):
    drawn = line(width, replicates)
    for part in ("2001/10000", "7/s", "0:20:00"):
        assert part in drawn.replace("\x1b", ""), drawn
    shown = [name for name in METRICS if name in drawn]
    assert shown == list(METRICS)[: len(shown)]
    assert len(shown) >= fewest


def test_live_display_sends_escape_sequences_to_the_terminal(monkeypatch):
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    stream = PlainStream(io.TextIOWrapper(terminal, "utf-8", write_through=True))
    monkeypatch.setattr(printer.sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(printer, "out", printer.PlainConsole(width=100))
    live = Live(10, 1)
    live.update(5, 0, METRICS)
    printer.out.print("a line")
    live.stop()
    text = terminal.getvalue().decode()
    assert "5/10" in text
    assert "␛" not in text


def test_figures_and_metrics_are_reported_without_their_parts():
    updates: list[tuple[str, int, int]] = []
    with listen(lambda *report: updates.append(report)):
        for name in report_each(["trace", "ranks"], "figure {}".format):
            assert list(report_each([name, name], "inner {}".format)) == [name, name]
        list(report_each(["one"], str))
    list(report_each(["not listened to"], str))
    assert updates == [("figure trace", 0, 2), ("figure ranks", 1, 2), ("one", 0, 1)]


def test_scores_of_real_labels_are_reported_by_name():
    import torch

    from components.contracts.predictive import GaussianMixture

    zeros = torch.zeros(1, 3, 1)
    updates: list[str] = []
    with listen(lambda what, done, of: updates.append(f"{what} {done}/{of}")):
        regression.scores(GaussianMixture(zeros, zeros + 1), zeros[0], zeros[0] == 0, ["a task"])
    assert updates == ["score nlpp 0/4", "score rmse 1/4", "score coverage90 2/4", "score crps 3/4"]


def test_figures_are_logged_every_half_minute_without_a_terminal(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    live = Live(10, 1)
    clock[0] = 50.0
    live.show_evaluation(10, 0, {"nlpp": 1.0})
    with listen(live.evaluating):
        for _ in report_each(["trace", "ranks", "pairs"], "figure {}".format):
            clock[0] += 20.0
    assert capsys.readouterr().out.splitlines()[1:] == ["evaluating: figure pairs, 2/3 (90 s)"]
