"""Mathematics without imports from other parts."""
