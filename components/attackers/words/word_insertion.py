"""Insertion of good words."""

from __future__ import annotations

from components.attackers.words.search import WordSearch
from components.registry import register


@register("attacker", "word_insertion")
class WordInsertion(WordSearch):
    """Good-word insertion: adds the words that make a spam email look most innocent.

    x' = argmin_{z ∈ Z(x)} p_C(y_1|z), Z(x) all emails with the words of x and at most ε more: the
    classifier is known to the attacker, which removes the uncertainty in (3.11).  All sets of at
    most ``exact`` words are evaluated, further words are added greedily.  Emails of class 0 stay
    unchanged (integrity violation).  x [B, D] in {0, 1}, y [B, 1], ε = 0, 1, 2, … changed words.

    Source: Gallego (2021), eq. (3.11) and section 3.6.1.
    """

    direction = "insertion"
