"""A user's parallel environment as a game: what it plays, from where it goes on, what is
refused."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
import torch
from support.runs.configured import component, generator, load

from components.errors import ConfigMismatchError
from runner.compose.config import prepare
from runner.compose.overrides import compose
from runner.errors import ConfigError
from runner.execution import checkpoint
from runner.execution.assembly import load_problem
from runner.execution.rng import Streams

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
WEATHER = "parallel_envs:Weather"
RUN = [
    "model=q_linear",
    "inference=fpq_learning",
    "attacker=exponential_smoother",
    "dataset=pettingzoo",
]
SMALL = [
    f"dataset.env={WEATHER}",
    "plugins=[parallel_envs]",
    "dataset.episodes=8",
    "dtype=float64",
    "replicates=3",
]


def game(replicates=4, env=WEATHER, **keys):
    return load("pettingzoo", replicates=replicates, env=env, **keys)[0]


def moves(world, g):
    a = torch.randint(0, world.n_actions, (4,), generator=g)
    return a, torch.stack([torch.randint(0, n, (4,), generator=g) for n in world.n_threats], 1)


@pytest.mark.parametrize(("players", "agent"), [(2, None), (3, None), (3, "p1")])
def test_it_plays_as_the_environment_does(players, agent):
    from parallel_envs import Weather

    world = game(kwargs={"players": players, "stops": "ends"}, agent=agent, horizon=9).environment
    assert (world.n_actions, world.n_threats, world.continuing) == (3, (3,) * (players - 1), False)
    own = 0 if agent is None else 1
    order = [own, *(i for i in range(players) if i != own)]
    g = generator(1)
    s = world.reset(4, g)
    twins = [Weather(players=players, stops="ends") for _ in range(4)]
    for twin, seed in zip(twins, s[:, 0].tolist(), strict=True):
        twin.reset(seed=int(seed))
    assert len(set(s[:, 0].tolist())) == 4
    for _ in range(7):
        a, b = moves(world, g)
        outcome = world.step(s, a, b, g)
        for i, twin in enumerate(twins):
            acts = [int(a[i]), *b[i].tolist()]
            paid = [float(outcome.r_a[i]), *outcome.r_b[i].tolist()]
            if not twin.agents:
                assert paid == [0.0] * players
                assert bool(outcome.done[i])
                assert torch.equal(outcome.s_next[i], s[i])
                continue
            given = {f"p{i}": acts[order.index(i)] + 1 for i in range(players)}
            seen, gains, *_ = twin.step(given)
            assert paid == [gains[f"p{i}"] for i in order]
            assert world.features(outcome.s_next)[i].tolist() == seen["p0"].tolist()
            assert bool(outcome.done[i]) is not bool(twin.agents)
        s = outcome.s_next
    assert torch.equal(world.observe(s, a).targets.argmax(1), a)


def test_a_truncation_is_no_end_at_the_horizon_or_before_it():
    for horizon in (5, 6):
        world = game(horizon=horizon).environment
        g = generator(0)
        s = world.reset(4, g)
        for _ in range(5):
            assert not world.is_over(s).any()
            outcome = world.step(s, *moves(world, g), g)
            s = outcome.s_next
        assert world.is_over(s).all()
        assert not outcome.done.any()
        assert outcome.truncated.all()
        assert outcome.opponents is None


def test_discrete_observations_are_one_hot():
    world = load(
        "pettingzoo",
        env="runner.python.games:parallel_env",
        kwargs={"game": "iterated_matrix", "episodes": 3},
    )[0]
    assert world.environment.features(world.environment.reset(1, torch.Generator())).tolist() == [
        [0, 0, 0, 0, 1]
    ]


# ---- going on
# ---------------------------------------------------------------------------------------------------------
def begun(job):
    rng = Streams(job.settings.seed)
    problem = load_problem(job, rng, 3)
    return problem, rng, job.inference.init(job.model.build(problem, rng), problem, rng)


def played(job, problem, rng, state, start, stop):
    for _, episode in problem.batches("episode", rng, start, stop):
        state, _ = job.inference.step(state, episode, rng)
    return state


def content(state, rng):
    taken = checkpoint.snapshot(state, rng.state(), {})
    return json.dumps(taken.skeleton), {
        name: t.tolist() for name, t in (taken.tensors | taken.traces).items()
    }


@pytest.mark.parametrize("killed", [0, 1, 5])
def test_a_killed_run_goes_on_bit_by_bit(make_job, tmp_path, killed):
    job = make_job(*RUN, *SMALL, "dataset.kwargs={stops: ends}", "dataset.horizon=4")
    problem, rng, state = begun(job)
    whole = played(job, problem, rng, state, 0, 8)
    expected, rewards = content(whole, rng), whole.standing.rewards_so_far
    assert rewards.shape == (3, 8)
    assert len(rewards.unique()) > 5

    problem, rng, state = begun(job)
    state = played(job, problem, rng, state, 0, killed)
    facts = {"step": killed, "replicate": 0, "signature": "s"}
    checkpoint.save_checkpoint(tmp_path, checkpoint.snapshot(state, rng.state(), facts))
    problem, rng, fresh = begun(job)
    facts, tensors, _ = checkpoint.load_newest(tmp_path, "s")
    state, streams = checkpoint.restore(facts, tensors, fresh)
    rng.restore(streams)
    assert content(played(job, problem, rng, state, killed, 8), rng) == expected


def test_the_middle_of_an_episode_is_not_gone_back_to_and_a_changed_world_is_noticed():
    world = game().environment
    g = generator(0)
    s = world.reset(4, g)
    after = world.step(s, *moves(world, g), g).s_next
    assert torch.equal(world.step(s, *moves(world, g), g).s_next[:, :2], after[:, :2])  # begun anew
    world.step(after, *moves(world, g), g)
    with pytest.raises(ConfigMismatchError, match="a state after 1 moves cannot be gone back to"):
        world.step(after, *moves(world, g), g)
    s[:, 3] += 1
    with pytest.raises(
        ConfigMismatchError, match="does not begin where it did before; has the environment changed"
    ):
        world.step(s, *moves(world, g), g)


# ---- what is refused
# --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"env": "parallel_envs:continuous"},
            "actions of p0 are Box; only Discrete ones can be played here",
        ),
        (
            {"kwargs": {"source": "unseeded"}},
            "when it is played twice from reset.*draws come from that seed",
        ),
        ({"kwargs": {"source": "global"}}, "when it is played twice from reset"),
        ({"kwargs": {"source": "remembers"}}, "nothing stay from the episode before"),
        ({"kwargs": {"players": 1}}, "has 1 player, a game takes two or more"),
        (
            {"agent": "she"},
            "dataset.agent=she: no player of parallel_envs:Weather, which has p0, p1",
        ),
        (
            {"env": "parallel_envs:masked"},
            "observations of p0 have action_mask; every action must be allowed at every move",
        ),
        (
            {"env": "parallel_envs:of_any_length"},
            "observations of p0 are Sequence, of no fixed size",
        ),
        (
            {"env": "parallel_envs:many_actions"},
            "has 10,000,000,000 joint actions, more than 1,000,000; make fewer",
        ),
        (
            {"env": "parallel_envs:many_places"},
            "has 1,000,000,000 numbers in an observation of p0, more than 1,000,000",
        ),
        ({"env": "parallel_envs:nothing"}, "makes a object, no ParallelEnv; return one"),
        ({"env": "parallel_envs:number"}, "parallel_envs has no function or class 'number'"),
        ({"env": "parallel_envs:Wether"}, "parallel_envs has no function or class 'Wether'"),
        (
            {"env": "no_such_module"},
            "No module named 'no_such_module'; is the folder of no_such_module on PYTHONPATH",
        ),
        (
            {"kwargs": {"wind": 3}},
            r"being made with dataset.kwargs: TypeError: .*'wind' \(parallel_envs.py, line \d+\)",
        ),
        (
            {"kwargs": {"odd": "breaks"}},
            r"reset\(seed=\d+\): RuntimeError: no weather today \(parallel_envs.py, line \d+\); mend it there",
        ),
        (
            {"kwargs": {"odd": "forgets"}},
            r"the rewards that step returns lack 'p1'.* \(parallel_envs.py, line \d+\)",
        ),
        ({"kwargs": {"odd": "nan"}}, "an observation of 'p0' is not finite"),
        (
            {"env": "parallel_envs:without_players"},
            r"possible_agents, which .*: AttributeError: .*parallel_envs.py",
        ),
    ],
)
def test_bad_environments_are_one_line(keys, said):
    with pytest.raises(ConfigMismatchError, match=said) as caught:
        game(**keys)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith("dataset.")


IN_ONE_LINE = {
    "mask in info": "has action_mask in the info of b; every action must be allowed",
    "reset returns observations": r"reset must return \(observations, infos\), dictionaries by player; it returns a dict",
    "infos are a list": "reset must return .*; its infos are a list",
    "no observation at reset": "the observations that reset returns lack 'a'",
    "observation outside": r"an observation of 'a' is -1, not in its space Discrete\(1\)",
    "observation None": "an observation of 'a' is None, not in its space",
    "a stranger": "agents has 'z' after reset, who is not in possible_agents",
    "agent is late": "agents lacks 'a', the decision maker, after reset",
    "rewards are two": r"the reward of 'a' is array\(\[1., 1.\]\), must be one number",
    "reward is None": "the reward of 'a' is None, must be one number",
    "reward is nan": r"the reward of 'a' is not finite \(nan\)",
    "flag is a word": "terminations and truncations of 'a' must be true or false, not 'no'",
    "no flags": "neither terminations nor truncations have 'a', who acted",
    "left out of the rewards": "the rewards that step returns lack 'a', who acted; at a last move too",
    "leaves without a word": "'a' is no longer in agents, and neither its termination nor its truncation is true",
    "opponent stays": "'b' is still in agents after its end; take it out of agents",
    "four values": r"step must return \(observations, rewards, terminations, truncations, infos\), .* it returns 4 values",
    "returns None": "step must return .* it returns a NoneType",
    "ends the process": r"step: SystemExit: it ends the process \(3\)",
}


@pytest.mark.parametrize("odd", IN_ONE_LINE)
def test_what_no_environment_may_return_is_one_line_that_names_the_users_code(odd):
    with pytest.raises(ConfigMismatchError, match=IN_ONE_LINE[odd]) as caught:
        game(env="parallel_envs:Odd", kwargs={"odd": odd})
    assert str(caught.value).startswith("dataset.env=parallel_envs:Odd: ")
    assert re.search(r"\(parallel_envs.py, line \d+\)", str(caught.value))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "odd",
    ["none", "reward is an array", "flags are numbers", "left out at the end", "never leaves"],
)
def test_what_is_unusual_and_clear_is_played(odd):
    world = game(
        env="parallel_envs:Odd", kwargs={"odd": odd, "players": [1, 0]}, agent=1
    ).environment
    g = generator(0)
    s, paid = world.reset(4, g), 0
    for made in range(1, 4):
        outcome = world.step(s, *moves(world, g), g)
        s, paid = outcome.s_next, paid + outcome.r_a
        assert outcome.done.tolist() == [made == 3] * 4
        assert not outcome.truncated.any()
    assert paid.tolist() == [3.0] * 4


def test_players_may_be_numbers(make_job):
    numbers = [
        "dataset.env=parallel_envs:Odd",
        "dataset.kwargs={odd: none, players: [0, 1, 2]}",
        *SMALL[1:],
    ]
    problem, rng, state = begun(job := make_job(*RUN, *numbers, "dataset.agent=2"))
    assert job.dataset.agent == 2
    assert (
        played(job, problem, rng, state, 0, 2).standing.rewards_so_far.tolist() == [[3.0, 3.0]] * 3
    )
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset.agent=3: no player of parallel_envs:Odd, which has 0, 1, 2",
    ):
        begun(make_job(*RUN, *numbers, "dataset.agent=3"))


def test_without_the_package(monkeypatch):
    monkeypatch.setattr("components.games.environments.pettingzoo.find_spec", lambda name: None)
    with pytest.raises(
        ConfigMismatchError, match="PettingZoo is not installed; pip install pettingzoo gymnasium"
    ):
        game()


@pytest.mark.parametrize("env", ["a b:c", "a:", ":b", "os:path.join", "a/b.py", ""])
def test_no_path(env):
    with pytest.raises(ValueError, match="no import path such as my_game:MyGame"):
        component("dataset", "pettingzoo", env=env)


@pytest.mark.parametrize(("players", "seats"), [(4, 3), (2, 1)])
def test_more_or_fewer_players_than_attacker_has(make_job, players, seats):
    two = ["attacker=together", "attacker.members=[exponential_smoother,exponential_smoother]"]
    job = make_job(*RUN[:2], *two, RUN[3], *SMALL, f"dataset.kwargs={{players: {players}}}")
    with pytest.raises(
        ConfigMismatchError,
        match=f"attacker=together: 2 players for the {seats} seats of pettingzoo",
    ):
        begun(job)


def test_one_opponent_takes_every_seat(make_job):
    problem, rng, state = begun(job := make_job(*RUN, *SMALL, "dataset.kwargs={players: 4}"))
    # three and the welfare
    assert played(job, problem, rng, state, 0, 2).standing.opponent_rewards.shape == (4, 3, 2)


def test_code_runs_when_its_module_is_named(tmp_path, monkeypatch):
    (tmp_path / "taken_in.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for env in ("taken_in", "os:system", "runner.commands.app:main"):
        module = env.partition(":")[0]
        said = rf"dataset.env={env}: code that is not the runner's; add 'plugins=\[{module}\]' if you know it"
        with pytest.raises(ConfigError, match=said):
            prepare(
                *compose(
                    [
                        *RUN,
                        f"dataset.env={env}",
                        "plugins=[parallel_envs]",
                        f"output_dir={tmp_path}",
                    ]
                )
            )
    assert "taken_in" not in sys.modules


def test_a_large_seed_is_kept_exactly():
    s = game().environment.reset(400, generator(0))
    assert s[:, 0].max() > 2**30
    assert np.array_equal(s[:, 0].numpy(), s[:, 0].long().double().numpy())
