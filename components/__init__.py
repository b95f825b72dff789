"""The science: what is run."""
