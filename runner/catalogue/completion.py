"""``runner completion``: tab completion of commands, +experiment=, role=name and every key, for bash, zsh and fish.

Each shell's script hands the line up to the cursor to ``runner completion query``, which answers from the YAML files and
the text of the classes; neither Hydra nor torch is imported.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from components import registry
from runner import CONF, conf_folders
from runner.arguments import Parser
from runner.catalogue.command_options import options_of
from runner.catalogue.declarations import SETTINGS, Declared, component_class, declared
from runner.catalogue.list_and_show import GROUPS, chosen, describe, explained, options, read_keys
from runner.catalogue.shell_scripts import SCRIPTS
from runner.mistakes import ConfigError
from runner.plugins import source_file
from runner.yaml_comments import Key, read_file

Candidate = tuple[str, str]  # what to insert, and what it means

FLAGS = [
    ("--multirun", "a sweep: every combination of comma-separated values"),
    ("-m", "a sweep"),
    ("--cfg", "show the composed config without running it: job, hydra or all"),
    ("--config-dir", "a folder of YAML files of your own"),
    ("--help", "the commands and the run-level keys"),
    ("--hydra-help", "Hydra's own flags"),
]
LAUNCHERS = {
    "joblib": "hydra_joblib_launcher",
    "submitit_local": "hydra_submitit_launcher",
    "submitit_slurm": "hydra_submitit_launcher",
    "ray": "hydra_ray_launcher",
}


# ---- overrides --------------------------------------------------------------------------------------------------------
def _choices(words: list[str]) -> dict[str, str]:
    """The components that a command line picks: by ``role=name``, or else through its experiment."""
    given = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
    picked: dict[str, str] = {}
    path = conf_folders.find("experiment", given.get("experiment", ""))
    if path is not None:
        picked = chosen(yaml.safe_load(path.read_text(encoding="utf-8")))
    return picked | {role: given[role] for role in registry.CHOSEN if role in given}


def _own(role: str, name: str, words: list[str]) -> Declared:
    """What the class of a component declares, or that of the run-level keys (role "")."""
    if not role:
        return declared("Settings", SETTINGS)
    if name in registry.names(role):
        return describe(role, name)[1]
    of_plugins = ((component_class(role, name, path), path) for path in _plugin_files(words))
    return next((declared(cls, path) for cls, path in of_plugins if cls), Declared())


def _plugin_files(words: list[str]) -> Iterator[Path]:
    """The modules that a command line names as plug-ins, of which the text alone is read: a tab runs nobody's code."""
    named = [m for w in words if w.startswith("plugins=") for m in w.partition("=")[2].strip("[]'\"").split(",")]
    named += [after for before, after in itertools.pairwise(words) if before == "--plugin"]
    yield from filter(None, map(source_file, named))


def _at(path: list[str], words: list[str]) -> tuple[str, list[str]]:
    """The role that a dotted path leads to, through parts of parts, and the components that may be there: the one that the
    command line or a YAML names, or else all of the role.  Role "": the path leads nowhere."""
    role, *rest = path
    if role not in registry.CHOSEN:
        return "", []
    given = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
    name, reached = _choices(words).get(role), role
    while True:
        names = [name] if name in options(role) else options(role)
        if not rest:
            return role, names
        key, *rest = rest
        holder = next((n for n in names if key in _own(role, n, words).holds), None)
        if holder is None:
            return "", []
        reached = f"{reached}.{key}"
        content = _read(role, holder)[1] or {}
        role, name = _own(role, holder, words).holds[key], given.get(reached, content.get(key))


def _read(role: str, name: str) -> tuple[list[Key], Any]:
    """Keys and content of a component's YAML; none of one that cannot be read."""
    path = conf_folders.find(role, name)
    with suppress(ConfigError):
        return read_keys(path) if path else ([], None)
    return [], None


def _keys(word: str, words: list[str]) -> list[Candidate]:
    """Groups, run-level keys and, once a role is begun, the keys of its component and of its parts."""
    before, dot, _ = word.rpartition(".")
    role, names = _at(before.split("."), words) if dot else ("", [])
    if role:
        found: dict[str, str] = {}
        for name in names:
            own = _own(role, name, words)
            for key in explained(_read(role, name)[0], own):
                if key.path != "name":
                    ends = "=." if key.path in own.holds else "." if key.nested else "="
                    for end in ends:
                        found.setdefault(f"{before}.{key.path}{end}", f"{key.text}  {key.comment}")
        return list(found.items())
    out = [("+experiment=", "a whole experiment"), ("hydra/launcher=", "where jobs run"), ("hydra/sweeper=", "how a "
            "sweep chooses values")]  # fmt: skip
    for group in registry.CHOSEN:
        out += [(f"{group}=", f"choose the {group}"), (f"{group}.", f"a key of the {group}")]
    types = _own("", "", words).fields
    out += [(f"{key.path}=", key.comment) for key in read_file(CONF / "config.yaml")[0] if key.path in types]
    return out


