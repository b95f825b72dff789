"""Kept scores of the suites: rows without scores, and commits of the scores."""

import subprocess

import pandas as pd
import pytest

from runner.arena.scores import FIXED, read_kept_lines
from runner.arena.suite import GROUP, load_suite
from runner.disk import conf_folders

SUITES = conf_folders.names(GROUP)
# Rows without kept scores at the medium (or only) budget.  Remove a row once it has scores; add none.
NEW = (
    "BBVI Rao-Blackwell; BBVI mixture; BBVI flow; HVI; SIVI; UIVI; VCD; VIS-P SGLD; VIS-MC SGLD; VIS-P HMC; "
    "NumPyro NUTS (peer); BlackJAX NUTS (peer); BlackJAX MCLMC (peer); nutpie (peer); Pathfinder (peer); emcee (peer)"
)
MISSING = {
    "posteriors": "NUTS diagonal; HMC; MALA; random walk; SGLD decaying; pSGLD; SGHMC; "
    "thermostat; thermostats; relativistic HMC; Adam with noise; momentum resampled; SVGD with AdaGrad; SGLD+R; "
    "SGDm+R; Adam+NR; Gaussian VI diagonal; Gaussian VI; BBVI VarGrad; importance sampling; "
    f"importance sampling Gaussian; importance sampling Student; {NEW}",
    "posteriors_small": NEW.removesuffix("; emcee (peer)"),
    "uci": "AADM (α = 0.25), no discriminator; AADM (α = 0.75), no discriminator",
}
# Commits of kept scores that are not in the history.  Run these again; add none.
LOST = {"bc99a4788a", "86aa7b469f"}


@pytest.mark.parametrize("name", SUITES)
def test_rows_without_kept_scores_are_the_listed_ones(name):
    suite = load_suite(name)
    budget = "medium" if "medium" in suite.budgets else suite.budget(None)
    lines = read_kept_lines(suite)
    scored = set(lines.loc[lines["budget"] == budget, "row"])
    listed = set(MISSING[name].split("; ")) if name in MISSING else set()
    assert {row.name for row in suite.rows} - scored == listed


def ask_git(*words):
    try:
        result = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git history here")
    return result.stdout.split()


def test_kept_scores_name_commits_of_the_history():
    lines = pd.concat([read_kept_lines(load_suite(name)) for name in SUITES])
    metrics = lines.columns.difference(FIXED)
    assert (lines.loc[lines[metrics].notna().any(axis=1), "commit"] != "").all()
    if ask_git("rev-parse", "--is-shallow-repository") != ["false"]:
        pytest.skip("the clone is shallow")
    history = ask_git("log", "--format=%H")
    commits = filter(None, lines["commit"].unique())
    absent = {name for name in commits if not any(each.startswith(name) for each in history)}
    assert absent == LOST


def test_searches_end_at_the_same_maximum():
    """In all replicates: the likelihood of sunspots has three maxima."""
    kept = read_kept_lines(load_suite("forecasts")).set_index(["row", "problem"])["crps"]
    assert kept["maximum likelihood", "sunspots"].std() < 1e-3
