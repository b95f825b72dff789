"""Attackers of inputs (evasion, words), observations (contamination), and games (opponents)."""
