"""Details of a cell in a report's page: its scores, and its runs with settings, checks, figures and
provenance.

Settings shared by all runs are written once.  Figures of runs are embedded in the page if they are
small in total, and otherwise linked in the records.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runner.record.facts import is_there
from runner.report.run_views import RunView

MAX_EMBEDDED_BYTES = 2_000_000  # largest total size of embedded figures


def details(runs: Sequence[RunView], folder: Path) -> dict[str, Any]:
    """Values for the page's template: ``shared`` settings, ``places`` of runs by record, and links;
    ``folder`` is the folder of the page.
    """
    settings = runs[0].config.items() if runs else ()
    shared = {k: v for k, v in settings if all(run.config.get(k) == v for run in runs)}
    size = sum(picture.stat().st_size for run in runs for picture in run.pictures)

    def link(place: Path | None) -> str:
        """Relative link from the page to a file of a record, so that both can be moved together."""
        if place is None or not is_there(place):
            return ""
        try:
            way = Path(os.path.relpath(place, folder)).as_posix()
        except ValueError:  # another drive
            return place.as_uri()
        return quote(way) + ("/" if place.is_dir() else "")

    return {
        "shared": shared,
        "places": {run.folder: i for i, run in enumerate(runs)},
        "link": link,
        "source": _embed_picture if size <= MAX_EMBEDDED_BYTES else link,
    }


def _embed_picture(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
