"""AutoAttack."""

from __future__ import annotations

from components.attackers.evasion.worst_case import WorstCase
from components.registry import register


@register("attacker", "autoattack")
class AutoAttack(WorstCase):
    """AutoAttack: the point-wise worst case over four standard attacks without step sizes.

    The attacks are APGD on the cross entropy, APGD on the targeted difference-of-logits
    ratio and the targeted FAB, towards the nine most likely wrong classes each, and the
    square attack.  A row counts as robust only if it withstands all four.  The standard passes only
    the rows that withstood previous attacks to the next; here each attack processes all rows and
    has its own curve.  The attacks are the ``members``, with budgets in the YAML.  The square
    attack is bounded in L∞, so for L2 and L1 use the other three: attacker.members=[...] without
    it.  x [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Croce and Hein (2020), section 5.
    """

    follows_gradient = True
    knowledge = "white box"
