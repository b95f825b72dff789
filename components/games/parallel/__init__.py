"""Parallel environments of users, written for PettingZoo, as games."""
