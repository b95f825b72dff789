"""The one-pixel attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from components.attackers.criteria import certainty, is_misclassified
from components.attackers.evasion.square import image_size
from components.attackers.target import TargetedAttack
from components.contracts.attackers import Evasion
from components.contracts.roles import Problem
from components.contracts.streams import Rng
from components.contracts.victim import NormName, Victim
from components.errors import ConfigMismatchError
from components.maths.spacing import row_numbers
from components.problems.supervised import Supervised
from components.registry import register

CHUNK = 1 << 14  # candidates evaluated together


class Image(NamedTuple):
    """Shape of a row, and the range of its values."""

    channels: int
    height: int
    width: int
    bounds: tuple[float, float]

    @property
    def sizes(self) -> tuple[int, int]:
        return self.height, self.width


@register("attacker", "one_pixel")
class OnePixel(TargetedAttack, Evasion):
    """One-pixel attack: a few pixels and their values, found by differential evolution.

    A candidate is d tuples of row, column and a value per channel.  Positions are initialised
    uniformly, values as N(m, s²) with m the middle and s half the length of the range of the
    inputs.  A child is v_i = v_{r1} + F (v_{r2} − v_{r3}), with distinct members r1, r2, r3 of the
    population, without crossover and with its position clipped to the image; it replaces its parent
    v_i if log p(y|x') is smaller (larger for a target).  A pixel changes by at most ε within the
    bounds; if ε is the whole range, values are free, as in the paper.  x' is the best candidate;
    broken rows stop their queries.  If the inputs are not images, every input is a pixel.  x [B,
    D], y [B, T].

    Raises:
        ConfigMismatchError: the inputs have no bounds.

    Source: Su, Vargas and Sakurai (2019), section III, eqs. (3)-(4).
    """

    follows_gradient = False
    knowledge = "black box"

    pixels: PositiveInt
    population: Annotated[int, Field(ge=4)]
    generations: PositiveInt
    scale: PositiveFloat

    def measure(self) -> NormName:
        return "linf"

    def check_target(self, problem: Problem, key: str) -> None:
        super().check_target(problem, key)
        if isinstance(problem, Supervised) and problem.bounds is None:
            raise ConfigMismatchError(
                f"{key}=one_pixel: the values of a pixel are drawn within the bounds of the inputs, "
                f"and {problem.name} has none; use {key}=square"
            )

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        assert victim.bounds is not None  # as ``check_target`` ensures
        if eps == 0 or len(x) == 0:
            return x.clone()
        image = Image(*image_size(victim, x.shape[1]), victim.bounds)
        g = rng.attack
        query = Query(victim, image, eps, g, targeted=self.target is not None)
        labels = self.labels(y)
        out = x.clone()
        initial = query.judge(x, x[:, None], labels)
        lowest = initial.lowest
        pending = (~initial.hit & (y >= 0).any(1)).nonzero()[:, 0]
        members = self._first(image, x, g)
        values = torch.full_like(members[..., 0, 0], torch.inf)
        for generation in range(self.generations + 1):
            # Draws for all rows, so that a row's draws do not depend on which others are broken.
            chosen = distinct(len(x), self.population, g, x.device)[:, pending]
            if len(pending) == 0:
                break
            parents = members[pending]
            children = parents
            if generation > 0:
                first, second, third = (
                    parents.gather(1, index[..., None, None].expand_as(parents)) for index in chosen
                )
                children = _inside(first + self.scale * (second - third), image)
            judged = query.paint_and_judge(x[pending], children, labels[pending])
            better = judged.values < values[pending]
            members[pending] = torch.where(better[..., None, None], children, parents)
            values[pending] = torch.where(better, judged.values, values[pending])
            improved = judged.hit | (judged.lowest < lowest[pending])
            out[pending] = torch.where(improved[:, None], judged.best, out[pending])
            lowest[pending] = torch.where(improved, judged.lowest, lowest[pending])
            pending = pending[~judged.hit]
        return out

    def _first(self, image: Image, x: Tensor, g: torch.Generator) -> Tensor:
        """Initial population [B, N, d, 2 + channels]: positions and values."""
        shape = (len(x), self.population, self.pixels)
        sizes = x.new_tensor(image.sizes)
        places = torch.rand(*shape, 2, generator=g, device=x.device, dtype=x.dtype) * sizes
        low, high = image.bounds
        noise = torch.randn(*shape, image.channels, generator=g, device=x.device, dtype=x.dtype)
        return _inside(torch.cat([places, (low + high) / 2 + (high - low) / 2 * noise], -1), image)


class Judged(NamedTuple):
    """Evaluation of N candidates for each of B rows."""

    best: Tensor  # [B, D] a successful candidate, or the one with the lowest value
    lowest: Tensor  # [B] its value
    hit: Tensor  # [B] bool: success
    values: Tensor  # [B, N] objective to lower: ± log p(y|x') on another scale


@dataclass(frozen=True)
class Query:
    """Queries to a victim about inputs with changed pixels."""

    victim: Victim
    image: Image
    eps: float
    generator: torch.Generator
    targeted: bool

    def paint_and_judge(self, x: Tensor, members: Tensor, labels: Tensor) -> Judged:
        """Evaluate the candidates [B, N, d, 2 + channels] of the rows x [B, D]."""
        rows = max(1, CHUNK // members.shape[1])
        chunks = zip(x.split(rows), members.split(rows), labels.split(rows), strict=True)
        parts = [
            self.judge(part, self.victim.clip(paint(part, theirs, self.image, self.eps)), y)
            for part, theirs, y in chunks
        ]
        return Judged(*(torch.cat(fields) for fields in zip(*parts, strict=True)))

    def judge(self, x: Tensor, candidates: Tensor, labels: Tensor) -> Judged:
        """Evaluate inputs [B, N, D]."""
        with torch.no_grad():
            predictive = self.victim.answers(candidates.flatten(0, 1), self.generator)
        y = labels.repeat_interleave(candidates.shape[1], 0)
        value = certainty(predictive, y)
        value = (-value if self.targeted else value).view(candidates.shape[:2])
        hit = (is_misclassified(predictive, y) != self.targeted).view_as(value)
        # a successful candidate comes before a smaller value
        among = torch.where(hit | ~hit.any(1, keepdim=True), value, torch.inf)
        row = row_numbers(x)
        index = among.argmin(1)
        return Judged(candidates[row, index], value[row, index], hit.any(1), value)


def paint(x: Tensor, members: Tensor, image: Image, eps: float) -> Tensor:
    """Inputs [B, N, D] with the pixels of the candidates [B, N, d, 2 + channels], within ε of x [B,
    D]; later pixels overwrite earlier ones."""
    area = image.height * image.width
    out = x[:, None].expand(-1, members.shape[1], -1).unflatten(-1, (image.channels, area)).clone()
    origin = out.clone()
    for pixel in members.unbind(2):  # [B, N, 2 + channels]
        row, column = (pixel[..., i].floor().long() for i in (0, 1))
        place = (row * image.width + column)[..., None, None].expand(-1, -1, image.channels, 1)
        old = origin.gather(-1, place)[..., 0]
        value = torch.minimum(torch.maximum(pixel[..., 2:], old - eps), old + eps)
        out.scatter_(-1, place, value[..., None])
    return out.flatten(2)


def distinct(rows: int, members: int, g: torch.Generator, device: torch.device) -> Tensor:
    """Three distinct members for each of N children of each row, [3, B, N]."""

    def draw(fewer: int) -> Tensor:
        return torch.randint(members - fewer, (rows, members), generator=g, device=device)

    first = draw(0)
    second = draw(1)
    second = second + (second >= first)
    third = draw(2)
    third = third + (third >= torch.minimum(first, second))
    third = third + (third >= torch.maximum(first, second))
    return torch.stack([first, second, third])


def _inside(members: Tensor, image: Image) -> Tensor:
    """Candidates with positions clipped to the image."""
    row = members[..., :1].clamp(0, image.height - 0.5)
    column = members[..., 1:2].clamp(0, image.width - 0.5)
    return torch.cat([row, column, members[..., 2:]], -1)
