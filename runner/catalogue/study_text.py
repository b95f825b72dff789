"""Text of ``runner show study/<name>``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

from runner.disk.yaml_comments import Loader
from runner.terminal.streams import is_terminal

PIPE_WIDTH = 100
KEYS = "docs/study_keys.md explains every key"


class _Unshared(yaml.SafeDumper):
    """Writes a value that occurs twice twice, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def print_study(name: str, path: Path) -> None:
    """A study as YAML with a line for each key; comments name the file, which has its own."""
    facts = (
        ("study", name),
        ("run", f"runner study {name}"),
        ("file", os.path.relpath(path)),
        ("keys", KEYS),
    )
    # a pipe has the width of COLUMNS, if that is set
    width = shutil.get_terminal_size((PIPE_WIDTH, 0)).columns
    text = "".join(f"# {key:<5} {value}\n" for key, value in facts)
    content = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)
    text += "\n" + yaml.dump(
        content,
        Dumper=_Unshared,
        default_flow_style=None,
        width=width,
        sort_keys=False,
        allow_unicode=True,
    )
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
