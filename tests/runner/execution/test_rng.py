"""Named streams: independent of each other, reproducible, restorable."""

import pytest
import torch

from components.contracts.streams import STREAMS
from runner.execution.rng import Streams, derive_seed


def test_streams_are_independent():
    a = Streams(3)
    b = Streams(3)
    torch.randn(100, generator=a.evaluation)
    torch.randn(100, generator=a.attack)
    assert torch.equal(torch.randn(5, generator=a.noise), torch.randn(5, generator=b.noise))


def test_seeds_replicates_and_names_give_different_draws():
    firsts = {
        torch.randn(1, generator=getattr(Streams(s, r), n)).item()
        for s in (0, 1)
        for r in (0, 1)
        for n in STREAMS
    }
    assert len(firsts) == 2 * 2 * len(STREAMS)


def test_stream_at_depends_only_on_its_index():
    a = Streams(1)
    first = torch.randn(3, generator=a.at("batches", 4))
    torch.randn(3, generator=a.at("batches", 5))
    assert torch.equal(first, torch.randn(3, generator=a.at("batches", 4)))
    with pytest.raises(KeyError, match="unknown stream 'nise'"):
        a.at("nise", 0)


def test_separate_streams_of_a_replicate_are_restored():
    a = Streams(1)
    b = Streams(1)
    assert a.of(0) is a
    torch.randn(3, generator=a.of(2).noise)
    alone = Streams(1, 2)
    torch.randn(3, generator=alone.noise)
    assert set(a.state()) == {*STREAMS, *(f"2/{name}" for name in STREAMS)}
    b.restore(a.state())
    drawn = [torch.randn(3, generator=streams.noise) for streams in (a.of(2), b.of(2), alone)]
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])


def test_restored_streams_continue():
    a = Streams(1)
    b = Streams(2)
    torch.randn(3, generator=a.noise)
    b.restore(a.state())
    assert torch.equal(torch.randn(3, generator=a.noise), torch.randn(3, generator=b.noise))


def test_derive_is_63_bit_and_stable():
    assert derive_seed(0, 0, "noise") == derive_seed("0/0/noise")
    assert 0 <= derive_seed("x") < 2**63
