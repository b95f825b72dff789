"""Uniform numbers of PyTorch's streams by a compiled loop, which passes over those that nobody
looks at.

Where few replicates of an episode still play, a stream must stand behind the numbers of them all:
most go unseen."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.games.fast.arithmetic import loop
from components.maths.compiled.loops import Array

N = 624
AHEAD = 397  # of the Mersenne twister, MT19937
# where its words begin in a generator's state, 64 bits each; before them the number of words left,
# and the next
FIRST_STATE_WORD = 3
SIZE = 5056  # bytes of that state


def mixed(this: np.uint64, then: np.uint64, far: np.uint64) -> np.uint64:
    bits = (this & np.uint64(0x80000000)) | (then & np.uint64(0x7FFFFFFF))
    return far ^ (bits >> np.uint64(1)) ^ ((then & np.uint64(1)) * np.uint64(0x9908B0DF))


def advance_twister(words: Array) -> None:
    """The next 624 words."""
    for i in range(FIRST_STATE_WORD, FIRST_STATE_WORD + N - AHEAD):
        words[i] = mixed(words[i], words[i + 1], words[i + AHEAD])
    for i in range(FIRST_STATE_WORD + N - AHEAD, FIRST_STATE_WORD + N - 1):
        words[i] = mixed(words[i], words[i + 1], words[i + AHEAD - N])
    last = FIRST_STATE_WORD + N - 1
    words[last] = mixed(words[last], words[FIRST_STATE_WORD], words[FIRST_STATE_WORD + AHEAD - 1])


def temper(y: np.uint64) -> np.uint64:
    y = y ^ (y >> np.uint64(11))
    y = y ^ ((y << np.uint64(7)) & np.uint64(0x9D2C5680))
    y = y ^ ((y << np.uint64(15)) & np.uint64(0xEFC60000))
    return y ^ (y >> np.uint64(18))


def draw(words: Array, parts: int, per: int, order: Array, left: Array, out: Array) -> None:
    """Uniforms of the first ``left`` [1] replicates of ``order``, which is increasing.

    They are taken from ``parts`` × R × ``per`` consecutive numbers.

    Twin: ``Tensor.uniform_`` in float64: 53 bits of two words, the first word being the
    high one.
    """
    replicates = len(order)
    position = N + 1 - np.int64(words[1] & np.uint64(0xFFFFFFFF))  # the place of the next word
    begin = 0  # words of the blocks behind, from where this draw began
    for part in range(parts):
        for place in range(left[0]):
            for c in range(per):
                number = (part * replicates + order[place]) * per + c
                bits = np.uint64(0)
                for half in range(2):
                    word = position + 2 * number + half - begin
                    while word >= N:
                        advance_twister(words)
                        begin += N
                        word -= N
                    bits = (bits << np.uint64(32)) | temper(words[FIRST_STATE_WORD + word])
                out[number] = (bits & np.uint64(0x1FFFFFFFFFFFFF)) * (1.0 / 9007199254740992.0)
    end = position + 2 * len(out) - begin
    while end > N:
        advance_twister(words)
        end -= N
    words[1] = (words[1] & np.uint64(0xFFFFFFFF00000000)) | np.uint64(N + 1 - end)
    words[2] = np.uint64(end)


parts = (mixed, advance_twister, temper, draw)


@cache
def drawing() -> Callable[..., Any]:
    """Compiled loop of ``draw`` on its own."""
    return loop(draw, parts[:-1])


class Stream:
    """A stream for an episode; where it is ``sparse``, in full only once the episode is over
    (``close``)."""

    def __init__(self, generator: torch.Generator, sparse: bool):
        self.generator = generator
        self.state = generator.get_state() if sparse else None
        self.words: Array = (
            np.empty(0, np.uint64) if self.state is None else self.state.numpy().view(np.uint64)
        )

    def fill(self, room: Tensor, parts: int, order: Array, left: Array) -> Array:
        """The next numbers: all of them, or as ``drawing``."""
        out: Array = room.numpy()
        if self.state is None:
            room.uniform_(generator=self.generator)
        else:
            drawing()(self.words, parts, len(out) // (parts * len(order)), order, left, out)
        return out

    def close(self) -> None:
        if self.state is not None:
            self.generator.set_state(self.state)


@cache
def streams_known() -> bool:
    """True if this PyTorch has these streams: the same numbers and generator states."""
    generator = torch.Generator().manual_seed(5)
    order = np.arange(500)
    room = torch.empty(1500, dtype=torch.float64)
    if len(generator.get_state()) != SIZE:
        return False
    for _ in range(3):
        stream = Stream(generator, True)
        stream.fill(room, 1, order, np.array([500]))
        expected = torch.empty_like(room).uniform_(generator=generator)
        assert stream.state is not None
        if not (torch.equal(room, expected) and torch.equal(stream.state, generator.get_state())):
            return False
    return True
