"""``python -m scripts.release ADDRESS TAG``: prepare a checkout for the package index.

Links of README.md become addresses at the tag, because the index has no other files, and
pyproject.toml gets the addresses of the project.  The workflow provides the address of its
repository.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from scripts.site.links import EXTERNAL, ROOT, replace_links

URLS = """\
[project.urls]
Source = "{address}"
Issues = "{address}/issues"
Changelog = "{address}/blob/{tag}/CHANGELOG.md"

[project.scripts]
"""


def make_links_absolute(page: Path, address: str, tag: str) -> str:
    """Text of a page of the top folder with the address of each linked file."""

    def to_address(target: str) -> str:
        if EXTERNAL.match(target) or target.startswith("#"):
            return target
        view = "raw" if target.endswith((".png", ".svg")) else "blob"
        return f"{address}/{view}/{tag}/{target}"

    return replace_links(page, to_address)


def main(argv: list[str]) -> None:
    """Change README.md and pyproject.toml.

    Raises:
        SystemExit: the tag is not the version of pyproject.toml.
    """
    address, tag = argv
    project = ROOT / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    version = tomllib.loads(text)["project"]["version"]
    if tag != f"v{version}":
        sys.exit(f"tag {tag} is not the version of pyproject.toml: use v{version}")
    urls = URLS.format(address=address, tag=tag)
    project.write_text(text.replace("[project.scripts]\n", urls), encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(make_links_absolute(readme, address, tag), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
