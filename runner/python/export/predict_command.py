"""``runner predict``: predictions of an exported model as CSV."""

from __future__ import annotations

import sys
from pathlib import Path

from runner.catalogue import plugins
from runner.catalogue.settings import validate_device
from runner.disk import conf_folders
from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.python.runs_table import to_csv, to_parquet
from runner.terminal.arguments import Parser

PARQUET = (".parquet", ".pq")


def _parser() -> Parser:
    parser = Parser(
        prog="runner predict",
        description="Predicts with a file of runner export: mean, sd and quantiles of real labels and of series, class and "
        "probabilities, cluster and probabilities, or proportions of topics; a line for each row, in the units of the data. "
        "Neither the data nor the record are needed. The file is checked and nothing in it is run.",
        epilog="The same rows have the same predictions in every process: Monte-Carlo draws use the run's stream "
        "'evaluation'. Exit code 0, or 2 for a file or rows that cannot be used.",
    )
    parser.add_argument("model", help="file of runner export")
    parser.add_argument(
        "rows",
        nargs="?",
        help="CSV or Parquet file with the model's columns; of a series its regressors at the times ahead",
    )
    parser.add_argument("--to", help="CSV or Parquet file to write (default: CSV to the terminal)")
    parser.add_argument("--horizon", type=int, help="of a series: number of times ahead")
    parser.add_argument(
        "--replicate", type=int, help="of replicates trained side by side: one, from 0"
    )
    parser.add_argument("--variant", help="of variants trained side by side: one, by its name")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1 (default: cpu)")
    parser.add_argument("--card", action="store_true", help="print the model's card and end")
    plugins.add_option(parser, "a module of yours that the model needs, imported before it is read")
    conf_folders.add_option(parser)
    return parser


def main(argv: list[str]) -> int:
    """Predicts the rows of one file; exit code 0."""
    arguments = _parser().parse_intermixed_args(argv[1:])
    conf_folders.use(arguments.config_dir)
    try:
        validate_device(arguments.device)
    except ValueError as error:
        raise ConfigError(f"--{error}") from None
    plugins.import_plugins(arguments.plugin, "--plugin")
    if arguments.card:
        from runner.python.export.model_file import read_model_file

        print(read_model_file(Path(arguments.model)).card)
        return 0

    from runner.python.export.load_model import load_model

    model = load_model(arguments.model, device=arguments.device)
    frame = model.predict(
        arguments.rows,
        horizon=arguments.horizon,
        replicate=arguments.replicate,
        variant=arguments.variant,
    )
    if arguments.to is None:
        sys.stdout.write(to_csv(frame).decode())
        return 0
    path = Path(arguments.to)
    write_bytes(path, (to_parquet if path.suffix.lower() in PARQUET else to_csv)(frame))
    print(f"{path}: {len(frame):,} predictions")
    return 0
