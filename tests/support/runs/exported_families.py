"""Exported model families: a user's small table, texts, and a run of each family."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from runner import Result, run

HOUSES = "houses.csv"
TEXTS = "texts.txt"
KINDS = ("flat", "house", "hut")
ROWS = 60
NAMES = ["area", "kind", "sea", "price", "rent", "sold", "part"]
TRAIN = 45  # training rows; the others are for the test
WORDS = {
    "fruit": ["apple", "pear", "plum", "cherry", "grape", "melon"],
    "tool": ["hammer", "saw", "drill", "wrench", "chisel", "plane"],
}


def write_houses(file: Path, n: int = ROWS) -> None:
    """Write a table with numbers, texts and booleans: two real labels, a class and the split."""
    rng = np.random.default_rng(0)
    with file.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(NAMES)
        for row in range(n):
            area = 20 + 100 * rng.random()
            kind = str(rng.choice(KINDS))
            sea = bool(rng.random() < 0.4)
            price = 100 + 3 * area + 50 * sea + 20 * (kind == "house") + 10 * rng.normal()
            labels = [price, 0.01 * price + rng.normal(), "yes" if price > 300 else "no"]
            labels.append("train" if row < TRAIN else "test")
            inputs = [area, kind, str(sea).lower()]
            rows.writerow(inputs + labels)


def write_texts(file: Path) -> None:
    """Write documents about fruit or tools, one per line."""
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(WORDS[topic], 12)) for topic in rng.choice([*WORDS], 30)]
    file.write_text("\n".join(lines) + "\n")


def table(*targets: str, labels: str = "real") -> list[str]:
    """The dataset: houses with some columns as labels."""
    others = [name for name in NAMES[3:-1] if name not in targets]
    return [
        "dataset=csv",
        f"dataset.path={HOUSES}",
        f"dataset.targets=[{','.join(targets)}]",
        f"dataset.exclude=[{','.join(others)}]",
        f"dataset.labels={labels}",
        "dataset.split=part",
    ]


SAMPLER = ["inference.burn_in=10", "inference.thinning=2"]
# Overrides of each family's run.
FAMILIES: dict[str, list[str]] = {
    "exact_gp": [*table("price"), "model=igp", "inference=lbfgs", "steps=3"],
    "sparse_gp": [
        *table("price"),
        "model=igp",
        "model.posterior=sparse",
        "model.n_inducing=8",
        "inference=dsvi",
        "steps=5",
    ],
    "icm": [*table("price", "rent"), "model=cgp", "inference=lbfgs", "steps=3"],
    "lmc_of_a_prefix": [
        *table("price", "rent"),
        "model=lmc",
        "model.prediction=sparse",
        "model.learn_labels=20",
        "model.prediction_pairs=15",
        "inference=lbfgs",
        "steps=3",
    ],
    "gpar": [
        *table("price", "rent"),
        "model=gpar",
        "model.iterations=2",
        "inference=fit",
        "steps=1",
    ],
    "multi_task_deep_gp": [
        *table("price", "rent"),
        "model=cmdgp",
        "inference=dsvi",
        "model.n_inducing=6",
        "steps=4",
    ],
    "deep_gp": [*table("price"), "model=dgp", "inference=vi", "steps=4"],
    "mlp_sgld": [
        *table("price"),
        "model=mlp",
        "model.widths=[8]",
        "inference=sgld",
        "steps=30",
        *SAMPLER,
    ],
    "deep_ensemble": [
        *table("price"),
        "model=mlp",
        "model.widths=[8]",
        "inference=deep_ensemble",
        "steps=5",
    ],
    "mean_field_net": [
        *table("sold", labels="binary"),
        "model=mlp",
        "model.widths=[8]",
        "inference=mean_field_vi",
        "steps=5",
        "dtype=float32",
    ],
    "logistic_regression": [
        *table("sold", labels="binary"),
        "model=logistic_regression",
        "inference=gaussian_vi",
        "steps=5",
    ],
    "linear_regression": [
        *table("price"),
        "model=linear_regression",
        "inference=conjugate_bayes",
        "steps=1",
    ],
    "forest": [*table("price"), "model=irf", "model.trees=5", "inference=fit", "steps=1"],
    "probit": [
        *table("sold", labels="binary"),
        "model=probit_regression",
        "inference=gibbs",
        "steps=30",
        "inference.burn_in=10",
    ],
    "mixture": [
        *table(),
        "model=gaussian_mixture",
        "inference=cavi",
        "steps=5",
        "inference.starts=2",
    ],
    "topics": [
        "dataset=texts",
        f"dataset.path={TEXTS}",
        "dataset.min_documents=1",
        "model=lda",
        "model.n_topics=2",
        "inference=lda_collapsed_gibbs",
        "inference.burn_in=4",
        "inference.thinning=2",
        "steps=10",
    ],
    "structural_series": [
        "dataset=airline",
        "dataset.n_train=30",
        "dataset.n_ahead=6",
        "model=structural",
        "model.blocks=[{name: local_linear_trend, df: 5.0}, {name: seasonal, period: 12, df: 5.0}]",
        "inference=structural_gibbs",
        "inference.chains=2",
        "inference.burn_in=4",
        "steps=12",
    ],
}


def fit(folder: Path, family: str, **settings: Any) -> Result:
    """A run of a family on data in a folder."""
    (folder / "data").mkdir(exist_ok=True)
    write_houses(folder / "data" / HOUSES)
    write_texts(folder / "data" / TEXTS)
    places = {"data_dir": str(folder / "data"), "output_dir": str(folder / "outputs")}
    return run(None, *FAMILIES[family], tracking=False, offline=True, **places, **settings)
