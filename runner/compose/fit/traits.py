"""Whether the data of a dataset are like what a model, a method or an attacker asks."""

from __future__ import annotations

from components import registry
from components.contracts.attackers import Injection
from components.contracts.roles import Dataset, Inference, Model
from components.contracts.traits import TRAITS
from components.datasets.own.own_file import OwnFile
from runner.compose.fit.incompatible import IncompatibleError, Mend, Offer

OTHERS = {"model": "models that fit", "inference": "inference that fits", "attacker": "attackers that fit"}


def check_traits(dataset: Dataset, part: Model | Inference | Injection, role: str, where: str = "") -> None:
    """Refuses a part, chosen by the key ``where`` (that of its role), that cannot take what the data are like, as far as the
    class of the dataset says.

    Raises:
        IncompatibleError: with what they are like."""
    is_described = registry.file("dataset", dataset.name) is not None and not isinstance(dataset, OwnFile)
    traits = dataset.data_traits()
    misfits = [(why, TRAITS[trait][0], "") for trait, why in part.avoids.items() if trait in traits]
    if is_described:
        wanted = [(trait, why) for trait, why in part.wants.items() if trait not in traits]
        misfits += [(why, TRAITS[trait][1], dataset.traits_where.get(trait, "")) for trait, why in wanted]
    if misfits:
        why, has, setting = misfits[0]
        mends = (Mend.by_setting("set", "dataset", setting),) if setting else ()
        raise IncompatibleError(
            f"{where or role}={part.name}: {why}, and dataset={dataset.name} has {has}",
            Offer(role, OTHERS[role], where=where),
            mends=mends,
        )
