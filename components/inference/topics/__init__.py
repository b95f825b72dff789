"""Topics of documents: coordinate ascent, stochastic ascent, and what sums the proportions out."""
