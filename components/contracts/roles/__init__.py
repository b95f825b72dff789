"""The roles and the data passed between them; attackers are in ``contracts.attackers``.

A component is a frozen pydantic model: its fields are its configuration (types and constraints
here, every default in its YAML), its methods are the science.  Nothing in this package imports
``runner``.

    problem = dataset.load(rng, setting)
    model   = model.build(problem, rng)
    state   = inference.init(model, problem, rng)
    for step, batch in problem.batches(inference.requires.batch_kind, rng, start, stop):
        state, info = inference.step(state, batch, rng)
    posterior = inference.posterior(state)
    problem.score(posterior, rng);  problem.draw(posterior, rng)
"""

from __future__ import annotations

from components.contracts.roles.block import Block
from components.contracts.roles.component import (
    AboveZeroToOne,
    AtLeastTwo,
    BetweenZeroAndOne,
    Component,
    Increasing,
    Info,
    LearnableScale,
    NonEmptyList,
    PositivePair,
    Setting,
    StrictKeys,
    ZeroToBelowOne,
    ZeroToOne,
)
from components.contracts.roles.dataset import Dataset
from components.contracts.roles.gradient import Gradient
from components.contracts.roles.inference import (
    ChecksRuns,
    FinishedRun,
    Inference,
    variant_info_names,
)
from components.contracts.roles.model import Model
from components.contracts.roles.problem import Problem, SeriesProblem, TabulatingProblem
