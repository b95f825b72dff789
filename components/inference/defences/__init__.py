"""Defences: inference methods that call or anticipate an attacker."""
