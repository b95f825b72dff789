"""Pages of components, with a list for each role."""

from __future__ import annotations

from typing import Any

from components import registry
from runner import CONF
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import catalogue
from runner.catalogue.list_and_show import explain_keys, read_keys
from scripts.pages import TEMPLATES, render
from scripts.results_figures import of_component
from scripts.site.docstrings import description, inline
from scripts.site.examples import example_command, fitting, option_of
from scripts.site.families import families, family_of, family_sentence, family_title
from scripts.site.links import ROOT

TEMPLATES.filters |= {
    "inline": inline,
    "family": lambda entry: family_title(family_of(entry)),
    "title_of": family_title,
    "sentence_of": family_sentence,
}

ROLE_SENTENCES = {
    "dataset": "Data sets, densities and games, with the scores and figures of posteriors.",
    "model": "Models of a problem: a likelihood and a prior, a network, a table of values.",
    "inference": "Inference methods: samplers, variational bounds, filters, defences, players.",
    "attacker": "Attackers of inputs and observations, and opponents in games.",
    "gradient": "Gradient estimators of variational bounds: `inference.gradient=…`.",
    "block": "Additive components of structural time series: `model.blocks=[…]`.",
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


def _facts(declaration: ClassDeclaration) -> dict[str, str]:
    """Words that decide compatibility, by fact."""
    return {
        FACT_TITLES.get(fact, fact): ", ".join(sorted(words))
        for fact, words in declaration.pairing_words.items()
        if words
    }


def _keys(role: str, name: str, declaration: ClassDeclaration) -> list[tuple[Any, str]] | None:
    """Keys of a component with their types; None if it has no YAML."""
    path = CONF / role / f"{name}.yaml"
    if not path.exists():
        return None
    keys = explain_keys(read_keys(path)[0], declaration)
    shown = [key for key in keys if key.path != "name" and not key.nested]
    return [(key, declaration.fields.get(key.path, "")) for key in shown]


def component_page(role: str, entry: ClassDeclaration) -> str:
    """Page of a component: summary, example command, source, requirements, docstring, keys, and a
    figure if any."""
    return render(
        "component",
        entry=entry,
        option=option_of(role, entry.name),
        code=entry.file.resolve().relative_to(ROOT).as_posix(),
        command=example_command(role, entry.name),
        text=description(entry),
        facts=_facts(entry),
        partners=fitting(role, entry.name),
        registered={other: set(registry.names(other)) for other in registry.ROLES},
        keys=_keys(role, entry.name, entry),
        figure=of_component(role, entry.name),
    )


def component_pages() -> dict[str, str]:
    """Path and text of all pages of components."""
    roles = {role: families(role) for role in registry.ROLES}
    index = render("components", roles=roles, titles=ROLE_TITLES, sentences=ROLE_SENTENCES)
    pages = {"components/index.md": index}
    for role, groups in roles.items():
        title = ROLE_TITLES[role]
        sentence = ROLE_SENTENCES[role]
        list_page = render("role", role=role, title=title, sentence=sentence, families=groups)
        pages[f"components/{role}/index.md"] = list_page
        for entry in catalogue(role):
            pages[f"components/{role}/{entry.name}.md"] = component_page(role, entry)
    return pages
