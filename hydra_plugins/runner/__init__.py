"""Plug-in of Hydra: ``hydra/sweeper=optuna``.

Hydra imports every package in ``hydra_plugins`` when it starts, in other programs too.  The sweep
itself is therefore imported only when it is set up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hydra.plugins.sweeper import Sweeper

if TYPE_CHECKING:
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig


class OptunaSweeper(Sweeper):
    """Sweeper that hands over to ``runner.sweep.optuna_sweeper.OptunaSearch``.

    Args:
        keys: those of conf/hydra/sweeper/optuna.yaml.
    """

    def __init__(self, **keys: Any) -> None:
        self.keys = keys

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        from runner.sweep.optuna_sweeper import OptunaSearch

        self.search = OptunaSearch(**self.keys)
        self.search.setup(hydra_context=hydra_context, task_function=task_function, config=config)

    def sweep(self, arguments: list[str]) -> float | None:
        """Runs the trials: the best value, of one objective."""
        return self.search.sweep(arguments)
