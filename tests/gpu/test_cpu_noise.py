"""The random numbers of the CPU on another device."""

import torch
from gpu.cpu_noise import CpuGenerator, CpuNoise, CpuStreams


def test_cpu_noise_is_equal_on_any_device():
    """On ``meta``, without data; the CPU's generators have the same state afterwards."""
    streams = CpuStreams(0, 0, "meta")
    two = CpuStreams(0, 0, "cpu")

    def draw(rng, device):
        x = torch.zeros(2, 3, device=device)
        return [
            torch.randn(3, generator=rng.noise, device=device),
            x.normal_(generator=rng.noise),
            torch.bernoulli(x.sigmoid(), generator=rng.noise),
            torch.randperm(5, generator=rng.batches, device=device),
            torch.rand(2, generator=rng.at("attack", 3), device=device),
            torch.rand(2, generator=CpuGenerator(x.device).manual_seed(0), device=device),
        ]

    with CpuNoise():
        on_meta = draw(streams, "meta")
        on_cpu = draw(two, "cpu")
    assert [(t.shape, t.dtype) for t in on_meta] == [(t.shape, t.dtype) for t in on_cpu]
    assert {t.device.type for t in on_meta} == {"meta"}
    for name, state in streams.state().items():
        assert torch.equal(state, two.state()[name]), name
