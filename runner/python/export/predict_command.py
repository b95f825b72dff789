"""``runner predict``: write predictions of an exported model as CSV."""

from __future__ import annotations

import sys
from pathlib import Path

from runner.catalogue import plugins
from runner.catalogue.settings import parse_device
from runner.disk.atomic import write_bytes
from runner.disk.scratch import scratch_folder
from runner.python.export.export_command import SUFFIX
from runner.python.runs_table import WRITERS, to_csv
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.tables import print_json

PredictedRow = dict[str, float | str | None]  # by column of the predictions


def main(argv: list[str]) -> int:
    """Predict the rows of a file; return exit code 0."""
    parser = Parser(
        description="Predict with a run, or with a file written by runner export: mean, sd and quantiles of real labels and "
        "series, class and probabilities, cluster and probabilities, or proportions of topics; one line per row, in the units "
        "of the data. A file requires neither data nor a record. It is verified, and it contains no code.",
        epilog="The same rows have the same predictions in every process, because Monte-Carlo draws use the run's stream "
        "'evaluation'. Exit code 0, or 2 for an invalid file or invalid rows.",
    )
    parser.add_argument(
        "model",
        help="file of runner export; or a run: its folder, or the beginning of its signature",
    )
    add_output_dir(parser)
    parser.add_argument(
        "rows",
        nargs="?",
        help="CSV or Parquet file with the model's columns; for a series its regressors at future times",
    )
    parser.add_argument("--to", help="CSV or Parquet file to write (default: CSV to the terminal)")
    parser.add_argument("--horizon", type=int, help="for a series: number of future times")
    parser.add_argument(
        "--replicate", type=int, help="one of several replicates trained side by side, from 0"
    )
    parser.add_argument("--variant", help="name of one of several variants trained side by side")
    parser.add_argument(
        "--device", type=parse_device, default="cpu", help="cpu, cuda or cuda:1 (default: cpu)"
    )
    parser.add_argument("--card", action="store_true", help="print the model card and exit")
    plugins.add_own_options(parser, "a module with components of the model")
    arguments = parser.parse(argv)
    plugins.import_plugins(arguments.plugin, "--plugin")
    file = Path(arguments.model)
    with scratch_folder() as folder:
        if not file.is_file() and file.suffix != SUFFIX:
            from runner.python.loading import load

            run = load(arguments.model, output_dir=arguments.output_dir)
            file = run.export(folder / f"model{SUFFIX}")
        if arguments.card:
            from runner.python.export.model_file import read_model_file

            print(read_model_file(file).card)
            return 0

        from runner.python.export.load_model import load_model

        model = load_model(file, device=arguments.device)
        frame = model.predict(
            arguments.rows,
            horizon=arguments.horizon,
            replicate=arguments.replicate,
            variant=arguments.variant,
        )
    if arguments.json:
        rows: list[PredictedRow] = frame.astype(object).to_dict("records")  # type: ignore[assignment]
        print_json(rows)
        return 0
    if arguments.to is None:
        sys.stdout.write(to_csv(frame).decode())
        return 0
    path = Path(arguments.to)
    write_bytes(path, WRITERS.get(path.suffix.lower(), to_csv)(frame))
    print(f"{path}: {len(frame):,} predictions")
    return 0
