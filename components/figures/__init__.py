"""Figures of problems and posteriors."""