def _named(role: str) -> list[Candidate]:
    """The components of a role, each with its sentence."""
    about = {entry.name: entry.sentence for entry in registry.catalogue(role)}
    return [(name, about.get(name, "")) for name in options(role)]


def _values(key: str, words: list[str]) -> list[Candidate]:
    """Values of ``key=``: names of a group, the members of a choice, true and false."""
    plain = key.lstrip("+~")
    if plain in registry.CHOSEN:
        return _named(plain)
    if plain in ("experiment", "published"):
        return [(name, "") for name in options(plain)]
    if plain in ("hydra/launcher", "hydra/sweeper"):
        installed = [n for n, m in LAUNCHERS.items() if importlib.util.find_spec("hydra_plugins." + m)]
        known = {"basic", *options(plain), *(installed if plain.endswith("launcher") else [])}
        return [(name, "") for name in sorted(known)]
    if plain == "device":
        return [("cpu", ""), ("cuda", "the GPU")]
    if plain == "plugins":
        return [(f"[{name}]", path) for name, path in _modules(words)]
    before, dot, last = plain.rpartition(".")
    role, names = _at(before.split("."), words) if dot else ("", [""])
    # Of the component chosen, or, before one is, of the first that has such a key and says its values.
    reachable = names if role or not dot else []
    first: list[Candidate] | None = None
    for name in reachable:
        own = _own(role, name, words)
        values = _members(own, last) if last in own.fields else None
        if values and values != [("null", "")]:
            return values
        first = values if first is None else first
    return first or []


def _members(own: Declared, key: str) -> list[Candidate]:
    """The values that a key of a component may have, where its declaration lists them."""
    kind = own.fields[key]
    none = [("null", "")] if kind.endswith(" or null") else []
    if key in own.holds:
        return _named(own.holds[key]) + none
    members = kind.removesuffix(" or null")
    out = ["true", "false"] if members == "true or false" else members.split(" | ") if " | " in members else []
    return [(value, "") for value in out] + none


def _override(word: str, words: list[str]) -> list[Candidate]:
    if "=" not in word:
        if word.startswith("~"):
            return [(f"~{role}", f"leave the {role} out") for role in registry.CHOSEN]
        return _keys(word, words)
    key, _, typed = word.partition("=")
    before = f"{key}={typed[: typed.rfind(',') + 1]}"  # a sweep: model=smdgp,mm<TAB>
    return [(before + value, meaning) for value, meaning in _values(key, words)]


# ---- sub-commands -----------------------------------------------------------------------------------------------------
def _output_dir(words: list[str]) -> Path:
    """Where the command line so far says that records are."""
    folder = Path("outputs")
    for before, word in itertools.pairwise([*words, ""]):
        if before == "--output-dir":
            folder = Path(word)
        elif before.startswith("--output-dir="):
            folder = Path(before.split("=", 1)[1])
    return folder


def _runs(words: list[str]) -> list[Candidate]:
    """Signatures of the recorded runs."""
    folder = _output_dir(words)
    return [(path.parent.name, path.parent.parent.name) for path in sorted(folder.glob("*/*/run.json"))]


def _launched(words: list[str]) -> list[Candidate]:
    """Names under which studies were launched (``--as``) that are no study's own."""
    found = sorted(path.parent.name for path in _output_dir(words).glob("studies/*/snapshot.yaml"))
    return [(name, "launched under this name") for name in found if name not in options("study")]


def _modules(_: list[str]) -> list[Candidate]:
    """Modules of the present folder and of PYTHONPATH that may be plug-ins; they are not imported."""
    folders = [Path(), *map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))]
    found = {path.stem: str(path) for folder in reversed(folders) for path in sorted(folder.glob("*.py"))}
    return [(name, path) for name, path in sorted(found.items()) if name.isidentifier() and not name.startswith("_")]


def _nothing(_: list[str]) -> list[Candidate]:
    """A value that the shell completes, as files."""
    return []


# Options that take one of some values, or a file.
VALUES: dict[str, Callable[[list[str]], list[Candidate]]] = {
    "--as": _launched, "--plugin": _modules,
    **dict.fromkeys(("--output-dir", "--data-dir", "--config-dir", "--to", "--with", "--in", "--port", "--jobs", "--only"),
                    _nothing),
}  # fmt: skip


