"""Building blocks of topic inference: document factors, sweeps over words, and bounds."""
