"""Random numbers from one seed in many named streams, without global generators."""

from __future__ import annotations

from typing import Protocol

import torch

STREAMS = ("data", "init", "batches", "noise", "evaluation", "attack")


class Rng(Protocol):
    """Named random streams of one replicate; no global generator is ever used.

    ``data, init, batches, noise, evaluation, attack`` are ``torch.Generator`` objects with states
    that checkpoints store.  ``at(stream, index)`` is a fresh generator that depends only on (seed,
    replicate, stream, index), so its draws do not depend on earlier draws (batch orders,
    evaluations).
    """

    replicate: int  # index of the replicate, from 0
    data: torch.Generator
    init: torch.Generator
    batches: torch.Generator
    noise: torch.Generator
    evaluation: torch.Generator
    attack: torch.Generator

    def at(self, stream: str, index: int) -> torch.Generator: ...

    # streams of another replicate; repeated calls return the same ones, with their state
    def of(self, replicate: int) -> Rng: ...


def seed_from(generator: torch.Generator) -> int:
    """Draw a seed for code with its own generator: a library, or draws made when a posterior is
    built."""
    return int(torch.randint(2**31, (), generator=generator, device=generator.device))


class NamedStreams:
    """The streams, as attributes."""

    data: torch.Generator
    init: torch.Generator
    batches: torch.Generator
    noise: torch.Generator
    evaluation: torch.Generator
    attack: torch.Generator


class SeparateStreams(NamedStreams):
    """Fresh streams of a run's seed and replicate, all at one index.

    Their draws leave the run's own streams unchanged.
    """

    SPACING = 10**9  # number of indices reserved for each one's own streams

    def __init__(self, rng: Rng, index: int) -> None:
        self.replicate = rng.replicate
        self._rng = rng
        self._index = index
        for stream in STREAMS:
            setattr(self, stream, rng.at(stream, index))

    def at(self, stream: str, index: int) -> torch.Generator:
        """A fresh generator for (stream, index), distinct from all of the run's generators."""
        return self._rng.at(stream, (1 + self._index) * self.SPACING + index)

    def of(self, replicate: int) -> SeparateStreams:
        return SeparateStreams(self._rng.of(replicate), self._index)