def _argument(command: str, word: str, words: list[str]) -> list[Candidate]:
    before = words[-1] if words else ""
    option, equals, _ = word.partition("=")
    if equals or before in VALUES:
        lead = f"{option}=" if equals else ""
        return [(lead + name, meaning) for name, meaning in VALUES.get(option if equals else before, _nothing)(words)]
    if word.startswith("-"):
        from runner.cli import COMMANDS

        return list(options_of(COMMANDS[command][0]))
    given = [w for w in words if not w.startswith("-")]
    if command == "list":
        return [(group, "") for group in GROUPS]
    if command == "show":
        if "/" not in word:
            return [("config", "the run-level keys"), *((f"{group}/", "") for group in GROUPS)]
        group = word.split("/")[0]
        return [(f"{group}/{name}", "") for name in (options(group) if group in GROUPS else [])]
    if command in ("resume", "compare", "sync"):
        return _runs(words)
    if command in ("study", "report", "rerun"):
        launched = [] if command == "study" else _launched(words)
        return [*((name, "") for name in options("study")), *launched]
    if command == "new":
        from runner.new.new import COMMANDS as ROLES

        return [] if given else [(role, "") for role in ROLES]
    if command == "clean":
        from runner.system.clean import KINDS

        return list(KINDS.items())
    if command == "completion":
        return [(shell, "") for shell in SCRIPTS]
    if command == "data":
        if not given:
            return [("list", "what is there"), ("fetch", "download"), ("verify", "check the checksums")]
        path = Path(registry.__file__).parent / "datasets" / "catalogue.yaml"
        return [(str(name), "") for name in yaml.safe_load(path.read_text(encoding="utf-8"))]
    return []


def candidates(line: str) -> list[Candidate]:
    """What may stand in place of the last word of a command line, which is empty after a space."""
    from runner.cli import COMMANDS

    words = list(itertools.dropwhile(lambda word: "=" in word, line.split()))[1:]  # PYTHONPATH=. runner …
    word = words.pop() if words and not line[-1:].isspace() else ""
    with conf_folders.of_this_command():
        with suppress(ConfigError):
            conf_folders.use(_folder(words))
        found = _candidates(word, words, COMMANDS)
    return [(text, meaning) for text, meaning in found if text.startswith(word)]


def _folder(words: list[str]) -> str | None:
    """The folder of own YAML that a command line names so far."""
    folder = next((after for before, after in itertools.pairwise(words) if before in conf_folders.FLAGS), None)
    folder = next((w.partition("=")[2] for w in words if w.startswith("--config-dir=")), folder)
    return None if folder is None else os.path.expanduser(folder)


def _candidates(word: str, words: list[str], commands: dict[str, tuple[str, str]]) -> list[Candidate]:
    """``candidates`` before those that begin otherwise are dropped."""
    found: Iterable[Candidate]
    if words and words[0] in commands:
        found = _argument(words[0], word, words[1:])
    elif words and words[-1] in ("--cfg", "-c"):
        found = [("job", "the run's config"), ("hydra", "Hydra's own"), ("all", "both")]
    elif word.startswith("-"):
        found = FLAGS
    else:
        found = _override(word, words)
        if not words and "=" not in word:
            found = [*((name, text[23:].strip()) for name, (_, text) in commands.items()), *found]
    return list(found)


def main(argv: list[str]) -> int:
    """Prints a shell's script, or, asked by that script, the candidates for a line."""
    if argv[1:2] == ["query"]:
        for text, meaning in candidates(argv[2] if len(argv) > 2 else ""):
            print(f"{text}\t{' '.join(meaning.split())}")
        return 0
    parser = Parser(
        prog="runner completion",
        description="Prints the script that makes the tab key complete commands, experiments, components, keys and "
        "their values. bash and zsh: put  eval \"$(runner completion bash)\"  (or zsh) in ~/.bashrc or ~/.zshrc; "
        "fish: runner completion fish > ~/.config/fish/completions/runner.fish",
        epilog='Hydra\'s own completion, eval "$(runner -sc install=bash)", knows overrides only and loads Hydra at '
        "every tab; install one of the two. Exit code 0, or 2 for a shell that is not known.",
    )  # fmt: skip
    parser.add_argument("shell", nargs="?", help=" | ".join(SCRIPTS) + " (default: the one in $SHELL)")
    shell = parser.parse_args(argv[1:]).shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SCRIPTS:
        raise ConfigError(f"completion: {shell or 'no shell'} is not one of {', '.join(SCRIPTS)}")
    print(SCRIPTS[shell], end="")
    return 0
