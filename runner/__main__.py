"""``python -m runner``: the command line."""

from runner.commands.cli import main

main()
