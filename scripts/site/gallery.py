"""Gallery: a figure of each experiment with its caption and the command that draws it."""

from __future__ import annotations

import re

from runner.catalogue.list_and_show import options, rows
from scripts.pages import render
from scripts.results_figures import about, of_experiment
from scripts.site.docstrings import inline
from scripts.site.families import families, family_title
from scripts.site.links import DOCS

IMAGE = re.compile(r"!\[([^\]]*)\]\((?:\.\./)?([\w.-]+\.png)\)")


def read_captions() -> dict[str, str]:
    """Captions of figures of the results by file name, from the pages of studies."""
    captions: dict[str, str] = {}
    for page in sorted((DOCS / "results").rglob("*.md")):
        for caption, file in IMAGE.findall(page.read_text(encoding="utf-8")):
            captions[file] = max(captions.get(file, ""), caption, key=len)
    return captions


def _family(experiment: str) -> str:
    """Family of the inference method of an experiment."""
    chosen = next((name for role, name in sorted(about(experiment)[1]) if role == "inference"), "")
    for folder, entries in families("inference").items():
        if any(entry.name == chosen for entry in entries):
            return family_title(folder)
    return "Others"


def gallery_page() -> str:
    """Page with figures by family of inference methods, and names of experiments without a figure."""
    sentences = {name: inline(line) for name, line, _ in rows("experiment")}
    captions = read_captions()
    studies = options("study")
    cards: dict[str, list[dict[str, str]]] = {}
    without = []
    drawn: dict[str, str] = {}
    for name in options("experiment"):
        figure = of_experiment(name)
        if figure is None or figure.file.name in drawn:
            same = drawn.get(figure.file.name) if figure else None
            without.append((name, sentences[name], same))
            continue
        file = figure.file.name
        drawn[file] = name
        card = {
            "file": file,
            "experiment": name,
            "study": figure.source if figure.source in studies else "",
            "sentence": sentences[name],
            "caption": inline(captions.get(file, figure.file.stem.replace("_", " "))),
        }
        cards.setdefault(_family(name), []).append(card)
    return render("gallery", cards=cards, without=without)
