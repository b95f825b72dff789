"""The gallery: a figure of each experiment, its caption and the command that draws it."""

from __future__ import annotations

import re

from runner.catalogue.list_and_show import options, rows
from scripts.results_figures import Shown, about, of_experiment
from scripts.site.docstrings import inline
from scripts.site.families import families, family_title
from scripts.site.links import DOCS

IMAGE = re.compile(r"!\[([^\]]*)\]\((?:\.\./)?([\w.-]+\.png)\)")


def read_captions() -> dict[str, str]:
    """File name of each figure of the results, and its caption on the study's page."""
    captions: dict[str, str] = {}
    for page in sorted((DOCS / "results").rglob("*.md")):
        for caption, file in IMAGE.findall(page.read_text(encoding="utf-8")):
            captions[file] = max(captions.get(file, ""), caption, key=len)
    return captions


def _family(experiment: str) -> str:
    """Family of the inference method that an experiment runs."""
    chosen = next((name for role, name in about(experiment)[1] if role == "inference"), "")
    for folder, entries in families("inference").items():
        if any(entry.name == chosen for entry in entries):
            return family_title(folder)
    return "Others"


def _card(figure: Shown, command: str, sentence: str, caption: str) -> str:
    image = f"results/{figure.file.name}"
    text = f"<p><strong>{inline(sentence)}</strong></p><p>{inline(caption)}</p>"
    return (
        f'<figure><a href="{image}"><img loading="lazy" alt="{inline(caption)}" src="{image}"></a>'
        f"<figcaption>{text}<pre><code>{command}</code></pre></figcaption></figure>"
    )


def gallery_page() -> str:
    """Figures by family of inference method; experiments without a kept figure by name."""
    sentences = {name: line for name, line, _ in rows("experiment")}
    captions = read_captions()
    cards: dict[str, list[str]] = {}
    without = []
    drawn: dict[str, str] = {}
    for name in options("experiment"):
        figure = of_experiment(name)
        if figure is None or figure.file.name in drawn:
            same = drawn.get(figure.file.name) if figure else None
            note = f" (figure: see `{same}`)" if same else ""
            without.append(f"- `runner +experiment={name}` {inline(sentences[name])}{note}")
            continue
        drawn[figure.file.name] = name
        is_study = figure.of in options("study")
        command = f"runner +experiment={name}"
        if is_study:
            command = (
                f"{command}    # one run\nrunner study {figure.of}    # all runs of the figure"
            )
        caption = captions.get(figure.file.name, figure.file.stem.replace("_", " "))
        card = _card(figure, command, sentences[name], caption)
        cards.setdefault(_family(name), []).append(card)
    lines = ["# Gallery", "", "A figure of each experiment, with the command that draws it; "]
    lines[-1] += "all come from the studies among the [results](results/README.md)."
    for family in sorted(cards):
        lines += [
            "",
            f"## {family}",
            "",
            '<div class="gallery" markdown="0">',
            *cards[family],
            "</div>",
        ]
    lines += ["", "## Other experiments", "", "Each draws its figures when it runs.", "", *without]
    return "\n".join([*lines, ""])
