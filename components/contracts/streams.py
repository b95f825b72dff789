"""Random numbers: one seed, many named streams, no global generator."""

from __future__ import annotations

from typing import Protocol

import torch

STREAMS = ("data", "init", "batches", "noise", "evaluation", "attack")


class Rng(Protocol):
    """Named random streams of one replicate; no global generator is ever used.

    ``data, init, batches, noise, evaluation, attack`` are ``torch.Generator`` whose states travel in checkpoints.
    ``at(stream, index)`` is a fresh generator that depends on (seed, replicate, stream, index) alone, so what it
    draws does not depend on what was drawn before (batch orders, evaluations)."""

    replicate: int  # which of a run's repetitions, from 0
    data: torch.Generator
    init: torch.Generator
    batches: torch.Generator
    noise: torch.Generator
    evaluation: torch.Generator
    attack: torch.Generator

    def at(self, stream: str, index: int) -> torch.Generator: ...
