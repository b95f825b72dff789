"""``runner sbc``: simulation-based calibration of a composed config."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from runner.catalogue.settings import Values
from runner.disk import conf_folders
from runner.errors import ConfigError
from runner.terminal.arguments import Parser

INTERRUPTED = 130


def main(argv: list[str]) -> int:
    """Calibrate one config; return the exit code."""
    parser = Parser(
        description="Simulation-based calibration (Talts et al. 2018; Modrák et al. 2023). θ* is drawn from the prior of the "
        "model, and labels are simulated given θ* at the inputs of the dataset. The inference is fitted to them, and the rank "
        "of each true value among independent posterior draws is recorded. For correct posteriors the ranks are uniform. "
        "Ranked quantities: named parameters, f(x) and a new label y(x) at held-out inputs, and the log joint (or log "
        "likelihood), the only one that detects a posterior that ignores its data. Each data set is saved when it is done: "
        "the same command continues, and a larger --data-sets adds to the existing ones.",
        epilog="Exit code 0; 1 with --check if calibration is rejected (Bonferroni at 1 %% over all tests) or a fit "
        "failed; 2 if the config cannot be calibrated; 130 after an interrupt.",
    )
    parser.add_argument(
        "words",
        nargs="+",
        metavar="key=value",
        help="overrides of the config, including +experiment=…",
    )
    # fewer data sets have no power
    parser.add_count("--data-sets", "number of simulated data sets (default: 100)", 100, least=20)
    parser.add_count("--draws", "L, number of posterior draws for each rank (99)", 99, least=9)
    parser.add_count("--bins", "bins of χ² test and histograms (10)", 10, least=2)
    parser.add_count("--inputs", "number of held-out rows, or future times, to predict (3)", 3)
    parser.add_count("--jobs", "processes (1)", 1)
    parser.add_argument("--check", action="store_true", help="exit code 1 if rejected, for CI")
    conf_folders.add_option(parser)
    arguments = parser.parse(argv)
    _check_arguments(arguments)
    from components.errors import ConfigMismatchError, DataUnavailableError

    try:
        return _calibrate(arguments)
    except (ConfigMismatchError, DataUnavailableError) as error:
        raise ConfigError(str(error)) from None


def _check_arguments(arguments: Namespace) -> None:
    """Validate the bins and the overrides.

    Raises:
        ConfigError: the bins have unequal numbers of ranks, or a word is no override.
    """
    if (arguments.draws + 1) % arguments.bins:
        raise ConfigError(
            f"sbc: --bins {arguments.bins}: must divide {arguments.draws + 1}, the number of ranks with --draws "
            f"{arguments.draws}"
        )
    for word in arguments.words:
        if "=" not in word:
            raise ConfigError(f"sbc: {word!r} is not an override; write key=value")


def _calibrate(arguments: Namespace) -> int:
    from runner.commands.sbc.fits import ONCE, Fitter, RankSettings, fit_all
    from runner.commands.sbc.rank_record import (
        FOLDER,
        add_row,
        name_folder,
        open_ranks,
        read_rows,
    )
    from runner.compose.resolve import resolve_words
    from runner.record.code import commit, identity, versions
    from runner.terminal.printer import show_count
    from runner.terminal.tables import print_named

    words = list(arguments.words)
    settings = RankSettings(arguments.draws, arguments.inputs)
    fitter = Fitter(resolve_words(words, ONCE), settings)
    job = fitter.job
    for note in job.notes:
        print_named("note", note)
    name = name_folder(job.config, job.data, settings)
    folder = Path(job.settings.output_dir) / FOLDER / name
    facts = {
        "words": words,
        "config_dir": arguments.config_dir,
        "draws": settings.draws,
        "inputs": settings.inputs,
        "data": job.data,
    }
    facts |= {"config": job.config, "code": identity(commit(), versions())}
    total = arguments.data_sets
    if job.settings.fresh or not read_rows(folder).keys() >= set(range(total)):
        # fails here, before a folder is made, if the config cannot be calibrated
        _ = fitter.template
    try:
        with open_ranks(folder, facts, job.settings.fresh) as rows:
            missing = [number for number in range(total) if number not in rows]
            if len(missing) < total:
                print(f"{total - len(missing)} of {total} data sets are done already")
            fits = fit_all(fitter, words, missing, arguments.jobs)
            for n_done, row in enumerate(fits, total - len(missing) + 1):
                add_row(folder, row)
                show_count("data sets", n_done, total)
    except KeyboardInterrupt:
        kept = len(read_rows(folder))
        print(f"interrupted; {kept} data sets are saved; repeat the command to continue")
        return INTERRUPTED
    done = [row for number, row in read_rows(folder).items() if number < total]
    return _conclude(folder, done, arguments)


def _conclude(folder: Path, done: list[Values], arguments: Namespace) -> int:
    """Print and write the results; return the exit code."""
    from runner.commands.sbc.rank_record import HEADER, RankResults, write_results
    from runner.terminal.tables import print_table

    results = RankResults.of_rows(done, arguments.draws, arguments.bins)
    if results.ranks:
        write_results(folder, results)
        print_table("", HEADER, results.cells())
    print(results.conclude())
    print(folder)
    return 1 if arguments.check and results.is_refused else 0
