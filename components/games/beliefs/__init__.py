"""Beliefs of an agent about its opponents."""
