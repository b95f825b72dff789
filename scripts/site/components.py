"""Pages of components: one for each, and a list for each role."""

from __future__ import annotations

from collections.abc import Iterable

from components import registry
from runner import CONF
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import Entry, catalogue
from runner.catalogue.list_and_show import describe, explain_keys, read_keys
from runner.catalogue.partners import as_set
from scripts.results_figures import of_component
from scripts.site.docstrings import description, inline
from scripts.site.examples import example_command, fitting, option_of
from scripts.site.families import families, family_of, family_sentence, family_title
from scripts.site.links import ROOT

ROLE_SENTENCES = {
    "dataset": "What is loaded: data, how a posterior is scored on them, and figures of them.",
    "model": "What is built on a problem: a likelihood, a prior, a network, a table of values.",
    "inference": "What is learnt, step by step: samplers, bounds, filters, defences, players.",
    "attacker": "Attackers of inputs and observations, and opponents in games.",
    "gradient": "How an inference method estimates the gradient of its bound: `inference.gradient=…`.",
    "block": "Parts that add up inside a structural time series: `model.blocks=[…]`.",
}
ROLE_TITLES = {
    "dataset": "Datasets",
    "model": "Models",
    "inference": "Inference",
    "attacker": "Attackers",
    "gradient": "Gradients",
    "block": "Blocks",
}
FACT_TITLES = {"kinds": "kinds of problem", "offers": "provides", "gives": "provides"}


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table of Markdown; cells hold no pipes (``inline`` writes them as entities)."""
    columns = list(header)
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _linked_names(role: str, names: Iterable[str]) -> str:
    role_names = set(registry.names(role))
    return ", ".join(
        f"[{inline(name)}](../{role}/{name}.md)" if name in role_names else inline(name)
        for name in names
    )


def _requirements(role: str, name: str, declaration: ClassDeclaration) -> str:
    facts = {
        word: ", ".join(sorted(as_set(value))) for word, value in declaration.pairing_words.items()
    }
    lines = [
        f"- **{FACT_TITLES.get(fact, fact)}:** {inline(value)}"
        for fact, value in facts.items()
        if value
    ]
    lines += [
        f"- **fits {other}:** {_linked_names(other, names)}"
        for other, names in fitting(role, name).items()
    ]
    return "\n".join(lines) if lines else "It fits every run of its role."


def _key_table(role: str, entry: Entry, declaration: ClassDeclaration) -> str:
    keys = [
        key
        for key in explain_keys(read_keys(CONF / role / f"{entry.name}.yaml")[0], declaration)
        if key.path != "name" and not key.nested
    ]
    cells = [
        [
            f"<code>{inline(key.path)}</code>",
            f"<code>{inline(key.text)}</code>",
            inline(declaration.fields.get(key.path, "")),
            inline(key.comment),
        ]
        for key in keys
    ]
    return table(("key", "default", "type", "meaning"), cells) if cells else "It has none."


def component_page(role: str, entry: Entry) -> str:
    """Sentence, example command, source, requirements, docstring, keys, and a figure if any."""
    _, declaration = describe(role, entry.name)
    command = example_command(role, entry.name)
    family = family_title(family_of(entry))
    code = entry.file.resolve().relative_to(ROOT).as_posix()
    lines = ["---", "search:", "  boost: 2", "---", ""]
    lines += [f"# {entry.name}", "", f"{inline(entry.sentence)}.", ""]
    lines += [f"- **Choose it:** `{option_of(role, entry.name)}`"]
    lines += [f"- **Family:** [{family}](index.md)", f"- **Code:** `{code}`"]
    lines += [f"- **Source:** {inline(entry.source)}"] * bool(entry.source)
    lines += ["", "## Example", ""]
    if command:
        smoke = f"{command} smoke=true    # the same in seconds, on built-in data"
        lines += ["```bash", command, smoke, "```"]
    else:
        lines.append("It needs files of yours: [bring your own](../../bring_your_own.md).")
    text = description(declaration)
    lines += ["", "## Description", "", text, ""] if text else [""]
    lines += ["## Requirements", "", _requirements(role, entry.name, declaration), ""]
    if (CONF / role / f"{entry.name}.yaml").exists():
        lines += ["## Keys", "", _key_table(role, entry, declaration), ""]
    figure = of_component(role, entry.name)
    if figure:
        lines += ["## In use", "", f"![{figure.of}](../../results/{figure.file.name})", ""]
        lines += [f"From `{figure.of}`, among the [results](../../results/README.md).", ""]
    return "\n".join(lines)


# The pages of components say the same: a search finds those.
NOT_SEARCHED = ["---", "search:", "  exclude: true", "---", ""]


def role_page(role: str) -> str:
    """All components of a role in one table, with their families."""
    cells = [
        [
            f"[{inline(entry.name)}]({entry.name}.md)",
            family_title(folder),
            inline(entry.sentence),
            inline(entry.source),
        ]
        for folder, entries in families(role).items()
        for entry in entries
    ]
    sentences = [
        f"- **{family_title(folder)}** ({len(entries)}): {inline(family_sentence(folder))}"
        for folder, entries in families(role).items()
        if family_sentence(folder)
    ]
    header = (role, "family", "what it is", "source")
    lines = [
        *NOT_SEARCHED,
        f"# {ROLE_TITLES[role]}",
        "",
        ROLE_SENTENCES[role],
        "",
        table(header, cells),
        "",
    ]
    return "\n".join([*lines, "## Families", "", *sentences, ""])


def index_page() -> str:
    """Roles and families with their numbers of components."""
    lines = [
        *NOT_SEARCHED,
        "# Components",
        "",
        "A run has one component of each role. Every page has the keys, ",
    ]
    lines[-1] += "the source, what the component fits and a command that runs it."
    for role in registry.ROLES:
        cells = [
            [
                family_title(folder),
                ", ".join(f"[{inline(e.name)}]({role}/{e.name}.md)" for e in entries),
            ]
            for folder, entries in families(role).items()
        ]
        total = len(catalogue(role))
        lines += [
            "",
            f"## [{ROLE_TITLES[role]}]({role}/index.md)",
            "",
            f"{total} components. {ROLE_SENTENCES[role]}",
        ]
        lines += ["", table(("family", "components"), cells)]
    return "\n".join([*lines, ""])


def component_pages() -> dict[str, str]:
    """Path and text of every page of components."""
    pages = {"components/index.md": index_page()}
    for role in registry.ROLES:
        pages[f"components/{role}/index.md"] = role_page(role)
        for entry in catalogue(role):
            pages[f"components/{role}/{entry.name}.md"] = component_page(role, entry)
    return pages
