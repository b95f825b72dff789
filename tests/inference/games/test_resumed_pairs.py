"""Two players that learn or solve games match an uninterrupted run when stopped half-way and
resumed."""

import pytest
from support.runs.configured import component
from support.small.small_games import game_of, have_equal_states, play_and_resume

from runner.execution.rng import Streams

SOLVERS = {
    "minimax_q": {},
    "friend_or_foe_q": {},
    "nash_q": {},
    "restricted_nash": {"forecaster": component("inference", "level_k")},
    "wolf_phc": {},
}
# stopped in the middle of an episode of the gradient, of five rounds and of three
CLIMBERS = {
    "policy_gradient": {"rounds": 5, "baseline": "by_state"},
    "opponent_shaping": {"every": 3},
    "one_shot": {},
}
GRID = ("friend_or_foe_grid", {"episodes": 6, "horizon": 6})
MATRIX = ("iterated_matrix", {"episodes": 14})
PAIRS = [
    (*game, component("inference", agent, **keys), component("inference", opponent, **others))
    for game, kinds in ((GRID, SOLVERS), (MATRIX, CLIMBERS))
    for agent, keys in kinds.items()
    for opponent, others in kinds.items()
]


@pytest.mark.parametrize(("name", "keys", "agent", "opponent"), PAIRS)
def test_resumed_pair_is_identical(name, keys, agent, opponent):
    def open_pair():
        game = game_of(name, 3, component("attacker", "learner", agent=opponent), **keys)
        rng = Streams(4)
        model = component("model", "q_table").build(game, rng)
        return agent, game, rng, agent.init(model, game, rng)

    whole, repeat = play_and_resume(open_pair, keys["episodes"] // 2)
    assert have_equal_states(whole, repeat)
    assert whole.standing.rewards_so_far.shape == (3, keys["episodes"])
