"""Standard normal numbers of the compiled loop: a literal version and their distribution."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from support.runs.configured import F64

from components.maths.compiled import functions
from components.maths.compiled.normals import BLOCK, standard_normals, uniforms
from components.maths.particles.draws import standard_normal

MASK = 2**64 - 1


def split_mix(z):
    """SplitMix64's hash of a counter, in integers of unlimited size."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def test_split_mix_equals_the_published_generator():
    """The first numbers of seed 1234567 in the reference implementation, which increments before
    hashing."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    golden = 0x9E3779B97F4A7C15
    assert [split_mix((1234567 + k * golden) & MASK) for k in (1, 2, 3)] == published


@pytest.mark.parametrize("n", [1, 2, 7, 2 * BLOCK + 5])
def test_normals_are_box_muller_of_the_hashed_counter(n):
    generator = torch.Generator().manual_seed(3)
    seed = int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
    z = standard_normals((n,), generator.manual_seed(3), F64)
    half = (n + 1) // 2
    expected = np.empty(n + 1)
    for i in range(half):
        u, v = (split_mix((seed + (2 * i + k) * 0x9E3779B97F4A7C15) & MASK) >> 11 for k in (0, 1))
        radius = math.sqrt(-2 * math.log((u + 1) / 2**53))
        angle = 2 * math.pi * (v / 2**53 - 0.5)
        expected[i] = radius * math.cos(angle)
        expected[half + i] = radius * math.sin(angle)
    assert np.allclose(z.numpy(), expected[:n], rtol=0, atol=1e-11)


def test_law_is_standard_normal_and_calls_are_independent():
    generator = torch.Generator().manual_seed(0)
    n = 400_000
    z, later = (standard_normals((n,), generator, F64).numpy() for _ in range(2))
    assert stats.kstest(z, "norm").pvalue > 1e-3
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - moment) < 4.5 * math.sqrt(variance / n), power
    halves = z[: n // 2], z[n // 2 :]  # cosines and sines of the same pairs
    for a, b in (
        (z, later),
        (z[1:], z[:-1]),
        (z[2:], z[:-2]),
        halves,
        (halves[0] ** 2, halves[1] ** 2),
    ):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / math.sqrt(len(a))
    assert np.mean(np.abs(z) > 4) == pytest.approx(2 * stats.norm.sf(4), rel=0.6)


def test_uniforms_are_hashed_counters():
    generator = torch.Generator().manual_seed(4)
    seed = int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
    u = uniforms((3, 5), generator.manual_seed(4))
    expected = [
        (split_mix((seed + i * 0x9E3779B97F4A7C15) & MASK) >> 11) / 2**53 for i in range(15)
    ]
    assert u.flatten().tolist() == expected
    assert stats.kstest(uniforms((100_000,), generator).numpy(), "uniform").pvalue > 1e-3


def test_dtypes_share_numbers_and_generators_repeat():
    generator = torch.Generator().manual_seed(5)
    exact = standard_normal((4, 33), generator, torch.zeros(1, dtype=F64))
    rough = standard_normal((4, 33), generator.manual_seed(5), torch.zeros(1, dtype=torch.float32))
    assert exact.shape == (4, 33)
    assert torch.equal(exact.float(), rough)


def test_functions_equal_the_library():
    for v in np.linspace(-math.pi / 4, math.pi / 4, 101):
        assert np.allclose(
            functions.sin_cos_4(v), (math.sin(4 * v), math.cos(4 * v)), rtol=0, atol=1e-12
        )
    for u in np.linspace(-40, 40, 101):
        assert np.allclose(functions.sin_cos(u), (math.sin(u), math.cos(u)), rtol=0, atol=1e-12)
    for value in (2.0**-53, 1e-9, 0.3, 0.9999, 1 - 2**-53, 1.0, 5.0):
        m, e = math.frexp(value)
        assert functions.log_scaled(2 * m, e - 1) == pytest.approx(
            math.log(value), rel=1e-14, abs=0
        )
