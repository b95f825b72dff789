"""AutoAttack."""

from __future__ import annotations

from typing import ClassVar

from components.attackers.evasion.worst_case import WorstCase
from components.contracts.attackers import Knowledge
from components.registry import register


@register("attacker", "autoattack")
class AutoAttack(WorstCase):
    """AutoAttack: the point-wise worst case over its four standard attacks, which have no step size to choose.

    APGD on the cross entropy, APGD on the targeted difference-of-logits ratio and the targeted FAB, towards the nine most
    likely wrong classes each, and the square attack.  A row counts as robust only where it withstands all four.  The
    standard goes on to the next attack with the rows that withstood those before; here each has all rows, and a curve of
    its own.  Its names stand for ``members``, whose budgets its YAML holds.  The square attack is bounded in L∞ here, so
    that of L2 and L1 three are left: attacker.members=[...] without it.  x [B, D], y [B, T].

    Raises:
        Misfit: the victim has no gradient in its input.

    Source: Croce and Hein (2020), section 5."""

    follows_gradient: ClassVar[bool] = True
    knowledge: ClassVar[Knowledge] = "white box"
