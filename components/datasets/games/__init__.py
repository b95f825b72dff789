"""Games between the decision maker and its opponents."""
