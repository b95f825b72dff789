"""Small simulated problems, drawn whole in one figure."""
