"""Figures of rewards and policies."""
