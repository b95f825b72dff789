"""Posteriors over the weights of networks that are easily drawn from and have no density."""
