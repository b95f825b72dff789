"""Named random streams derived from one seed, so that evaluations and attacks do not change
training."""

from __future__ import annotations

import hashlib

import torch

from components.contracts.streams import STREAMS, NamedStreams


def derive_seed(*parts: object) -> int:
    """63-bit seed from the SHA-256 of all parts, so that neighbouring seeds give unrelated streams."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Streams(NamedStreams):
    """Random streams of one replicate (``components.contracts.streams.Rng``).

    ``data`` and ``init`` are always on the CPU, so that all machines draw the same rows and initial
    values; the other streams are on the device of the tensors.
    """

    def __init__(self, seed: int, replicate: int = 0, device: str | torch.device = "cpu"):
        self.seed = seed
        self.replicate = replicate
        self.device = torch.device(device)
        # streams of the other replicates computed together with this one
        self.by_replicate: dict[int, Streams] = {}
        for name in STREAMS:
            setattr(self, name, self._generator(name))

    def _generator(self, stream: str, *parts: int) -> torch.Generator:
        generator = torch.Generator(device="cpu" if stream in ("data", "init") else self.device)
        generator.manual_seed(derive_seed(self.seed, self.replicate, stream, *parts))
        return generator

    def at(self, stream: str, index: int) -> torch.Generator:
        """New generator for (seed, replicate, stream, index)."""
        if stream not in STREAMS:
            raise KeyError(f"unknown stream {stream!r}; streams are {', '.join(STREAMS)}")
        return self._generator(stream, index)

    def of(self, replicate: int) -> Streams:
        """Streams of a replicate, as if it were computed separately."""
        if replicate == self.replicate:
            return self
        if replicate not in self.by_replicate:
            self.by_replicate[replicate] = Streams(self.seed, replicate, self.device)
        return self.by_replicate[replicate]

    def state(self) -> dict[str, torch.Tensor]:
        """Generator states, for a checkpoint."""
        states = {name: getattr(self, name).get_state() for name in STREAMS}
        others = {
            f"{r}/{name}": generator_state
            for r, streams in self.by_replicate.items()
            for name, generator_state in streams.state().items()
        }
        return states | others

    def restore(self, state: dict[str, torch.Tensor], step: int = 0) -> bool:
        """Inverse of ``state``.  A stream saved on another type of device restarts from the seed and
        the step; returns True if one did."""
        was_moved = False
        for name in STREAMS:
            generator: torch.Generator = getattr(self, name)
            if state[name].shape == generator.get_state().shape:
                generator.set_state(state[name])
            else:
                generator.manual_seed(derive_seed(self.seed, self.replicate, name, "moved", step))
                was_moved = True
        for r in {int(key.partition("/")[0]) for key in state if "/" in key}:
            was_moved |= self.of(r).restore({name: state[f"{r}/{name}"] for name in STREAMS}, step)
        return was_moved
