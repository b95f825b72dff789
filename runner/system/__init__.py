"""Commands for the machine, data files and servers."""
