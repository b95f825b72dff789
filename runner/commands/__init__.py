"""The command line: sub-commands, completion, the entry point."""
