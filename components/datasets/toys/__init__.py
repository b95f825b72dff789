"""Small simulated problems, each shown in one figure."""
