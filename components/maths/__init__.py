"""Mathematics that imports no other part."""
