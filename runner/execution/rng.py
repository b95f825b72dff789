"""One seed, many named random streams: evaluating more often, or attacking, does not change
training."""

from __future__ import annotations

import hashlib

import torch

from components.contracts.streams import STREAMS


def derive_seed(*parts: object) -> int:
    """A 63-bit seed that depends on every part: SHA-256 of their text, so neighbouring seeds give
    unrelated streams."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Streams:
    """Random streams of one replicate (``components.contracts.streams.Rng``).

    ``data`` and ``init`` always live on the CPU, so that every machine draws the same rows
    and the same initial values; the others live on the device of the tensors.
    """

    data: torch.Generator
    init: torch.Generator
    batches: torch.Generator
    noise: torch.Generator
    evaluation: torch.Generator
    attack: torch.Generator

    def __init__(self, seed: int, replicate: int = 0, device: str | torch.device = "cpu"):
        self.seed = seed
        self.replicate = replicate
        self.device = torch.device(device)
        # streams of other replicates that are computed together with this one
        self.beside: dict[int, Streams] = {}
        for name in STREAMS:
            setattr(self, name, self._generator(name))

    def _generator(self, stream: str, *parts: int) -> torch.Generator:
        generator = torch.Generator(device="cpu" if stream in ("data", "init") else self.device)
        generator.manual_seed(derive_seed(self.seed, self.replicate, stream, *parts))
        return generator

    def at(self, stream: str, index: int) -> torch.Generator:
        """A fresh generator for (seed, replicate, stream, index)."""
        if stream not in STREAMS:
            raise KeyError(f"no stream {stream!r}; streams are {', '.join(STREAMS)}")
        return self._generator(stream, index)

    def of(self, replicate: int) -> Streams:
        """Streams that a replicate has if it is computed separately."""
        if replicate == self.replicate:
            return self
        if replicate not in self.beside:
            self.beside[replicate] = Streams(self.seed, replicate, self.device)
        return self.beside[replicate]

    def state(self) -> dict[str, torch.Tensor]:
        """Generator states, for a checkpoint."""
        states = {name: getattr(self, name).get_state() for name in STREAMS}
        others = {
            f"{r}/{name}": at
            for r, streams in self.beside.items()
            for name, at in streams.state().items()
        }
        return states | others

    def restore(self, state: dict[str, torch.Tensor], step: int = 0) -> bool:
        """The inverse of ``state``.  A generator of another kind of device cannot be gone on with:
        its stream begins anew, from the seed and the step.  Returns whether one did."""
        moved = False
        for name in STREAMS:
            generator: torch.Generator = getattr(self, name)
            if state[name].shape == generator.get_state().shape:
                generator.set_state(state[name])
            else:
                generator.manual_seed(derive_seed(self.seed, self.replicate, name, "moved", step))
                moved = True
        for r in {int(key.partition("/")[0]) for key in state if "/" in key}:
            moved |= self.of(r).restore({name: state[f"{r}/{name}"] for name in STREAMS}, step)
        return moved
