"""A fitted model as one file: written from a record, read and asked without its data."""
