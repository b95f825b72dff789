"""The smallest partners with which each component makes a complete run, found by the package's
search, or given here for components that need a file or code of these tests.

``runs`` raises an error for a component without partners: the contract test builds and steps every
component.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from components import registry
from components.registry import CHOSEN
from runner.conformance.partners import SMALL, PartnerSearch, SmallRun

FIXTURES = Path(__file__).parent.parent / "fixtures"
OF_THESE_TESTS: dict[str, dict[str, list[str]]] = {
    "dataset": {
        "log_density": ["function=own_things:log_density", "dim=2"],
        "stan": [
            f"program={FIXTURES / 'eight_schools.stan'}",
            f"data={FIXTURES / 'eight_schools.json'}",
            "compiler=stanli",
        ],
        "posteriordb_stan": [
            f"folder={FIXTURES / 'posterior_database'}",
            "posterior=coins-coins",
            "compiler=stanli",
        ],
        "numpyro": [
            "function=own_things:numpyro_schools",
            "arguments={y: [28.0, 8.0], sigma: [15.0, 10.0]}",
        ],
        "pymc": [
            "function=own_things:pymc_schools",
            "arguments={y: [28.0, 8.0], sigma: [15.0, 10.0]}",
        ],
        "csv_series": [
            f"path={FIXTURES / 'series.csv'}",
            "columns=[pm25]",
            "truth=[network]",
        ],
        "csv": [
            f"path={FIXTURES / 'table.csv'}",
            "targets=[height,weight]",
            "inputs=[age,city,owner]",
        ],
        "texts": [f"path={FIXTURES / 'texts.txt'}"],
    },
    "model": {
        "gpytorch": ["class_path=own_things:Sparse", "n_inducing=4"],
        "module": ["class_path=own_things:Net", "arguments={inputs: 2, outputs: 2}"],
        "roberta": [f"folder={FIXTURES / 'roberta'}"],
        "state_dict": [
            f"path={FIXTURES / 'weights.safetensors'}",
            "network={name: mlp, widths: [3]}",
        ],
    },
    "inference": {"given_draws": [f"file={FIXTURES / 'draws.npy'}", "gradients=5"]},
    "attacker": {"replayed": [f"file={FIXTURES / 'actions.txt'}"]},
}
SEARCH = PartnerSearch({role: SMALL[role] | OF_THESE_TESTS.get(role, {}) for role in SMALL})
fits = SEARCH.fits
small = SEARCH.small_keys

# Components built from a user's code, which a plug-in of these tests provides.
OF_A_PLUGIN = {
    ("dataset", "log_density"),
    ("dataset", "numpyro"),
    ("dataset", "pymc"),
    ("model", "gpytorch"),
    ("model", "module"),
}
PLUGIN = "own_things"


# Packages that components require; tests of these components are skipped without the package.
PACKAGES = {
    ("dataset", "numpyro"): "numpyro",
    ("dataset", "pettingzoo"): "pettingzoo",
    ("dataset", "posteriordb_stan"): "stanli",
    ("dataset", "pymc"): "pymc",
    ("dataset", "stan"): "stanli",
    ("model", "roberta"): "transformers",
    ("inference", "lda_tomotopy"): "tomotopy",
    ("inference", "statsmodels_uc"): "statsmodels",
}


@dataclass(frozen=True)
class Run:
    """One component with its partners."""

    small: SmallRun

    def skip_without_packages(self) -> None:
        for part in self.small.choice:
            # adapters of other packages name theirs
            if package := PACKAGES.get(part) or getattr(registry.get(*part), "package", None):
                pytest.importorskip(package, reason=f"{package} is not installed")

    @property
    def choice(self) -> tuple[tuple[str, str], ...]:
        """(role, name)."""
        return self.small.choice

    @property
    def overrides(self) -> list[str]:
        """Overrides as typed by a user."""
        plugins = [f"plugins=[{PLUGIN}]"] if OF_A_PLUGIN & set(self.choice) else []
        return self.small.overrides + plugins

    def __str__(self) -> str:
        return str(self.small)


@cache
def runs_of(role: str, name: str) -> tuple[Run, ...]:
    """Runs with a component, one for each kind of problem with compatible partners.

    Raises:
        LookupError: the component has no partners."""
    return tuple(map(Run, SEARCH.find_runs(role, name)))


@cache
def runs() -> tuple[Run, ...]:
    """Runs with every component that a run chooses, each as small as possible."""
    out = {run for role in CHOSEN for name in registry.names(role) for run in runs_of(role, name)}
    return tuple(sorted(out, key=str))
