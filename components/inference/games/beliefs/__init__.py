"""Beliefs about counted opponents if one count per state is too few or too many."""
