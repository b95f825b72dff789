"""Dependencies of the name of a run's data.

A run's identity is its config and the name of its data, and only the data set itself
can say which data it would load now.  A data set without files has its own name;
otherwise the name is the recorded one, as long as no dependency has changed since: the
files, the code that reads them, and whether a download may be tried.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from components import registry
from runner.catalogue.declarations import declaration


def data_state(dataset: str, data_dir: Path, offline: bool) -> str | None:
    """Dependencies of the name of a data set's data besides its config, as one word.

    "" if there are none.  None if unknown: the data set is a plug-in's or reads a user's
    own file, or a download failed, which may succeed the next time.
    """
    file = registry.file("dataset", dataset)
    if file is None or (declared := declaration("dataset", dataset)).facts.get("own_file"):
        return None
    if not declared.names_data:
        return ""
    from components.datasets import files

    if files.downloads_failed():
        return None
    lying = [
        (data.path, str(location), location.stat().st_size, location.stat().st_mtime_ns)
        for data in files.catalogue()
        if (location := files.find(data_dir, data.path))
    ]
    code = [path.read_text(encoding="utf-8") for path in (file, Path(files.__file__))]
    return hashlib.sha256(json.dumps([offline, lying, code]).encode()).hexdigest()[:16]
