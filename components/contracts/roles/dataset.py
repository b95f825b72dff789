"""A dataset, which loads a problem."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import ClassVar, Generic

from components.contracts.problems import Domain, Kind, Target, Values
from components.contracts.requirements import ChoiceFacts
from components.contracts.roles.component import Component, P, Setting
from components.contracts.streams import Rng
from components.contracts.user_code import is_foreign


class Dataset(Component, Generic[P]):
    """Source of a problem: data from files, or simulated data, and the scores on them.

    Example:
        >>> from pathlib import Path
        >>> import torch
        >>> from components.contracts.roles import Dataset, Setting
        >>> from components.problems.density import Density
        >>> from runner.execution.rng import Streams
        >>> class Normal(Dataset):
        ...     kind = "density"
        ...     sd: float
        ...
        ...     def load(self, rng, setting):
        ...         return Density(
        ...             name=self.name,
        ...             names=["x"],
        ...             log_density=lambda theta: -0.5 * (theta[:, 0] / self.sd).square(),
        ...             sample_prior=lambda n, g: torch.randn(n, 1, generator=g),
        ...             mean=torch.zeros(1),
        ...             second_moment=torch.full((1,), self.sd**2),
        ...             box=[(-3 * self.sd, 3 * self.sd)],
        ...         )
        >>> setting = Setting(Path(), torch.device("cpu"), torch.float32, replicates=1)
        >>> problem = Normal(name="normal", sd=2.0).load(Streams(0), setting)
        >>> problem.log_density(torch.tensor([[0.0], [2.0]]))
        tensor([-0.0000, -0.5000])
    """

    kind: ClassVar[Kind]
    # of a supervised problem; None if determined by its keys
    label_kind: ClassVar[Target | None] = None
    domain: ClassVar[Domain] = "continuous"  # of the inputs of a supervised problem
    # of an unlabelled problem; None if determined by its keys
    values: ClassVar[Values | None] = None
    vectorised: ClassVar[bool] = False  # True if its problems can hold all replicates
    # traits of its data, words in ``contracts.requirements.TRAITS``
    traits: ClassVar[Set[str]] = frozenset()
    # additional traits by setting: word -> "key=value"
    traits_where: ClassVar[dict[str, str]] = {}
    # key with the maximum number of steps, if there is one
    length_key: ClassVar[str | None] = None
    # capabilities of the problems' system or environment, which models may assume
    simulates: ClassVar[Set[type]] = frozenset()

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Name of the data that ``load`` would use now, without reading them.

        The name is part of the run's signature.

        Args:
            data_dir: folder of the data files.
            offline: True if no download must be attempted.

        Returns:
            The name: ``name``, unless files or their absence change the data.
        """
        return self.name

    def problem_kind(self) -> Kind:
        """The kind of its problem, as configured."""
        return self.kind

    def value_kind(self) -> Values | None:
        """Kind of values in the rows of an unlabelled problem, as configured."""
        return self.values

    def target_kind(self) -> Target | None:
        """Kind of labels of a supervised problem, as configured."""
        return self.label_kind

    def data_facts(self) -> ChoiceFacts:
        """Facts about its data that other components may require, as configured."""
        return ChoiceFacts(
            self.name,
            self.problem_kind(),
            self.target_kind(),
            self.value_kind(),
            self.domain,
            self.data_traits(),
            # the traits of a user's data are not declared in full
            has_all_traits=not is_foreign(type(self)),
        )

    def data_traits(self) -> Set[str]:
        """Traits of its data, as configured."""
        return self.traits | ({"binary_inputs"} if self.domain == "binary" else frozenset())

    def asked_by_keys(self) -> dict[type, tuple[str, str]]:
        """Capabilities of the model required by the keys of this data set.

        Returns:
            Capability -> the keys as set, and settings that do not require it.
        """
        return {}

    def folds(self, data_dir: Path) -> int | None:
        """Number of standard splits or folds, assigned to replicates in turn.

        Args:
            data_dir: folder of the data files.

        Returns:
            The largest number of replicates; None for any number.
        """
        return None

    def load(self, rng: Rng, setting: Setting) -> P:
        """Load or simulate the data of one replicate, or of all if the setting has several.

        Args:
            rng: random streams of the replicate; ``rng.data`` draws splits and simulated rows.
            setting: folder, device, dtype, number of replicates.

        Returns:
            The problem.

        Raises:
            DataUnavailableError: files are missing and cannot be downloaded.
        """
        raise NotImplementedError
