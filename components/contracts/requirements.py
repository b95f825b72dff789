"""Requirements of a component on the other components of a run, and descriptions of data traits."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from components.contracts.plugins.protocols import list_words

if TYPE_CHECKING:
    from components.contracts.problems import BatchKind, Domain

# Keys with the same meaning in every inference method; the runner finds them by name.
# to be reduced after a non-finite value
RATES = ("lr", "learning_rate", "step_size", "epsilon", "eta")
LEFT_OUT = ("warmup", "burn_in")  # steps with discarded draws
CHAINS = "chains"  # of a sampler
THINNING = "thinning"  # every n-th state is stored

# word -> description of a dataset with it, and of one without it
TRAITS: dict[str, tuple[str, str]] = {
    "several_tasks": ("several tasks", "one task"),
    "several_numbers": ("several numbers per time step", "one number per time step"),
    "single_values": ("one value per row", "several values per row"),
    "class_series": ("a series of classes", "a series of numbers"),
    "images": ("images", "no images"),
    "known_function": ("a known function", "no known function"),
    "unknown_states": ("unknown states", "known states"),
    "binary_inputs": ("inputs 0 or 1", "inputs that are not 0 or 1"),
}


class ChoiceFacts(NamedTuple):
    """Facts about a dataset and a model, as configured or as declared by their classes."""

    dataset: str
    kind: str
    # None if there are no labels, or they are not known before the data are loaded
    target: str | None = None
    values: str | None = None
    domain: str | None = None
    traits: Set[str] = frozenset()
    has_all_traits: bool = False  # True if the set of traits is complete
    simulates: Set[Any] | None = None  # None if not compared
    model: str = ""  # in messages, such as "model=bnn"
    offers: Set[Any] | None = None  # capabilities of the model; None if not compared


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """Requirements of a component, declared once in its class: ``requires = Requirements(...)``.

    A class inherits the fields that it does not set from its base classes.
    """

    # supported kinds of problems
    kinds: Set[str] = frozenset()
    # supervised problems: kinds of labels; None means all of them
    targets: Set[str] | None = None
    # unlabelled problems: kinds of rows with a likelihood; None means all of them
    values: Set[str] | None = None
    # supervised problems: inputs that it can read; None means all of them
    domains: Set[Domain] | None = None
    # entries of the dataset's ``simulates``, in the default configuration
    simulated: Set[type] = frozenset()
    # unsupported traits of a dataset with the reason, for example "has one output"
    refused_traits: dict[str, str] = field(default_factory=dict)
    # required traits of a dataset with the reason
    required_traits: dict[str, str] = field(default_factory=dict)
    # view of the data for a step
    batch_kind: BatchKind = "minibatch"
    # protocols of ``contracts.capabilities`` that the model (for a gradient the module) must have,
    # for every configuration; protocols that they extend are added
    capabilities: Set[type] = frozenset()
    # and those that one kind of problem requires in addition
    capabilities_by_kind: Mapping[str, Set[type]] = field(default_factory=dict)
    # alternatives to these, for models that offer them
    alternatives_by_kind: Mapping[str, Set[type]] = field(default_factory=dict)
    # True for a defence, which calls ``problem.attacker`` inside ``step``
    attacker: bool = False
    # capabilities of the attacker, if there is one
    attacker_capabilities: Set[type] = frozenset()

    if not TYPE_CHECKING:

        def __new__(cls, **given: Any) -> Requirements:
            self = super().__new__(cls)
            object.__setattr__(self, "given", frozenset(given))
            return self

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, set):
                object.__setattr__(self, name, frozenset(value))
        extended = {
            base
            for protocol in self.capabilities
            for base in (protocol.__mro__ if isinstance(protocol, type) else ())
            if vars(base).get("_is_runtime_protocol")
        }
        object.__setattr__(self, "capabilities", self.capabilities | extended)

    def capabilities_for(self, kind: str, offered: Set[Any]) -> Set[type]:
        """Required capabilities for a kind of problem and a model with the offered ones."""
        instead = self.alternatives_by_kind.get(kind)
        if instead is not None and self.capabilities | instead <= offered:
            return self.capabilities | instead
        return self.capabilities | self.capabilities_by_kind.get(kind, frozenset())

    def unmet_capabilities(self, facts: ChoiceFacts) -> Set[type]:
        """Required capabilities that a model does not offer; empty if its capabilities are unknown."""
        if facts.offers is None:
            return frozenset()
        return self.capabilities_for(facts.kind, facts.offers) - facts.offers


SUPERVISED = Requirements(kinds={"supervised"})
REAL_ROWS = Requirements(kinds={"unlabelled"}, values={"real"})
WHOLE_DATA = Requirements(batch_kind="whole")
ONE_REAL_LABEL = Requirements(
    kinds={"supervised"},
    targets={"real"},
    refused_traits={"several_tasks": "has one output"},
)
ONE_BINARY_LABEL = replace(ONE_REAL_LABEL, targets={"binary"})


def misfit(facts: ChoiceFacts, needs: Requirements) -> str:
    """Reason why a component cannot use a dataset or a model, to follow its name; "" if it can."""
    dataset = f"dataset={facts.dataset}"
    if needs.kinds and facts.kind not in needs.kinds:
        return f" does not fit {dataset} ({kind_with_article(facts.kind)} problem)"
    domain = facts.domain if facts.kind == "supervised" else None
    for noun, given, allowed in (
        ("inputs", domain, needs.domains),
        ("labels", facts.target, needs.targets),
        ("values", facts.values, needs.values),
    ):
        if allowed is not None and given not in {None, *allowed}:
            words = " or ".join(sorted(allowed))
            return f" needs {noun} of kind {words}; {dataset} has kind {given}"
    refused = needs.refused_traits.keys() & facts.traits
    lacking = needs.required_traits.keys() - facts.traits if facts.has_all_traits else ()
    for trait in sorted({*refused, *lacking}):
        why = needs.refused_traits.get(trait) or needs.required_traits[trait]
        return f": {why}, and {dataset} has {TRAITS[trait][trait in lacking]}"
    if facts.simulates is not None and (unknown := needs.simulated - facts.simulates):
        return (
            f" assumes data generated by {list_words(unknown)}, which does not hold for {dataset}"
        )
    if unmet := needs.unmet_capabilities(facts):
        return f" requires {list_words(unmet)}, which {facts.model} lacks"
    return ""


def kind_with_article(kind: str) -> str:
    """A kind of problem with its article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def inherit_requirements(cls: type) -> Requirements:
    """Requirements of a class: each field from the first class of its MRO that sets it.

    ``given`` of the result names the fields set by the class itself.
    """
    values: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if declared := vars(base).get("requires"):
            values |= {name: getattr(declared, name) for name in declared.given}
    own_fields = vars(cls)["requires"].given if "requires" in vars(cls) else frozenset()
    requires = Requirements(**values)
    object.__setattr__(requires, "given", own_fields)
    return requires


def gives_requirement(cls: type, name: str) -> bool:
    """True if a class or one of its bases sets a field of its requirements."""
    return any(
        name in vars(base)["requires"].given for base in cls.__mro__ if "requires" in vars(base)
    )
