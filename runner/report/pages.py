"""Pages of reports: HTML that opens offline, with interactive figures, and Markdown."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runner.disk.atomic import write_text
from runner.record.checks import verdict
from runner.record.code import describe_commit
from runner.report.compared_record import describe_machine
from runner.report.wording import describe_ours, describe_published, worse_side
from runner.terminal.printer import number
from runner.terminal.templates import environment

Context = dict[str, Any]  # of a template
TEMPLATES = Path(__file__).parent  # template.html.j2, template.md.j2
SCRIPT = TEMPLATES / "page.js"


def as_json(value: Any) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def _plotly() -> str:
    """plotly.js as compressed text, which a page unpacks (1.9 instead of 4.8 MB)."""
    spec = find_spec("plotly")  # not imported, which would take a third of a second
    if spec is None or spec.origin is None:
        return ""
    library = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return base64.b64encode(gzip.compress(library.read_bytes(), 9, mtime=0)).decode()


def embed_figures(figures: list[Context]) -> Context:
    """Values for the template; a page without interactive figures does not include the library."""
    charts = [figure["chart"] for figure in figures]
    return {
        "plotly": _plotly() if any(charts) else "",
        "charts": as_json(charts),
        "script": SCRIPT.read_text(encoding="utf-8"),
    }


def markdown(text: object) -> str:
    """Escape special characters of Markdown and HTML in a text of a study or a record."""
    special = r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w))"  # an underscore inside a word has no meaning
    return re.sub(special, r"\\\1", " ".join(str(text).split()))


def render(template: Path, context: Context) -> str:
    """Render a template, which may extend one of the templates next to this module."""
    templates = environment(template.parent, TEMPLATES)
    templates.filters |= {
        "md": markdown,
        "signed": lambda value, digits: f"{value:+.{digits}f}".replace("-", "−"),
        "ours": describe_ours,
        "printed": describe_published,
        "worse_side": worse_side,
        "commit": describe_commit,
        "machine": describe_machine,
        "verdict": verdict,
        "number": number,
    }
    templates.tests["finite"] = math.isfinite
    return templates.get_template(template.name).render(context)


def write_page(path: Path, context: Context, template: Path | None = None) -> Path:
    """Write a page from a template, by default the one for the suffix of the file."""
    write_text(path, render(template or TEMPLATES / f"template{path.suffix}.j2", context))
    return path
