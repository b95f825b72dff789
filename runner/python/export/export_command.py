"""``runner export``: export a fitted model to a file and to MLflow."""

from __future__ import annotations

from pathlib import Path

from runner.catalogue import plugins
from runner.disk.scratch import scratch_folder
from runner.errors import ConfigError
from runner.record.folders import find
from runner.terminal.arguments import Parser, add_output_dir, existing_folder

SUFFIX = ".zip"


def main(argv: list[str]) -> int:
    """Export a run; return exit code 0."""
    parser = Parser(
        description="Write the posterior of a run to one file that predicts without data or record: weights in safetensors, "
        "config, columns and a model card in Markdown, without code or pickle. Before writing, the model is rebuilt from the "
        "file's content and must predict the same numbers. Training rows are included only if the posterior requires them. "
        "runner predict reads the file.",
        epilog="Exit code 0; 1 if no checkpoint is readable by this version; 2 if the run cannot be exported.",
    )
    parser.add_argument("run", help="folder of the run, or the beginning of its signature")
    parser.add_argument("file", nargs="?", help="file to write, model.zip (optional with --mlflow)")
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--data-dir", type=existing_folder, help="folder of the data files (default: as recorded)"
    )
    parser.add_argument(
        "--mlflow",
        action="store_true",
        help="also log the model to the run's entry in MLflow, for mlflow models serve and predict",
    )
    parser.add_argument(
        "--register",
        metavar="NAME",
        help="with --mlflow: add a version of the registered model NAME",
    )
    plugins.add_own_options(parser, "a module with components of the run")
    arguments = parser.parse(argv)
    if arguments.register is not None and not arguments.mlflow:
        raise ConfigError("export: --register requires --mlflow; add it")
    if arguments.file is None and not arguments.mlflow:
        raise ConfigError("export: no file given; add one, such as model.zip")
    if arguments.file is not None and Path(arguments.file).suffix != SUFFIX:
        raise ConfigError(f"export: {arguments.file}: must end with {SUFFIX}; rename it")
    plugins.import_plugins(arguments.plugin, "--plugin")
    folder = find(arguments.run, arguments.output_dir)

    from runner.python.export.restored import restore_record
    from runner.python.export.write_model import write_model
    from runner.report.compared_record import load

    compared = load(folder)
    run = restore_record(folder, compared.facts, arguments.data_dir and str(arguments.data_dir))
    with scratch_folder() as scratch:
        given = arguments.file
        file = scratch / "model.zip" if given is None else Path(given)
        stored = write_model(run, folder, compared, file)
        if given is not None:
            rows = "with" if stored.facts["holds_training_rows"] else "without"
            size = f"{file.stat().st_size / 1e6:.2g} MB"
            print(f"{file}: {size}, {rows} training rows; predict with runner predict {file}")
        if arguments.mlflow:
            from runner.disk.secrets import mask_secrets
            from runner.python.export.log_to_mlflow import log_to_mlflow
            from runner.tracking.store import tracking_uri

            address = log_to_mlflow(file, folder, stored.requirements.split(), arguments.register)
            store = mask_secrets(tracking_uri(folder.parent.parent))
            print(f"{address} in {store}")
            print(
                f"MLFLOW_TRACKING_URI={store} mlflow models serve -m {address} --env-manager local"
            )
    return 0
