"""Affine maps by oneDNN: values and derivatives equal torch's."""

from itertools import product

import pytest
import torch
from support.runs.configured import generator
from torch.nn import functional as F
from torch.testing import assert_close

from components.maths.compiled import affine as module
from components.maths.compiled.affine import affine

B = 60
D = 40
H = 30


@pytest.fixture(autouse=True)
def _every_size(monkeypatch):
    for name in ("LEAST", "LEAST_WITH_GRADIENT"):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(module, "IS_FASTER", torch.backends.mkldnn.is_available())


def draw(*shape):
    return torch.randn(shape, generator=generator(sum(shape)))


LAYOUTS = {
    "contiguous": draw,
    "transposed": lambda n, m: draw(m, n).T,
    "every other column": lambda n, m: draw(n, 2 * m)[:, ::2],
    "columns of a wider one": lambda n, m: draw(n, m + 3)[:, 1 : m + 1],
    "one row for all": lambda n, m: draw(1, m).expand(n, m),
}


@pytest.mark.parametrize(("of_x", "of_weight"), product(LAYOUTS, LAYOUTS))
def test_matrices_of_any_strides_are_multiplied(of_x, of_weight):
    x = LAYOUTS[of_x](B, D)
    weight = LAYOUTS[of_weight](H, D)
    for bias in (None, draw(H), draw(1).expand(H), draw(2 * H)[::2]):
        exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
        assert_close(affine(x, weight, bias).double(), exact, atol=3e-5, rtol=0)


@pytest.mark.parametrize("shape", [(D,), (1, D), (0, D), (2, 3, B, D)])
def test_inputs_may_have_any_shape(shape):
    x = draw(*shape)
    weight = draw(H, D)
    bias = draw(H)
    assert_close(affine(x, weight, bias), F.linear(x, weight, bias))


def test_non_finite_inputs_propagate():
    x = draw(B, D)
    x[0, 0] = torch.nan
    x[1, 1] = torch.inf
    weight = draw(H, D)
    assert_close(affine(x, weight), F.linear(x, weight), equal_nan=True)


@pytest.mark.parametrize("shape", [(B, D), (2, 3, D)])
def test_first_and_second_derivatives_equal_torch(shape):
    results = []
    for way in (affine, F.linear):
        given = [t.clone().requires_grad_() for t in (draw(*shape), draw(H, D), draw(H))]
        first = torch.autograd.grad(way(*given).sin().sum(), given, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), given)
        results.append([*first, *second])
    assert_close(*results, atol=1e-3, rtol=1e-4)


def test_unneeded_derivative_is_not_computed(monkeypatch):
    x, weight, bias = (t.requires_grad_() for t in (draw(B, D), draw(H, D), draw(H)))
    given = {"x": x, "weight": weight, "bias": bias}
    multiply = module._multiply
    products = []
    monkeypatch.setattr(module, "_multiply", lambda *of: (products.append(of), multiply(*of))[1])
    for names, number in [("x", 1), ("weight", 1), ("bias", 0), ("x weight", 2)]:
        for through in (lambda t: t, torch.square):  # leaves, and tensors computed from them
            total = affine(*map(through, given.values())).square().sum()
            products.clear()
            torch.autograd.grad(total, [given[name] for name in names.split()])
            assert len(products) == number, names
    affine(x, weight, bias).sum().backward(inputs=[x])
    assert weight.grad is None


def test_vmap_and_forward_derivatives_are_supported():
    x = draw(B, D)
    weight = draw(H, D)
    expected = F.linear(x, weight)
    assert_close(torch.func.vmap(lambda row: affine(row, weight))(x), expected)
    slope = torch.func.jvp(lambda x: affine(x, weight), (x,), (x,))[1]
    assert_close(slope, expected)


def test_other_dtypes_use_torch():
    x = draw(B, D).double()
    weight = draw(H, D).double()
    assert torch.equal(affine(x, weight), F.linear(x, weight))


def test_tensor_subclasses_keep_their_rules():
    class Named(torch.Tensor):
        pass

    x = draw(B, D).as_subclass(Named)
    assert isinstance(affine(x, draw(H, D)), Named)


@pytest.mark.parametrize(
    ("capability", "limit", "expected"),
    [
        ("AVX512", None, True),
        ("AVX512", "AVX512_CORE", True),
        ("AVX512", "avx2", False),
        ("AVX2", None, False),
        ("DEFAULT", None, False),
    ],
)
def test_onednn_is_used_where_it_has_wide_loops(monkeypatch, capability, limit, expected):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    if limit is not None:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert module._is_faster() is (expected and torch.backends.mkldnn.is_available())
