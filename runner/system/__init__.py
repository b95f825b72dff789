"""The machine, the data files and the servers."""
