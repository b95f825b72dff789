"""All runs of a table or figure."""
