"""A parallel environment of the user's own, written for PettingZoo."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar

from pydantic import Field, PositiveInt, field_validator

from components.contracts.problems import Kind
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.contracts.user_code import reraise_user_error
from components.datasets.games.parallel_game import ParallelGame, check_seeded
from components.figures.games import rewards
from components.problems.game import Game
from components.problems.live_environment import LiveEnvironment
from components.registry import register
from components.trouble import Misfit


@register("dataset", "pettingzoo")
class PettingZoo(Dataset[Game]):
    """A parallel environment of PettingZoo, one for each of R replicates.

    ``env`` names the function or class that makes one when it is called with ``kwargs``; its module is code, and must be among
    ``plugins`` too.  She is ``agent``, every other player an opponent (an attacker alone takes every seat, the members of
    attacker=together one each).  All act at once, by number, in ``Discrete`` spaces, and opponents see what she did.  A state
    is what she observes, flattened, of which action values are linear functions or networks; an observation that is
    ``Discrete`` becomes one-hot, with which model=q_linear is a table.

    Such an environment goes on by itself and cannot be put back where it was.  An episode begins with reset(seed=…), the seed
    drawn from the run's stream of the environment, and a run is checkpointed between episodes alone, so that one that was
    killed goes on bit by bit.  That asks for environments whose randomness is the seed's: they are played twice beforehand.

    An episode that the environment truncates, or that has made ``horizon`` moves, is no true end: what would have come after
    is bootstrapped.  One that is over before its first move is worth 0.

    Raises Misfit where PettingZoo is not installed, ``env`` is not found or raises, actions are not discrete, or masked, or
    the same seed does not play the same.

    Source: Terry, Black, Grammel et al. (2021), section 4 (in its parallel form)."""

    kind: ClassVar[Kind] = "game"
    length_key: ClassVar[str | None] = "episodes"
    vectorised: ClassVar[bool] = True
    imports: ClassVar[frozenset[str]] = frozenset({"env"})

    env: str
    kwargs: dict[str, Any] | None
    agent: str | int | None
    horizon: PositiveInt
    episodes: PositiveInt
    tail: Annotated[float, Field(gt=0, le=1)]
    window: PositiveInt

    @field_validator("env")
    @classmethod
    def _is_a_path(cls, env: str) -> str:
        module, colon, function = env.partition(":")
        if not all(part.isidentifier() for part in [*module.split("."), *([function] if colon else [])]):
            raise ValueError("no import path such as my_game:MyGame or package.my_game")
        return env

    def maker(self) -> Callable[..., Any]:
        """What makes an environment.

        Raises:
            Misfit: PettingZoo is not installed, or there is no such thing."""
        if find_spec("pettingzoo") is None or find_spec("gymnasium") is None:
            raise Misfit("dataset=pettingzoo: PettingZoo is not installed; pip install pettingzoo gymnasium")
        name, _, function = self.env.partition(":")
        function = function or "parallel_env"  # as PettingZoo's own modules have it
        where = f"dataset.env={self.env}"
        try:
            with reraise_user_error(where):
                module = importlib.import_module(name)
        except Misfit as error:
            missing = error.__cause__
            if isinstance(missing, ModuleNotFoundError) and f"{name}.".startswith(f"{missing.name}."):
                raise Misfit(f"{where}: {missing}; is the folder of {name} on PYTHONPATH?") from missing
            if isinstance(missing, ModuleNotFoundError):
                raise Misfit(f"{where}: needs {missing.name}, which is not installed; install it with pip") from missing
            raise
        maker = vars(module).get(function)
        if not callable(maker):
            turns = (
                "; its env plays in turns, only parallel environments are played here" if "env" in vars(module) else ""
            )
            raise Misfit(f"{where}: {name} has no function or class {function!r}{turns}")
        return maker

    def load(self, rng: Rng, setting: Setting) -> Game:
        maker, where = self.maker(), f"dataset.env={self.env}"

        def open_one() -> ParallelGame:
            with reraise_user_error(f"{where}: being made with dataset.kwargs", maker):
                made = maker(**(self.kwargs or {}))
            return ParallelGame(made, self.agent, where)

        check_seeded(open_one, self.horizon, rng.at("data", 0))
        own, *others = open_one().sizes
        return Game(
            name=self.name,
            environment=LiveEnvironment(open_one, own, tuple(others), self.horizon, setting.device, setting.dtype),
            episodes=self.episodes,
            tail=self.tail,
            window=self.window,
            figures=[rewards.draw],
            replicates=setting.replicates,
        )
