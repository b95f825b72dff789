"""Environments that PettingZoo ships: each is played, or refused in one line."""

import importlib
import warnings

import pytest
from support.runs.configured import component, load
from support.small.small_games import play

from components.errors import ConfigMismatchError

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")

PLAYED = "played"
BED = {
    "test.example_envs.generated_agents_parallel_v0": "possible_agents, which must name all possible players",
    "test.example_envs.generated_agents_parallel_cust_agentid_v0": "possible_agents, which must name all possible players",
    "test.example_envs.generated_agents_env_action_mask_info_v0": "has no function or class parallel_env",
    "test.example_envs.generated_agents_env_action_mask_obs_v0": "has no function or class parallel_env",
    "test.example_envs.generated_agents_env_v0": "has no function or class parallel_env",
    "classic.rps_v2": PLAYED,
    "classic.tictactoe_v3": "has no function or class parallel_env",
    "classic.connect_four_v3": "has no function or class parallel_env",
    "classic.chess_v6": "has no function or class parallel_env",
    "classic.go_v5": "has no function or class parallel_env",
    "classic.hanabi_v5": "has no function or class parallel_env",
    "classic.leduc_holdem_v4": "has no function or class parallel_env",
    "sisl.multiwalker_v9": "actions of walker_0 are Box; only Discrete ones are supported",
    "sisl.pursuit_v5": PLAYED,
    "butterfly.knights_archers_zombies_v11": PLAYED,
    "butterfly.pistonball_v6": "actions of piston_0 are Box; only Discrete ones are supported",
    "atari.pong_v3": PLAYED,
}
SLOW = {"sisl.pursuit_v5", "butterfly.knights_archers_zombies_v11", "atari.pong_v3"}
MISSING = (
    "ModuleNotFoundError: No module named",
    "install it with pip",
)  # messages about missing packages


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in BED]
)
def test_pettingzoo_environment_is_played_or_refused(name, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    warnings.simplefilter("ignore")
    env = f"pettingzoo.{name}"
    refusal = ""
    try:
        game, rng = load("pettingzoo", env=env, replicates=2, episodes=2, horizon=10)
    except ConfigMismatchError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith(f"dataset.env={env}")
        assert len(refusal.splitlines()) == 1
        assert BED[name] in refusal or all(word in refusal for word in MISSING)
        return
    assert BED[name] == PLAYED
    inference = component("inference", "q_learning", alpha=1e-9)
    game.attacker = component("attacker", "learner", agent=inference)
    model = component("model", "q_linear").build(game, rng)
    assert play(game, inference, model=model)[1].rewards.shape == (2, 2)


def test_several_environments_are_available():
    for name in ("test.example_envs.generated_agents_parallel_v0", "classic.hanabi_v5"):
        assert importlib.import_module(f"pettingzoo.{name}")
