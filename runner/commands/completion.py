"""``runner completion``: tab completion of commands, +experiment=, role=name and every key, for
bash, zsh and fish.

Each shell's script passes the line up to the cursor to ``runner completion query``, which reads
YAML files and the index of components; neither Hydra nor torch is imported."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import yaml

from components import registry
from runner.catalogue.declarations import read_index
from runner.catalogue.families import families
from runner.catalogue.list_and_show import GROUPS, options
from runner.catalogue.override_candidates import (
    Candidate,
    modules,
    override_candidates,
    without_meaning,
)
from runner.catalogue.sub_commands import COMMANDS
from runner.commands.shell_scripts import SCRIPTS
from runner.disk import conf_folders
from runner.errors import ConfigError
from runner.terminal.arguments import Parser, parse_output_dir

FLAGS = [
    ("--multirun", "a sweep: every combination of comma-separated values"),
    ("-m", "a sweep"),
    ("--cfg", "show the composed config without running it: job, hydra or all"),
    ("--config-dir", "a folder of YAML files of your own"),
    ("--help", "commands and run-level keys"),
    ("--hydra-help", "Hydra's flags"),
]


def _runs(words: list[str]) -> list[Candidate]:
    """Signatures of the recorded runs."""
    folder = parse_output_dir(words)[0]
    return [
        (path.parent.name, path.parent.parent.name) for path in sorted(folder.glob("*/*/run.json"))
    ]


def _launch_names(words: list[str]) -> list[Candidate]:
    """Names under which studies were launched with ``--as``."""
    names = sorted(
        path.parent.name for path in parse_output_dir(words)[0].glob("studies/*/snapshot.yaml")
    )
    return [(name, "launched under this name") for name in names if name not in options("study")]


# commands with runs as arguments; export and predict have a file after it
RUN_COMMANDS = ("resume", "compare", "runs", "sync", "ui")
# Options with a list of allowed values; other options accept any value.
VALUES: dict[str, Callable[[list[str]], list[Candidate]]] = {
    "--as": _launch_names,
    "--plugin": modules,
}


def _argument(command: str, word: str, words: list[str]) -> list[Candidate]:
    options = read_index()[f"command/{command}"]
    previous = words[-1] if words else ""
    option, equals, _ = word.partition("=")
    if equals and option in options.fields:
        return [(f"{option}={name}", meaning) for name, meaning in _option_values(option, words)]
    if options.fields.get(previous):
        return _option_values(previous, words)
    if word.startswith("-"):
        return list(options.comments.items())
    if command == "sbc":
        return override_candidates(word, words)
    return _values_of_argument(command, word, words)


def _option_values(option: str, words: list[str]) -> list[Candidate]:
    """Allowed values of an option; empty for free values such as files, which the shell completes."""
    return VALUES[option](words) if option in VALUES else []


def _values_of_argument(command: str, word: str, words: list[str]) -> list[Candidate]:
    """Values of a positional argument."""
    is_first = all(w.startswith("-") for w in words)
    if command == "list":
        return _families(word)
    if command == "show":
        return _entries(word)
    if command in RUN_COMMANDS or (command in ("export", "predict") and is_first):
        return _runs(words)
    if command == "arena":
        return _values_of_arena(word, words)
    if command == "archive":
        return _launch_names(words)
    if command == "test":
        return modules(words) if is_first else []
    if command in ("study", "report", "rerun", "price"):
        launched = [] if command == "study" else _launch_names(words)
        return [*without_meaning(options("study")), *launched]
    if command == "new":
        from runner.catalogue.new import COMMANDS as ROLES

        return without_meaning(ROLES) if is_first else []
    if command == "clean":
        from runner.system.clean import KINDS

        return list(KINDS.items())
    if command == "completion":
        return without_meaning(SCRIPTS)
    if command == "data" and is_first:
        return without_meaning(("list", "fetch", "verify"))
    if command == "data":
        path = Path(registry.__file__).parent / "datasets" / "catalogue.yaml"
        return without_meaning(map(str, yaml.safe_load(path.read_text(encoding="utf-8"))))
    return []


def _values_of_arena(word: str, words: list[str]) -> list[Candidate]:
    """Commands of the arena, then suites, then overrides of an entry."""
    arguments = [w for w in words if not w.startswith("-")]
    if not arguments:
        run = ("run", "run your entry on every problem")
        show = ("show", "the page of a suite")
        return [run, ("tune", "choose its settings"), show, ("publish", "pages for a web host")]
    if len(arguments) == 1:
        return without_meaning(conf_folders.names("arena"))
    return list(override_candidates(word, words)) if arguments[0] in ("run", "tune") else []


def _families(word: str) -> list[Candidate]:
    """Groups of the catalogue, or families of one of them."""
    group = word.split("/")[0]
    if "/" not in word or group not in GROUPS:
        return without_meaning(GROUPS)
    return [(f"{group}/{family}", ", ".join(names)) for family, names in families(group).items()]


def _entries(word: str) -> list[Candidate]:
    """Entries of the catalogue, or first its groups."""
    if "/" not in word:
        return [("config", "the run-level keys"), *((f"{group}/", "") for group in GROUPS)]
    group = word.split("/")[0]
    return [(f"{group}/{name}", "") for name in (options(group) if group in GROUPS else [])]


def candidates(line: str) -> list[Candidate]:
    """Candidates for the last word of a command line; the word is empty after a space."""
    # PYTHONPATH=. runner …
    words = list(itertools.dropwhile(lambda word: "=" in word, line.split()))[1:]
    word = words.pop() if words and not line[-1:].isspace() else ""
    with conf_folders.restore_folders_on_exit():
        with suppress(ConfigError):
            conf_folders.use_given(words)
        matches = _candidates(word, words)
    return [(text, meaning) for text, meaning in matches if text.startswith(word)]


def _candidates(word: str, words: list[str]) -> list[Candidate]:
    """Candidates of any prefix; ``candidates`` keeps those that match the word."""
    matches: Iterable[Candidate]
    if words and words[0] in COMMANDS:
        matches = _argument(words[0], word, words[1:])
    elif words and words[-1] in ("--cfg", "-c"):
        matches = [("job", "the run's config"), ("hydra", "Hydra's own"), ("all", "both")]
    elif word.startswith("-"):
        matches = FLAGS
    else:
        matches = override_candidates(word, words)
        if not words and "=" not in word:
            matches = [
                *((name, command.meaning) for name, command in COMMANDS.items()),
                *matches,
            ]
    return list(matches)


def main(argv: list[str]) -> int:
    """Print a shell's script, or, for the command ``query``, the candidates for a line."""
    if argv[1:2] == ["query"]:
        for text, meaning in candidates(argv[2] if len(argv) > 2 else ""):
            print(f"{text}\t{' '.join(meaning.split())}")
        return 0
    parser = Parser(
        description="Prints the script for tab completion of commands, experiments, components, keys and "
        'their values. bash and zsh: put  eval "$(runner completion bash)"  (or zsh) in ~/.bashrc or ~/.zshrc; '
        "fish: runner completion fish > ~/.config/fish/completions/runner.fish",
        epilog='Hydra\'s own completion, eval "$(runner -sc install=bash)", completes overrides only and loads Hydra '
        "at every tab; install one of the two. Exit code 0, or 2 for an unknown shell.",
    )
    parser.add_argument(
        "shell", nargs="?", help=" | ".join(SCRIPTS) + " (default: the one in $SHELL)"
    )
    shell = parser.parse(argv).shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SCRIPTS:
        raise ConfigError(f"{shell!r}: unknown shell; choose one of {', '.join(SCRIPTS)}")
    print(SCRIPTS[shell], end="")
    return 0
