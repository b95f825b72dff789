"""Random compositions, as a new user would try them: a dataset, a model, a method, perhaps an
attacker, and up to two more keys with valid or borderline values.

    runner dataset=… model=… inference=… [attacker=…] [a.key=…] smoke=true

Each runs in a forked process with a time limit, and the suggestions of a refusal are tried.
"""

from __future__ import annotations

import json
import random
import re

from contract.partners import OF_A_PLUGIN, PLUGIN, fits, small

from components import registry
from components.registry import CHOSEN
from runner.catalogue.declarations import declaration
from runner.compose.expand import component_defaults

# require optional packages
ABSENT = {
    *(("dataset", name) for name in ("numpyro", "pettingzoo", "posteriordb_stan", "pymc", "stan")),
    ("model", "roberta"),
}
RUN_KEYS = {
    "replicates": ["2", "3"],
    "eval_every": ["1", "2"],
    "record_every": ["1"],
    "checkpoint_every": ["1"],
    "dtype": ["float32"],
    "seed": ["0", "4294967296", "9223372036854775807"],
    "validation": ["0.5", "0.01", "0.999"],
    "side_by_side": ["true"],
    "debug": ["overfit", "profile"],
    "keep_predictions": ["true"],
    "objective": ["rmse", "nlpp"],
    "threads": ["2"],
    "fresh": ["true"],
    "figures": ["false"],
}


def composition(rng: random.Random) -> list[str]:
    """One command line."""
    dataset = rng.choice([n for n in registry.names("dataset") if ("dataset", n) not in ABSENT])
    (kind,) = declaration("dataset", dataset).kinds
    choice = {"dataset": dataset} | _partners(rng, dataset, kind)
    words = [f"{role}={name}" for role, name in choice.items()]
    keys = [f"{role}.{key}" for role, name in choice.items() for key in small(role, name)]
    if OF_A_PLUGIN & set(choice.items()):
        keys.append(f"plugins=[{PLUGIN}]")
    for _ in range(rng.choice([0, 1, 1, 2])):
        if (word := _one_key(rng, choice)) is not None:
            keys = [key for key in keys if key.partition("=")[0] != word.partition("=")[0]] + [word]
    if not any(key.startswith("steps=") for key in keys) and rng.random() < 0.9:
        keys.append(f"steps={rng.choice([1, 2, 3, 5, 8])}")
    return [*words, *keys, "smoke=true"]


def _partners(rng: random.Random, dataset: str, kind: str) -> dict[str, str]:
    """A model, a method and perhaps an attacker; with probability ¾ a compatible choice, if a few
    dozen tries find one."""
    names = {
        role: [n for n in registry.names(role) if (role, n) not in ABSENT] for role in CHOSEN[1:]
    }
    of_kind = {
        role: [n for n in names[role] if kind in declaration(role, n).kinds] for role in names
    }
    with_attacker = bool(of_kind["attacker"]) and (kind == "game" or rng.random() < 0.4)
    wanted = rng.random() < 0.75
    for _ in range(60):
        source = of_kind if wanted or rng.random() < 0.7 else names
        choice = {role: rng.choice(source[role] or names[role]) for role in ("model", "inference")}
        if with_attacker:
            choice["attacker"] = rng.choice(source["attacker"])
        if not wanted or fits(
            dataset, choice["model"], choice["inference"], choice.get("attacker")
        ):
            break
    return choice


def _one_key(rng: random.Random, choice: dict[str, str]) -> str | None:
    """Key of the run or of one of its components, with a valid or borderline value."""
    if rng.random() < 0.3:
        key = rng.choice(sorted(RUN_KEYS))
        return f"{key}={rng.choice(RUN_KEYS[key])}"
    role = rng.choice(sorted(choice))
    defaults = component_defaults(role, choice[role])
    kinds = declaration(role, choice[role]).fields
    keys = sorted(key for key in defaults if key != "name" and key in kinds)
    if not keys:
        return None
    key = rng.choice(keys)
    values = list(_values(defaults[key], kinds[key]))
    return f"{role}.{key}={rng.choice(values)}" if values else None


