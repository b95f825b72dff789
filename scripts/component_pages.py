"""Pages of the site made from the components themselves: one for each, a list for each role, and
the gallery."""

from __future__ import annotations

import html
import inspect
import os
import re
from collections.abc import Iterable
from pathlib import Path

from components import registry
from runner import CONF
from runner.catalogue.list_and_show import describe, explain_keys, options, read_keys, rows
from runner.catalogue.partners import as_set, partners
from scripts.results_figures import Shown, components, of_component, of_experiment

WHAT = {
    "dataset": "What is loaded: data, how to score a posterior on them, how to draw it.",
    "model": "What is built on a problem: a likelihood, a prior, a network, a value table.",
    "inference": "What is learnt, step by step: samplers, bounds, filters, defences, players.",
    "attacker": "Who disturbs inputs, observations, or plays against.",
    "gradient": "How an inference method estimates the gradient of its bound; `inference.gradient=…`.",
    "block": "Parts that add up inside a structural time series; `model.blocks=[…]`.",
}


def inline(text: str) -> str:
    """A line of a docstring as HTML: ``code`` is code, everything else as it is written."""
    return re.sub(
        r"``(.+?)``|`([^`]+)`",
        lambda m: f"<code>{m[1] or m[2]}</code>",
        html.escape(text, quote=False),
    )


def docstring(text: str) -> str:
    """Paragraphs as paragraphs, indented lines (formulas in Unicode, tables) as they stand."""
    out = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = block.splitlines()
        for indented, block_lines in _runs(lines):
            if indented:
                out.append(f"<pre>{html.escape(chr(10).join(block_lines), quote=False)}</pre>")
            else:
                out.append(f"<p>{inline(' '.join(block_lines))}</p>")
    return "\n".join(out)


def _runs(lines: list[str]) -> Iterable[tuple[bool, list[str]]]:
    """Lines that follow each other and are indented, or are not."""
    group: list[str] = []
    for i, line in enumerate(lines):
        group.append(line)
        if i + 1 == len(lines) or lines[i + 1].startswith(" ") != line.startswith(" "):
            yield line.startswith(" "), group
            group = []


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _figure(shown: Shown | None, page: Path, site: Path) -> str:
    if shown is None:
        return ""
    link = os.path.relpath(site / "results" / shown.file.name, page.parent)
    results = os.path.relpath(site / "results" / "README.md", page.parent)
    return f"\n## In use\n\n![{shown.file.stem}]({link})\n\nFrom `{shown.of}`, among the [results]({results}).\n"


def _linked(role: str, names: str) -> str:
    role_names = set(registry.names(role))
    return ", ".join(
        f"[{name}](../{role}/{name}.md)" if name in role_names else name
        for name in names.split(", ")
    )


def component_page(role: str, entry: registry.Entry, page: Path, site: Path) -> str:
    """Sentence, source, what it fits, the docstring with its update rule, every key, and a figure
    where there is one."""
    _, description = describe(role, entry.name)
    facts = {
        word: ", ".join(sorted(as_set(value))) for word, value in description.pairing_words.items()
    }
    key = (
        role
        if role in registry.CHOSEN
        else f"inference.{role}"
        if role == "gradient"
        else "model.blocks"
    )
    used = f"{key}=[{entry.name}]" if role == "block" else f"{key}={entry.name}"
    lines = [f"# {entry.name}", "", inline(entry.sentence) + ".", ""]
    lines += ["```", used, "```", ""]
    lines += [f"- **Source** {inline(entry.source)}"] * bool(entry.source)
    lines += [f"- **{fact}** {value}" for fact, value in facts.items() if value]
    lines += [
        f"- **goes with {other}** {_linked(other, names)}"
        for other, names in partners(role, description)
    ]
    lines += ["", "## What it does", "", docstring(description.docstring), ""]
    path = CONF / role / f"{entry.name}.yaml"
    if path.exists():
        keys = [
            k
            for k in explain_keys(read_keys(path)[0], description)
            if k.path != "name" and not k.nested
        ]
        cells = [
            [f"<code>{html.escape(k.path)}</code>", f"<code>{html.escape(k.text)}</code>",
             html.escape(description.fields.get(k.path, "")), html.escape(k.comment)]
            for k in keys
        ]  # fmt: skip
        lines += [
            "## Keys",
            "",
            table(("key", "default", "type", "meaning"), cells) if cells else "It has none.",
            "",
        ]
    return "\n".join(lines) + _figure(of_component(role, entry.name), page, site)


def write_components(site: Path) -> None:
    """``components/<role>/<name>.md``, ``components/<role>/index.md`` and
    ``components/index.md``."""
    for role, entry in components():
        page = site / "components" / role / f"{entry.name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(component_page(role, entry, page, site), encoding="utf-8")
    lines = [
        "# Components",
        "",
        "Each page is made from the component's own docstring and YAML.",
        "",
    ]
    for role in registry.ROLES:
        entries = registry.catalogue(role)
        cells = [
            [f'<a href="{e.name}/">{e.name}</a>', inline(e.sentence), inline(e.source)]
            for e in entries
        ]
        index = f"# {role}\n\n{WHAT[role]}\n\n{table((role, 'what it is', 'source'), cells)}\n"
        (site / "components" / role / "index.md").write_text(index, encoding="utf-8")
        lines.append(f"- [{role}]({role}/index.md): {len(entries)}. {WHAT[role]}")
    (site / "components" / "index.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


def write_gallery(site: Path) -> None:
    """``gallery.md``: the main figure of every experiment that has one among the results; the
    others by name."""
    about = {name: line for name, line, _ in rows("experiment")}
    by_experiment = {name: of_experiment(name) for name in options("experiment")}
    cards, without = [], []
    for name, figure in by_experiment.items():
        if figure is None:
            without.append(f"- `+experiment={name}` {inline(about[name])}")
            continue
        credit = f"from {figure.of}"
        cards.append(
            f'<figure markdown="0"><a href="../results/{figure.file.name}"><img loading="lazy" alt="{figure.file.stem}" '
            f'src="../results/{figure.file.name}"></a><figcaption><code>+experiment={name}</code> '
            f"{inline(about[name])} <em>({credit})</em></figcaption></figure>"
        )
    page = [
        "# Gallery",
        "",
        "For each experiment a figure of a study that runs it, as kept in the [results](results/README.md).",
        "",
    ]
    page += ['<div class="gallery">', *cards, "</div>", "", "## Without a kept figure", ""]
    page += ["Each draws its figures when it is run; none of them is kept here.", "", *without, ""]
    (site / "gallery.md").write_text("\n".join(page), encoding="utf-8")
