"""Mathematics of series with hidden states summed out."""
