"""The variance reduction of VarGrad relative to Reinforce: Boustati (2021), Proposition 5.4.2, by
enumeration."""

import pytest
import torch
from support.targets.bernoulli_by_hand import SmallBernoulli, exact_elbo, log_ratio, rows
from test_identities import EXACT, scores
from torch.testing import assert_close


@pytest.fixture
def module():
    return SmallBernoulli(seed=3)


class Moments:
    """A = f less a constant and B = ∂_i log q of every state, and their means under q; B [64,
    P]."""

    def __init__(self, module, shift=0.0):
        log_q, f = log_ratio(module, rows())
        self.q = log_q.exp().detach()
        self.B = scores(module, log_q[:, 0])
        self.A = f.detach() - shift

    def mean(self, v):
        return (self.q * v).sum(0)

    def var(self, v):
        return self.mean(v.square()) - self.mean(v).square()

    def gain(self, S):
        """(C.19a) and (C.19b) as published: Var Reinforce − Var VarGrad [P]."""
        A = self.A
        B = self.B
        mean = self.mean
        a = A - mean(A)
        b = B - mean(B)
        first = self.var(A * B) / S + (S - 2) / (S * (S - 1)) * mean(a * b).square()
        return first - self.var(A) * self.var(B) / (S * (S - 1)) - mean(a.square() * b.square()) / S

    def enumerated_gain(self):
        """The same difference at S = 2, from all 64² pairs of states: (5.2) and (5.10)."""
        A = self.A[:, 0]
        B = self.B
        S = 2
        first, second = torch.cartesian_prod(torch.arange(64), torch.arange(64)).T
        weight = (self.q[first] * self.q[second]).squeeze(1)
        reinforce = (A[first, None] * B[first] + A[second, None] * B[second]) / S
        f_bar = (A[first] + A[second]) / S
        centred = (A[first] - f_bar)[:, None] * B[first] + (A[second] - f_bar)[:, None] * B[second]
        variances = []
        for g in (reinforce, centred / (S - 1)):
            mean = (weight[:, None] * g).sum(0)
            variances.append((weight[:, None] * (g - mean).square()).sum(0))
        return variances[0] - variances[1]


def test_vargrad_gain_matches_proposition(module):
    """Proposition 5.4.2 and (C.19a-h): (a, b) is exact, (g) its leading term, and (5.15) gives the
    sign of (g)."""
    m = Moments(module)
    assert_close(m.gain(2), m.enumerated_gain(), **EXACT)
    E = m.mean(m.A)
    B2 = m.mean(m.B.square())
    delta = (m.mean(m.A * m.B.square()) - E * B2) / B2  # Cov(A, B²) / Var B, (5.14)
    leading = E * B2 * (2 * delta + E)
    for S in (10**3, 10**6):
        assert_close(S * m.gain(S), leading, rtol=0, atol=20 / S * float(leading.abs().max()))
    elbo = exact_elbo(module, rows()).detach()
    assert_close(E.squeeze(), -elbo, **EXACT)
    assumed = delta / elbo < 0.5  # (5.15)
    assert assumed.any()
    assert torch.equal(assumed, E * delta + 0.5 * E.square() > 0)  # (C.19h)
    assert (m.gain(10**6)[assumed] > 0).all()
    assert (m.gain(10**6)[~assumed] < 0).all()


def test_vargrad_loses_at_zero_bound(module):
    """A constant in log p makes E A = 0: (5.15) then makes no statement, and (C.19a-b) is below
    0."""
    plain = Moments(module)
    m = Moments(module, shift=float(plain.mean(plain.A)))
    assert m.mean(m.A).abs() < 1e-12
    assert_close(m.gain(2), m.enumerated_gain(), **EXACT)
    for S in (2, 4, 50):
        loss = (m.mean(m.A * m.B).square() + m.var(m.A) * m.var(m.B)) / (S * (S - 1))
        assert_close(m.gain(S), -loss, **EXACT)
        assert (loss > 0).all()
