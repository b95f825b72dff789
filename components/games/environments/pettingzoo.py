"""Parallel environment of the user, written for PettingZoo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import PositiveInt, field_validator

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.contracts.user_code import import_object, reraise_user_error
from components.errors import require_package
from components.games.environments.game import Game
from components.games.environments.game_dataset import GameDataset
from components.games.parallel.live_environment import LiveEnvironment
from components.games.parallel.parallel_game import ParallelGame
from components.games.parallel.seed_check import check_seeded
from components.registry import register


@register("dataset", "pettingzoo")
class PettingZoo(GameDataset):
    """A parallel environment of PettingZoo, one for each of R replicates.

    ``env`` names the function or class that returns an environment if called with ``kwargs``; its
    module must be listed in ``plugins`` too.  The player ``agent`` is the agent, and every other
    player is an opponent (a single attacker plays all opponents, each member of attacker=together
    plays one).  All players act simultaneously, by number, in ``Discrete`` spaces, and opponents
    observe the agent's actions.  A state is the agent's observation, flattened; action values are
    linear functions or networks of it.  A ``Discrete`` observation is one-hot encoded, which makes
    model=q_linear a table.

    Such an environment cannot be reset to an earlier state.  An episode begins with reset(seed=…),
    with a seed drawn from the environment stream of the run, and checkpoints are written only
    between episodes, so that a killed run resumes bit by bit. This requires environments in which
    the seed determines all randomness: they are played twice beforehand as a check.

    An episode that the environment truncates, or that reaches ``horizon`` moves, is not terminal:
    its remaining return is bootstrapped; a player that leaves otherwise is in a terminal state.  An
    episode that ends before its first move has the value 0.

    Raises:
        ConfigMismatchError: PettingZoo is not installed, ``env`` is not found or raises,
            actions are not discrete or are masked, or the same seed does not give the same episode.

    Source: Terry, Black, Grammel et al. (2021), section 4 (in its parallel form).
    """

    imports = {"env"}

    env: str
    kwargs: dict[str, Any] | None
    agent: str | int | None
    horizon: PositiveInt

    @field_validator("env")
    @classmethod
    def _check_env_path(cls, env: str) -> str:
        module, colon, function = env.partition(":")
        if not all(
            part.isidentifier() for part in [*module.split("."), *([function] if colon else [])]
        ):
            raise ValueError("not an import path such as my_game:MyGame or package.my_game")
        return env

    def maker(self) -> Callable[..., Any]:
        """Return the function or class that makes an environment.

        Raises:
            ConfigMismatchError: PettingZoo is not installed, or the function or class does not
                exist.
        """
        require_package("pettingzoo", "dataset=pettingzoo", "pettingzoo")
        module, _, function = self.env.partition(":")
        # as in the modules of PettingZoo
        maker: Callable[..., Any] = import_object(
            "dataset.env", f"{module}:{function or 'parallel_env'}"
        )
        return maker

    def load(self, rng: Rng, setting: Setting) -> Game:
        maker = self.maker()
        where = f"dataset.env={self.env}"

        def open_one() -> ParallelGame:
            with reraise_user_error(f"{where}: call with dataset.kwargs", maker):
                env = maker(**(self.kwargs or {}))
            return ParallelGame(env, self.agent, where)

        check_seeded(open_one, self.horizon, rng.at("data", 0))
        n_actions, *others = open_one().sizes
        return self.build_game(
            LiveEnvironment(
                open_one, n_actions, tuple(others), self.horizon, setting.device, setting.dtype
            ),
            setting,
        )
