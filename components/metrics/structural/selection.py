"""How well a selection of columns tells those that matter from those that do not."""

from __future__ import annotations

LAG = "_lag"  # what Koyck's form adds to the name of a column
INCLUSION_THRESHOLD = (
    0.5  # from this inclusion probability on a column is kept: the median probability model
)


def score_selection(
    inclusion: dict[str, float], coefficients: dict[str, float], inputs: list[str]
) -> dict[str, float]:
    """Share of truly relevant regressors found and of idle ones kept; likewise for inputs.

    Source: Barbieri and Berger (2004) for the ½; Gallego (2021), Figure 1.5.
    """
    hits_by_label: dict[str, list[float]] = {}
    for name, share in inclusion.items():
        bare = name.removesuffix(LAG)
        if bare in coefficients:
            label = "true_found" if coefficients[bare] else "idle_kept"
            label = f"inputs_{label}" if bare in inputs else label
            hits_by_label.setdefault(label, []).append(float(share >= INCLUSION_THRESHOLD))
    return {label: sum(hits) / len(hits) for label, hits in hits_by_label.items()}
