"""Colliding or invalid names, and long texts."""

import pytest
import yaml
from support.runs.made_records import STARTED, client_of, history, line, make_record, write

from runner.record.facts import read
from runner.tracking.mirror import Mirror
from runner.tracking.names import keys

FINE = ["final/rmse", "β_2", "a b:c.d-e/f", "robust_accuracy/eps_0.1"]


def test_many_metrics_with_unusual_names_are_stored(outputs):
    folder = make_record(outputs)
    metrics = {f"β[{i}]": float("nan") if i % 2 else float(i) for i in range(1300)}
    lines = [line(step, 0, "train") | {"metrics": metrics} for step in (1, 2)]
    write(folder, lines, read(folder) | {"started": STARTED})
    mirror = Mirror(folder, outputs)
    assert mirror.push(), mirror.trouble
    run = client_of(outputs).get_run(mirror.run_id)
    assert len([name for name in run.data.metrics if name.startswith("train/")]) == 1300
    assert len(history(client_of(outputs), run, "train/β_2_")) == 2


ODD = {
    "rmse/a%": 0.6,
    "rmse/a$": 1.2,
    "rmse/a_": 5.0,
    "mg/../L": 1.0,
    "/x": 2.0,
    "y//z/": 3.0,
    "b" * 300: 4.0,
    "b" * 299 + "c": 5.0,
}


def test_colliding_and_invalid_names_are_stored_separately(outputs):
    folder = make_record(outputs)
    result = {name: [value] for name, value in ODD.items()}
    facts = read(folder) | {"result": result, "finished": {"0": ODD}}
    write(folder, [line(1, 0, "final") | {"metrics": ODD}], facts)
    config = {"experiment": "made", "long": "x" * 900, "a%": 1, "a$": 2, "description": "d" * 9000}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    mirror = Mirror(folder, outputs)
    assert mirror.push(), mirror.trouble
    run = client_of(outputs).get_run(mirror.run_id)
    metrics = run.data.metrics
    final = {k.removeprefix("final/"): v for k, v in metrics.items() if k.startswith("final/")}
    assert sorted(final.values()) == sorted(ODD.values())  # none lost
    user_metrics = {"rmse/a_": 5.0, "mg/__/L": 1.0}
    assert user_metrics.items() <= final.items(), "a name that is fine stays"
    assert {v for k, v in final.items() if k.startswith("rmse/a_ ")} == {0.6, 1.2}
    assert {name: metrics[f"result/{name}"] for name in final} == final
    assert run.info.status == "FINISHED"
    long = run.data.params["long"]
    mark = "(truncated, complete in the record's config.yaml)"
    assert len(long) == 500
    assert long.endswith(f"x … {mark}")
    assert run.data.tags["mlflow.note.content"].endswith(mark)
    assert {value for name, value in run.data.params.items() if name.startswith("a_")} == {"1", "2"}


@pytest.mark.parametrize(
    ("names", "keys_of_mlflow"),
    [
        (FINE, FINE),
        (["theta[0]"], ["theta_0_"]),  # keeps its usual name without a collision
        (["a%", "a$", "a_"], ["a_", None, None]),  # the first run keeps it
    ],
)
def test_order_of_lines_resolves_collisions(names, keys_of_mlflow):
    names_found = keys(names)
    assert list(names_found) == names
    assert len(set(names_found.values())) == len(names)
    for key, expected in zip(names_found.values(), keys_of_mlflow, strict=True):
        assert expected in (key, None)
