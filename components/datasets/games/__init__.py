"""Games between the decision maker and her opponents."""
