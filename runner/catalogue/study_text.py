"""Text of ``runner show study/<name>``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from runner.terminal.streams import is_terminal

FACTS = """# study {name}
# run   runner study {name}
# file  {file}
# keys  runner/study/definition.py explains every key

"""


def print_study(name: str, path: Path) -> None:
    """Print the YAML of a study below a few facts in comments."""
    text = FACTS.format(name=name, file=os.path.relpath(path)) + path.read_text(encoding="utf-8")
    if not is_terminal(sys.stdout):
        print(text, end="")
        return
    from rich.syntax import Syntax

    from runner.terminal.printer import out

    out.print(Syntax(text, "yaml", theme="ansi_dark", background_color="default", word_wrap=True))