def _values(default: object, kind: str) -> list[str]:
    """Values of a key from a description of its type, small enough for a short run."""
    values: list[str] = []
    if "null" in kind:
        values.append("null")
    if isinstance(default, bool) or "true or false" in kind:
        values += ["true", "false"]
    elif " | " in kind:
        values += [
            word.strip()
            for word in kind.split(" or null")[0].split("|")
            if re.fullmatch(r"\s*\w+\s*", word)
        ]
    if isinstance(default, list):
        items = [json.dumps(item) for item in default if isinstance(item, int | float)]
        values += (
            [f"[{', '.join(items[:1])}]", f"[{', '.join(items[::-1])}]", "[]"] if items else ["[]"]
        )
    elif "integer" in kind and not isinstance(default, str):
        bounds = [int(float(b)) for b in re.findall(r"[>≥<≤] (-?\d+)", kind)]
        values += [
            str(v) for v in {0, 1, 2, 3, *(b + d for b in bounds for d in (0, 1))} if abs(v) < 50
        ]
    elif "number" in kind and not isinstance(default, str):
        bounds = [float(b) for b in re.findall(r"[>≥<≤] (-?[\d.]+)", kind)]
        values += [str(v) for v in {0.0, 0.5, 1.0, 1e-8, 1e8, *bounds}]
    if name := re.search(r"name of an? (\w+)", kind):
        values += registry.names(name[1])
    return values


OFFERS = re.compile(
    r"compatible (?:(models|inference methods|attackers|datasets)|values of (\S+)): (.*)"
)
SETTINGS = re.compile(r"(?:set|add|remove the attacker \S+ with) (.*)")
ROLES = {
    "models": "model",
    "inference methods": "inference",
    "attackers": "attacker",
    "datasets": "dataset",
}
WORD = re.compile(r"^(?:~attacker|[a-z_.]+=\S+)$")


def list_offers(message: str) -> list[list[str]]:
    """Suggestions of an error message, each as words that change a command."""
    out: list[list[str]] = []
    for part in message.split("; "):
        if part.startswith("experiments with dataset="):
            out += [[word] for word in part.partition(": ")[2].split(", ")]
        elif match := OFFERS.fullmatch(part):
            key = match[2] or ROLES[match[1]]
            out += [[f"{key}={name}"] for name in match[3].split(", ")]
        elif match := SETTINGS.fullmatch(part):
            words = [word.strip("(),") for word in match[1].split()]
            out += [words] if all(map(WORD.match, words)) else []
    return out


def follow_offer(argv: list[str], words: list[str], message: str) -> list[str]:
    """The command changed as a refusal suggests; keys of a replaced component change with it."""
    if words[0].startswith("+experiment="):
        return [*words, "smoke=true"]
    swapped = [word.lstrip("~").partition("=")[0] for word in words]
    kept = [
        w
        for w in argv
        if not any(re.match(rf"[~+]?{re.escape(key)}([.=]|$)", w) for key in swapped)
    ]
    extra = [
        f"{key}.{setting}"
        for word in words
        for key, _, name in [word.partition("=")]
        if key in registry.ROLES
        and (key, name) in {(r, n) for r in registry.ROLES for n in registry.names(r)}
        for setting in small(key, name)
    ]
    if "; give steps=… too" in message:
        extra.append("steps=3")
    given = {w.partition("=")[0] for w in words}
    dropped = [w for w in words if w != "~attacker"]
    return [*kept, *dropped, *(e for e in extra if e.partition("=")[0] not in given)]


def is_fault_of_its_own(argv: list[str], again: list[str], message: str) -> bool:
    """True if a refusal names a key, other than one that selects a component, that was in the
    command before and still is."""
    keys = {word.lstrip("+~").partition("=")[0] for word in argv if word in again} - set(
        registry.ROLES
    )
    return any(re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", message) for key in keys)
