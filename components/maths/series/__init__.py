"""Mathematics of series whose hidden states are summed out."""
