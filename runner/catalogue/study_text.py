"""Text of ``runner show study/<name>``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from runner.catalogue.block_yaml import to_block_style
from runner.terminal.streams import is_terminal

PIPE_WIDTH = 100
KEYS = "docs/study_keys.md explains every key"


def print_study(name: str, path: Path) -> None:
    """A study as YAML in block style, with its comments; what precedes it is a comment too."""
    facts = (
        ("study", name),
        ("run", f"runner study {name}"),
        ("file", os.path.relpath(path)),
        ("keys", KEYS),
    )
    # a pipe has the width of COLUMNS, if that is set
    width = shutil.get_terminal_size((PIPE_WIDTH, 0)).columns
    text = "".join(f"# {key:<5} {value}\n" for key, value in facts)
    text += "\n" + to_block_style(path.read_text(encoding="utf-8"), width)
    if not is_terminal(sys.stdout):
        print(text, end="")
        return
    from pygments.token import Comment, Name
    from rich.style import Style
    from rich.syntax import ANSISyntaxTheme, Syntax

    from runner.terminal.printer import out

    theme = ANSISyntaxTheme({Comment: Style(dim=True), Name.Tag: Style(bold=True)})
    syntax = Syntax("", "yaml", theme=theme, background_color="default")
    out.print(syntax.highlight(text), end="", soft_wrap=True)
