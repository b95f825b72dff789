"""Check that the replicates of a run can be computed side by side."""

from __future__ import annotations

from components.contracts.attackers import Attacker, Evasion
from components.contracts.requirements import kind_with_article
from components.contracts.roles import Dataset, Inference
from runner.compose.fit.incompatible import IncompatibleError


def check_side_by_side(
    asked_for: bool, dataset: Dataset, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuses replicates side by side of parts that cannot have them so, and variants that are to
    be learnt otherwise.

    Raises:
        ConfigError: naming what cannot, and what could.
    """
    setting = "side_by_side=true"
    if not asked_for:
        several = ", ".join(inference.variants())
        raise IncompatibleError(
            f"inference={inference.name}: several posteriors ({several}) are learnt side by side; add {setting}, or ask for one"
        )
    if dataset.poses() != "supervised":
        raise IncompatibleError(
            f"{setting}: is for supervised data, and dataset={dataset.name} is "
            f"{kind_with_article(dataset.poses())} problem; leave it out"
        )
    if inference.side_by_side() is None:
        raise IncompatibleError(
            f"{setting}: inference={inference.name} computes one replicate after the other; leave it out",
            "inference",
        )
    if isinstance(attacker, Evasion):
        raise IncompatibleError(
            f"{setting}: attacker={attacker.name} evades one posterior at a time, there would be one of each replicate; leave "
            "one of them out"
        )
