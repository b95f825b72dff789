"""Block products and inverses compared with unblocked ones."""

import pytest
import torch
from support.runs.configured import F64, draw_normal
from torch.testing import assert_close

from components.maths.cholesky import (
    HALF_OF_L_U,
    HALF_OF_X_L,
    HALF_OF_X_Y,
    L_L,
    L_X,
    U_L,
    U_X,
    block_product,
    inverse_of_lower,
    is_cut,
    symmetric_product,
)

SIZES = [5, 64, 71, 100]  # the first is not divided into blocks


def normal(*shape):
    return draw_normal(*shape, seed=1)


def lower(n):
    return normal(3, n, n).tril()


@pytest.mark.parametrize("n", SIZES)
def test_products_by_blocks_equal_full_products(n):
    L = lower(n)
    X = normal(3, n, n)
    wide = normal(3, n, n + 9)
    assert is_cut(L) == (n >= 64)
    assert_close(block_product(L, wide, L_X), L @ wide)
    assert_close(block_product(L.mT, wide, U_X), L.mT @ wide)
    assert_close(block_product(L.mT, L, U_L), L.mT @ L)
    # unwritten entries are arbitrary
    assert_close(block_product(L, L, L_L).tril(), L @ L)
    assert_close(block_product(X, X, HALF_OF_X_Y).tril(), (X @ X).tril())
    assert_close(block_product(X, L, HALF_OF_X_L).tril(), (X @ L).tril())


@pytest.mark.parametrize("n", SIZES)
def test_unneeded_blocks_are_not_read(n):
    """NaN in the zero blocks above the diagonals of the factors does not change the result."""
    L = lower(n)
    spoilt = L.clone()
    half = n // 2 // 8 * 8
    if is_cut(L):
        spoilt[:, :half, half:] = torch.nan
    assert_close(block_product(L.mT, spoilt, U_L), L.mT @ L)
    assert_close(block_product(spoilt, L, L_X), L @ L)


@pytest.mark.parametrize("n", SIZES)
def test_symmetric_products_equal_full_products(n):
    L = lower(n)
    X = normal(3, n, n + 5)
    weight = normal(3, 1, n + 5)
    assert_close(symmetric_product(L, L.mT, HALF_OF_L_U), L @ L.mT)
    assert_close(symmetric_product(X * weight, X.mT), (X * weight) @ X.mT)


@pytest.mark.parametrize("n", SIZES)
def test_inverse_by_blocks_equals_the_inverse(n):
    L = lower(n) / n**0.5 + 2 * torch.eye(n, dtype=F64)
    inverse = inverse_of_lower(L)
    assert_close(inverse @ L, torch.eye(n, dtype=F64).expand_as(L))
    assert not inverse.triu(1).any()
