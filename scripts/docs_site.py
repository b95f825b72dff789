"""``python -m scripts.docs_site`` (``make docs``): the documents as a site in build/site, without a
look at the network.

The pages of docs/, README, CONTRIBUTING and CHANGELOG are copied with their links turned to each
other, those of the components and the gallery are made (``component_pages``), and MkDocs builds
them, refusing any link that leads nowhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.component_pages import write_components, write_gallery

ROOT = Path(__file__).resolve().parent.parent
SOURCE, SITE = ROOT / "build" / "site_source", ROOT / "build" / "site"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
FILES = (".md", ".png", ".svg", ".csv", ".yml", ".css")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def targets() -> dict[Path, Path]:
    """Where each file of the repository that the site has stands in it."""
    by_source = {ROOT / name: Path(target) for name, target in PAGES.items()}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path.suffix in FILES:
            by_source[path] = path.relative_to(ROOT / "docs")
    return by_source


def turned(text: str, page: Path, known: dict[Path, Path]) -> str:
    """A page whose links lead to where their files stand in the site; to a file that it has not,
    its words alone."""

    def link(match: re.Match[str]) -> str:
        picture, words, to, anchor = match[1], match[2], match[3], match[4] or ""
        if re.match(r"[a-z]+:", to):
            return match[0]
        target = known.get((page.parent / to).resolve())
        if target is None:
            return words
        return f"{picture}[{words}]({os.path.relpath(target, known[page].parent)}{anchor})"

    parts = re.split(r"(^```.*?^```$|^    .*$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if i % 2 else LINK.sub(link, part) for i, part in enumerate(parts))


def assemble() -> None:
    """Fills build/site_source."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages = targets()
    for path, location in pages.items():
        target = SOURCE / location
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(
                turned(path.read_text(encoding="utf-8"), path, pages), encoding="utf-8"
            )
        else:
            shutil.copy2(path, target)
    write_components(SOURCE)
    write_gallery(SOURCE)


def main() -> int:
    """Assembles and builds; MkDocs' exit code."""
    assemble()
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--config-file",
        str(ROOT / "mkdocs.yml"),
    ]
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if not code:
        print(f"written  {SITE.relative_to(ROOT)}/index.html: open it in a browser")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
