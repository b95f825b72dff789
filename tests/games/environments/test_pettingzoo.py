"""A parallel environment of the user as a game: moves, checkpoints and errors."""

import numpy as np
import pytest
import torch
from support.runs.configured import generator, load
from support.small.small_games import PETTINGZOO as RUN
from support.small.small_games import WEATHER, have_equal_states, play_and_resume, play_episodes

from components.errors import ConfigMismatchError
from runner.execution.assembly import load_problem
from runner.execution.rng import Streams

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
SMALL = [
    f"dataset.env={WEATHER}",
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
def test_game_plays_like_environment(players, agent):
    from parallel_envs import Weather

    world = game(kwargs={"players": players, "stops": "ends"}, agent=agent, horizon=9).environment
    assert (world.n_actions, world.n_threats, world.continuing) == (3, (3,) * (players - 1), False)
    seat = 0 if agent is None else 1
    order = [seat, *(i for i in range(players) if i != seat)]
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
            observation, gains, *_ = twin.step(given)
            assert paid == [gains[f"p{i}"] for i in order]
            assert world.features(outcome.s_next)[i].tolist() == observation["p0"].tolist()
            assert bool(outcome.done[i]) is not bool(twin.agents)
        s = outcome.s_next
    assert torch.equal(world.observe(s, a).targets.argmax(1), a)


def test_truncation_is_not_terminal():
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


def begin(job):
    rng = Streams(job.settings.seed)
    problem = load_problem(job, rng, 3)
    return problem, rng, job.inference.init(job.model.build(problem, rng), problem, rng)


@pytest.mark.parametrize("killed", [1, 5])
def test_resumed_run_is_bit_identical(make_job, killed):
    job = make_job(*RUN, *SMALL, "dataset.kwargs={stops: ends}", "dataset.horizon=4")

    def open_game():
        return job.inference, *begin(job)

    whole, repeat = play_and_resume(open_game, killed)
    assert have_equal_states(whole, repeat)
    rewards = whole.standing.rewards_so_far
    assert rewards.shape == (3, 8)
    assert len(rewards.unique()) > 5


def test_changed_environment_is_detected_on_resume():
    world = game().environment
    g = generator(0)
    s = world.reset(4, g)
    after = world.step(s, *moves(world, g), g).s_next
    assert torch.equal(world.step(s, *moves(world, g), g).s_next[:, :2], after[:, :2])  # restarted
    world.step(after, *moves(world, g), g)
    with pytest.raises(
        ConfigMismatchError, match=r"dataset.env: .* after 1 moves .*; .* reset\(seed=…\)"
    ):
        world.step(after, *moves(world, g), g)
    s[:, 3] += 1
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset.env: .*; check whether the environment",
    ):
        world.step(s, *moves(world, g), g)


@pytest.mark.parametrize(
    "odd",
    [
        "none",
        "reward is an array",
        "flags are numbers",
        "left out at the end",
        "never leaves",
        "leaves without a word",
    ],
)
def test_unusual_valid_environments_are_played(odd):
    world = game(
        env="parallel_envs:Odd", kwargs={"odd": odd, "players": [1, 0]}, agent=1
    ).environment
    g = generator(0)
    s = world.reset(4, g)
    paid = 0
    for made in range(1, 4):
        outcome = world.step(s, *moves(world, g), g)
        s = outcome.s_next
        paid = paid + outcome.r_a
        assert outcome.done.tolist() == [made == 3] * 4
        assert not outcome.truncated.any()
    assert paid.tolist() == [3.0] * 4


def test_players_may_be_numbers(make_job):
    numbers = [
        "dataset.env=parallel_envs:Odd",
        "dataset.kwargs={odd: none, players: [0, 1, 2]}",
        *SMALL[1:],
    ]
    problem, rng, state = begin(job := make_job(*RUN, *numbers, "dataset.agent=2"))
    assert job.dataset.agent == 2
    assert (
        play_episodes(job.inference, problem, rng, state, 0, 2).standing.rewards_so_far.tolist()
        == [[3.0, 3.0]] * 3
    )
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset.agent=3: .* parallel_envs:Odd, .* 0, 1, 2",
    ):
        begin(make_job(*RUN, *numbers, "dataset.agent=3"))


@pytest.mark.parametrize(("players", "seats"), [(4, 3), (2, 1)])
def test_number_of_players_must_match_attacker(make_job, players, seats):
    two = ["attacker=together", "attacker.members=[exponential_smoother,exponential_smoother]"]
    job = make_job(*RUN[:2], *two, *RUN[3:], *SMALL, f"dataset.kwargs={{players: {players}}}")
    with pytest.raises(
        ConfigMismatchError,
        match=f"attacker=together: has 2 players for the {seats} seats",
    ):
        begin(job)


def test_single_opponent_takes_every_seat(make_job):
    problem, rng, state = begin(job := make_job(*RUN, *SMALL, "dataset.kwargs={players: 4}"))
    # three and the welfare
    assert play_episodes(
        job.inference, problem, rng, state, 0, 2
    ).standing.opponent_rewards.shape == (
        4,
        3,
        2,
    )


def test_large_seed_is_exact():
    s = game().environment.reset(400, generator(0))
    assert s[:, 0].max() > 2**30
    assert np.array_equal(s[:, 0].numpy(), s[:, 0].long().double().numpy())
