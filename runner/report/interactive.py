"""Interactive parts of a report's page, with no network.

These are plotly.js, packed, once; the charts; and the details that cells open.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "page.js"


def as_json(value: Any) -> str:
    """JSON that is safe inside a script element, with any words in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def _plotly() -> str:
    """plotly.js as packed text; a page unpacks it (4.8 MB are 1.9)."""
    import importlib.util

    spec = importlib.util.find_spec("plotly")  # its Python would take a third of a second to import
    if spec is None or spec.origin is None:
        return ""
    library = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return base64.b64encode(gzip.compress(library.read_bytes(), 9, mtime=0)).decode()


def embed_figures(figures: list[dict[str, Any]], details: dict[str, Any]) -> dict[str, Any]:
    """For the template; where no figure has an interactive form the page goes without the
    library."""
    charts = [figure["chart"] for figure in figures]
    return {
        "plotly": _plotly() if any(charts) else "",
        "charts": as_json(charts),
        "details": as_json(details),
        "script": SCRIPT.read_text(encoding="utf-8"),
    }
