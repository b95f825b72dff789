"""``python -m scripts.contracts_page``: docs/contracts.md, what a plug-in's author reads, from the
protocols themselves.

Each protocol is printed as it stands in ``components/contracts``, with the components that offer,
need or give it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from components import registry

ROOT = Path(__file__).resolve().parent.parent
CONTRACTS = ROOT / "components" / "contracts"
PAGE = ROOT / "docs" / "contracts.md"
HEAD = """# Contracts

Written by `make contracts` from `components/contracts`; do not edit. A component is one class and one YAML of the same name
([Add a component](add_a_component.md)). What the parts of a run may ask of each other is on this page and nothing else is
asked: an object that has a protocol's members is enough, no base class is needed beyond that of its role.

    problem   = dataset.load(rng, setting)
    model     = model.build(problem, rng)                       # offers capabilities
    state     = inference.init(model, problem, rng)             # a dataclass: what the next step needs
    for step, batch in problem.batches(inference.requires.batch_kind, rng, start, stop):
        state, info = inference.step(state, batch, rng)
    posterior = inference.posterior(state)                      # keeps the protocols named in `provides`

What training costs is counted without effort of yours, while a method is initialised and takes steps: calls of a
model's capabilities (`log_likelihood`, `score`, `elbo`, …) and of a density's `log_density`, derivatives taken back
through their results, moves of games.  [Costs](reproducibility.md#costs) says what counts as one.
`components.contracts.costs.counts.count(gradients=…)` adds what no capability shows.

`init` is shown no truth: moments, reference draws, states and topics are None, test labels are missing.

A pair that does not fit *as configured* is refused before any data are read, with the names that would work.
"""


def classes(path: Path) -> Iterator[tuple[ast.ClassDef, str]]:
    """Classes of a module with their source, docstring left out."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            first = node.body[0]
            start = min([first.lineno, *(d.lineno for d in decorators(first))]) - 1
            if ast.get_docstring(node):
                start = first.end_lineno or 0
            yield node, "\n".join(lines[start : node.end_lineno])


def decorators(node: ast.stmt) -> list[ast.expr]:
    """Decorators of a method; other statements have none."""
    return node.decorator_list if isinstance(node, ast.FunctionDef) else []


def dedented(source: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in source.splitlines()).strip()


def table(path: Path, name: str) -> dict[str, str]:
    """Class name -> word of the dictionary that names protocols, read from its text."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if isinstance(target, ast.Name) and target.id == name and isinstance(node.value, ast.Dict):  # type: ignore[union-attr]
            pairs = zip(node.value.keys, node.value.values, strict=True)  # type: ignore[union-attr]
            words: dict[str, str] = {}
            for k, v in pairs:
                if isinstance(v, ast.Name) and isinstance(k, ast.Constant):
                    words[v.id] = f"{words[v.id]}`, `{k.value}" if v.id in words else k.value
            return words
    raise LookupError(f"{path.name} has no {name}")


def users(fact: str, role: str, word: str) -> list[str]:
    """Components of a role with a class fact that holds one of the words of a protocol."""
    words = frozenset(word.split("`, `"))
    return [name for name in registry.names(role) if words & _words(role, name, fact)]


def _words(role: str, name: str, fact: str) -> frozenset[str]:
    """The words of a fact of a component's class, for all kinds of problems."""
    words = attrgetter(fact)(registry.get(role, name))
    return frozenset().union(*words.values()) if isinstance(words, dict) else words


def protocol(
    node: ast.ClassDef, source: str, word: str | None, said: list[tuple[str, list[str]]]
) -> str:
    """One protocol: its name, its sentence, its members and who has to do with it."""
    title = f"### `{word}`: {node.name}" if word else f"### {node.name}"
    # an empty line makes Markdown show an example as code
    text = (ast.get_docstring(node) or "").replace("Example:\n    >>>", "Example:\n\n    >>>")
    parts = [title, text, f"```python\n{dedented(source)}\n```"]
    sentences = [f"{verb}: {', '.join(names)}." for verb, names in said if names]
    return "\n\n".join(part for part in [*parts, " ".join(sentences)] if part)


def page() -> str:
    """The whole page."""
    out = [
        HEAD,
        "## Roles\n\nBase classes of components; keys are pydantic fields, defaults live in the YAML alone.",
    ]
    roles = [
        f"roles/{name}"
        for name in ("component", "problem", "dataset", "model", "inference", "gradient", "block")
    ]
    for name in ("requirements", *roles, "attackers", "opponents"):
        out += [
            protocol(n, s, None, [])
            for n, s in classes(CONTRACTS / f"{name}.py")
            if n.name != "Setting"
        ]
    out.append("## Problems\n\nWhat a dataset loads, and what a step is shown of it.")
    words = table(CONTRACTS / "capabilities" / "__init__.py", "CAPABILITIES")
    for name in ("problems", "sequences", "games"):
        for node, source in classes(CONTRACTS / f"{name}.py"):
            word = words.get(node.name)  # of what a dataset simulates and a model assumes
            assuming = users("requires.simulated", "model", word) if word else []
            simulated = users("simulates", "dataset", word) if word else []
            out.append(
                protocol(
                    node, source, word, [("Simulated by", simulated), ("Assumed by", assuming)]
                )
            )
    out.append(
        "## Capabilities of models\n\nNames in `Model.offers` and in `Inference.requires.capabilities`."
    )
    for path in sorted((CONTRACTS / "capabilities").glob("*.py")):
        for node, source in classes(path):
            word = words.get(node.name)
            needing = (
                sorted(
                    {
                        n
                        for fact in ("capabilities", "capabilities_by_kind", "alternatives_by_kind")
                        for n in users(f"requires.{fact}", "inference", word)
                    }
                )
                if word
                else []
            )
            relations = (
                [("Offered by", users("offers", "model", word)), ("Needed by", needing)]
                if word
                else []
            )
            if word:
                relations += [
                    ("Simulated by", users("simulates", "dataset", word)),
                    ("Assumed by", users("requires.simulated", "model", word)),
                ]
            out.append(protocol(node, source, word, relations))
    out.append(
        "## Posteriors\n\nNames in `Inference.provides`; metrics, attacks, figures and files read nothing else."
    )
    posterior_names = table(CONTRACTS / "posteriors" / "__init__.py", "POSTERIORS")
    for name in ("labels", "rows", "series", "play"):
        for node, source in classes(CONTRACTS / "posteriors" / f"{name}.py"):
            word = posterior_names.get(node.name)
            out.append(
                protocol(
                    node,
                    source,
                    word,
                    [("Given by", users("provides", "inference", word) if word else [])],
                )
            )
    out.append("## Under attack\n\nWhat an evasion attacker may ask of its victim.")
    out += [protocol(n, s, None, []) for n, s in classes(CONTRACTS / "victim.py")]
    out.append(
        "## Checks\n\nWhat is said of a run beside its scores, and what that asks of a method that follows the gradient."
    )
    out += [protocol(n, s, None, []) for n, s in classes(CONTRACTS / "checks.py")]
    out.append("## Random streams")
    out += [protocol(n, s, None, []) for n, s in classes(CONTRACTS / "streams.py")]
    out.insert(1, contents("\n\n".join(out)))
    return "\n\n".join(out) + "\n"


def contents(text: str) -> str:
    """A line for each section: its name and those of its protocols, as links."""
    lines: list[list[str]] = []
    for level, title in re.findall(r"^(##|###) (.+)$", text, re.MULTILINE):
        link = f"[{title.split(':')[0]}](#{re.sub(r'[^a-z0-9_ -]', '', title.lower()).replace(' ', '-')})"
        if level == "##":
            lines.append([f"- **{link}**"])
        else:
            lines[-1].append(link)
    return "\n".join(f"{line[0]}: {', '.join(line[1:])}" for line in lines)


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
