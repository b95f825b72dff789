"""Studies: all runs of a table or figure."""
