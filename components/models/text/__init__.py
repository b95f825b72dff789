"""Networks for texts as rows of tokens."""
