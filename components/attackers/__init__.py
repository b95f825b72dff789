"""Attackers by what they act on: inputs (evasion, words), observations (contamination), a game
(opponents)."""
