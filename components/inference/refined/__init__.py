"""Posteriors as samplers: draws of a tractable guide, refined by a few steps of Markov chain Monte
Carlo."""
