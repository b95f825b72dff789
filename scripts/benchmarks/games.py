"""Games of level-2 thinkers: compiled loops and tensors against agent objects, one for each seed.

    python -m scripts.benchmarks games --aramarl FOLDER     # the peer is a checkout of ARAMARL

The peer without a checkout is our own: for each round it does what ARAMARL's Level2QAgent does
(numpy tables, ε-greedy actions, Dirichlet counts, one draw of the forecast for the action and one
for the target), against an exponential smoother.  Mean rewards of both engines must agree.  Seconds
are of a round, a move of one seed that still plays.

300 is reached on a quiet machine, 260 is held on a busy one.  Of 65 ns a round the loop takes 30, and
what an episode costs whatever the seeds, 28 µs, the rest: 8 µs to hand 40 arrays to the loop, 20 µs
to keep rewards, welfare and first actions, which the peer does not keep."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from scripts.benchmarks.game_runs import NAMES, build_game, learn
from scripts.benchmarks.harness import Measured, Report
from scripts.peers.agent_objects import play

ENGINES = ("tensors", "compiled")


def measure_seconds(name: str, seeds: int, episodes: int, engine: str, level: int = 2) -> Measured:
    """Seconds a round of all seeds played together."""
    return Measured(
        learn(build_game(name, seeds, episodes), "q_table", episodes, engine=engine, level=level)[1]
    )


def check_law(name: str, report: Report) -> None:
    """Mean rewards of both engines agree."""
    rewards = {
        engine: learn(build_game(name, 500, 100), "q_table", 100, seed=1, engine=engine)[0].mean(1)
        for engine in ENGINES
    }
    report.assert_equal_means(rewards, most=5.0)


def measure(options: Namespace, report: Report) -> None:
    def share(episodes: int) -> int:
        return max(10, episodes * options.percent // 100)

    for name in NAMES:
        check_law(name, report)
    cases = [
        ("stateless", 1000, 4000, 2000, "compiled"),
        ("grid", 1000, 800, 400, "compiled"),
        ("stateless", 100, 2000, 300, "tensors"),
    ]
    for case, (name, seeds, theirs, ours, engine) in zip(report.goals, cases, strict=True):
        ways = {
            engine: partial(measure_seconds, name, seeds, share(ours), engine),
            "agents": partial(play, build_game(name, 1, 1), share(theirs), options.aramarl),
        }
        report.race(case, ways, options.repeats)
    for level in range(1, 6):
        way = partial(measure_seconds, "stateless", 1000, share(1000), "compiled", level)
        report.time({f"level {level}, a round": way}, 1)
