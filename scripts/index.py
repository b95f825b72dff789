"""``make index``: writes ``components/index.json``, the declarations of all components.

Every component is imported once; `runner list`, `show`, completion and the validation of keys read
the index, and need no torch.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from components import registry
from runner.catalogue.class_description import describe_class
from runner.catalogue.declarations import CONFIG, INDEX
from runner.compose.settings import Settings


def index_text() -> str:
    """The index as JSON, a line for each component."""
    classes = {
        f"{role}/{name}": registry.get(role, name)
        for role in registry.ROLES
        for name in registry.names(role)
        if registry.file(role, name)
    }
    lines = [
        f"{json.dumps(key)}: {json.dumps(asdict(describe_class(cls)), ensure_ascii=False)}"
        for key, cls in {CONFIG: Settings, **classes}.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    INDEX.write_text(index_text(), encoding="utf-8")
