"""Defences: inference that calls an attacker, or expects one."""
