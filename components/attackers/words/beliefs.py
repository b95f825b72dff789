"""Defender's beliefs about an attacker with uncertain knowledge of the defender.

The attacks are random attacks on words (Gallego 3.4.1).  For the defender, the attacker's
probability P^A_z that email z is classified as malicious is a Beta variable with mean r(z), the
defender's own probability; the attacker sends the z with the least P^A_z.
"""

from __future__ import annotations

import torch
from torch import Tensor

BELIEFS = 1 << 22  # random beliefs in memory at a time


def beta_parameters(log_odds: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """(δ_1, δ_2) of the Beta distribution with mean r = δ_1/(δ_1+δ_2) and variance
    δ_1δ_2/[(δ_1+δ_2)²(δ_1+δ_2+1)] = share · v(r).

    v(r) = min{r²(1−r)/(1+r), r(1−r)²/(2−r)} is the largest variance for which the density has no
    pole at 0 or 1 (δ_1 ≥ 1 and δ_2 ≥ 1).  r is given by its log odds, because 1 − r would be
    rounded off for almost certain emails.

    Source: Gallego (2021), section 3.4.1; Naveiro et al. (2019)."""
    small = torch.sigmoid(-log_odds.abs())  # min(r, 1 − r)
    first = (1 + small) / share - small  # of the smaller of r and 1 − r
    second = first * log_odds.abs().exp()
    low = log_odds <= 0
    return torch.where(low, first, second), torch.where(low, second, first)


def random_beliefs(log_odds: Tensor, share: float, n: int, generator: torch.Generator) -> Tensor:
    """n draws of the log odds of P^A ~ Beta(δ_1, δ_2) for log odds [...] of its mean, [n, ...].

    For two Gamma variables, G_1/(G_1 + G_2) is a Beta variable with log odds log G_1 − log G_2."""
    if share == 0:
        return log_odds.expand(n, *log_odds.shape)
    first, second = beta_parameters(log_odds, share)
    # For δ ≥ 1 Gamma variates do not underflow.
    g1, g2 = (
        torch._standard_gamma(d.expand(n, *d.shape), generator=generator) for d in (first, second)
    )
    return g1.log() - g2.log()


def attack_frequencies(
    log_odds: Tensor, share: float, n: int, generator: torch.Generator
) -> Tensor:
    """Attack frequencies p̂(z|x) = #{k : X'_k = z}/K [B, M].

    X'_k = argmin_z P^{A,k}_z; z runs over the candidates [B, M] of each email.  Impossible
    candidates have log odds ∞.

    Source: Gallego (2021), eqs (3.11) and (3.12).
    """
    is_impossible = log_odds.isinf()
    beliefs = random_beliefs(
        log_odds.masked_fill(is_impossible, 0.0), share, n, generator
    )  # [n, B, M]
    choices = beliefs.masked_fill(is_impossible, torch.inf).argmin(-1)  # [n, B]
    counts = torch.zeros_like(log_odds)
    counts.scatter_add_(1, choices.T, torch.ones_like(choices.T, dtype=log_odds.dtype))
    return counts / n


def estimate_frequency(
    which: Tensor, log_odds: Tensor, share: float, n: int, generator: torch.Generator
) -> Tensor:
    """p̂ [B] of one candidate per email, with index ``which`` [B] in the log odds [B, M].

    A draw is a hit if P^A of the candidate is less than all others.  The others are compared in
    order of their probability to be lower, in batches of 1, 2, 4, …, only while the candidate is
    the lowest.  The distribution is that of ``attack_frequencies``, with fewer than n M draws.

    Source: Gallego (2021), eqs (3.11) and (3.12).
    """
    B = log_odds.shape[0]
    if share == 0:  # draws equal the mean
        return (log_odds.argmin(1) == which).to(log_odds.dtype)
    # the others [B, M − 1]
    order = log_odds.scatter(1, which[:, None], -torch.inf).sort(1).values[:, 1:]
    candidate_odds = random_beliefs(log_odds.gather(1, which[:, None]), share, n, generator)[
        :, :, 0
    ]  # [n, B]
    mail = torch.arange(B, device=which.device).repeat(n)
    least = candidate_odds.flatten()
    begin = 0
    while begin < order.shape[1] and len(mail):
        odds = order[mail, begin : 2 * begin + 1]  # [S, 1 + begin]
        is_impossible = odds.isinf()
        beliefs = random_beliefs(odds.masked_fill(is_impossible, 0.0), share, 1, generator)[
            0
        ].masked_fill(is_impossible, torch.inf)
        pending = (least < beliefs.amin(1)).nonzero()[:, 0]
        mail = mail[pending]
        least = least[pending]
        begin = 2 * begin + 1
    return torch.bincount(mail, minlength=B).to(log_odds.dtype) / n


def required_draws(frequency: Tensor, pilot: int, precision: float) -> Tensor:
    """Draws K of (3.12) for a standard error (var/K)^½ of at most ``precision``, [B] long.

    var = p(1 − p) is estimated by a pilot of K_0 draws, p = (hits + 1)/(K_0 + 2) so that a pilot
    without a hit does not imply an error of 0.  K is K_0 2^j with the least j ≥ 0.

    Args:
        frequency: share of hits in the pilot [B].
        pilot: K_0.
        precision: largest standard error.

    Source: Gallego (2021), section 3.4.1 (sample sizes).
    """
    p = (frequency * pilot + 1) / (pilot + 2)
    least = p * (1 - p) / precision**2
    doublings = (least / pilot).log2().ceil().clamp_min(0)
    return pilot * 2 ** doublings.long()


def frequency_within(
    which: Tensor,
    log_odds: Tensor,
    share: float,
    pilot: int,
    precision: float,
    generator: torch.Generator,
) -> Tensor:
    """p̂ [B] by ``estimate_frequency``, with the number of draws for the precision chosen by a
    pilot.

    The pilot's draws are not used in the estimate, so the choice of K does not bias it.
    """
    first = estimate_frequency(which, log_odds, share, pilot, generator)
    draws = required_draws(first, pilot, precision)
    out = torch.empty_like(first)
    for n in draws.unique().tolist():
        rows = (draws == n).nonzero()[:, 0]
        for part in rows.split(max(1, BELIEFS // (n * log_odds.shape[1]))):
            out[part] = estimate_frequency(which[part], log_odds[part], share, n, generator)
    return out
