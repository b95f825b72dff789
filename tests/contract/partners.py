"""The smallest partners with which each component makes a whole run, found from what the classes
declare.

A component that nothing here fits makes ``runs`` raise: every component is built and stepped by the
contract test."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from components import registry
from components.contracts.roles import Component
from components.registry import CHOSEN, REQUIRED
from runner import CONF
from runner.compose.build import build_component
from runner.compose.fit.pairs import check_model, check_pairs
from runner.compose.parts import expand_component
from runner.errors import ConfigError

# Keys that make a component small, wherever it takes part; a component of a plug-in needs none.
SMALL: dict[str, dict[str, list[str]]] = {
    "dataset": {
        "alternating": ["n_steps=12", "n_ahead=2"],
        "co2": ["n_train=12", "n_ahead=2", "simulated=true"],
        "airline": ["n_train=12", "n_ahead=2", "simulated=true"],
        "nutria": ["n_train=12", "n_ahead=2", "simulated=true"],
        "dlm_sim": ["n_steps=12", "n_ahead=2"],
        "hmm_sim": ["n_steps=12", "n_ahead=2"],
        "airfoil": ["simulated=true", "n_test=1480"],
        "asymmetric_wiener": ["n_steps=12"],
        "cifar10": ["n_train=24", "n_test=6", "simulated=true"],
        "digits": ["n_train=24", "n_test=6"],
        "diabetes": ["n_test=420"],
        "bimodal_toy": ["n_train=20", "n_test=10"],
        "binary_simulation": ["n_train=20", "n_test=10"],
        "binarised_fashion": [
            "n_train=24",
            "n_test=6",
            "batch_size=4",
            "importance_samples=30",
            "offline=always",
        ],
        "binarised_mnist": [
            "n_train=24",
            "n_test=6",
            "batch_size=4",
            "importance_samples=30",
            "offline=always",
            "ais_temperatures=2",
        ],
        "heteroscedastic_toy": ["n_train=20", "n_test=10"],
        "faims_sim": ["n_patients=20", "n_cases=8", "n_df=4", "n_cv=8", "n_components=2"],
        "fashion_mnist": ["n_train=24", "n_test=6"],
        "friend_or_foe": ["episodes=6"],
        "iterated_matrix": ["episodes=6"],
        "data_sharing": ["episodes=6"],
        "blotto": ["episodes=6"],
        "coin_game": ["episodes=4", "moves=4", "size=3"],
        "friend_or_foe_grid": ["episodes=4"],
        "images": ["n_train=24", "n_test=6"],
        "imdb": ["n_train=24", "n_test=6", "simulated=true", "length=6", "n_words=20"],
        "pettingzoo": [
            "env=runner.python.games:parallel_env",
            "kwargs={game: coin_game, size: 3}",
            "episodes=4",
            "horizon=4",
        ],
        "reviews": ["n_train=24", "simulated=true", "length=6", "n_words=20"],
        "retail_sim": ["n_steps=30", "n_train=24"],
        "linear_simulation": ["n_train=20", "n_test=10"],
        "lgssm": ["n_steps=12"],
        "local_level": ["n_steps=12"],
        "log_density": ["function=own_things:log_density", "dim=2"],
        "csv_series": [
            f"path={Path(__file__).parent.parent / 'fixtures' / 'series.csv'}",
            "columns=[pm25]",
            "truth=[network]",
        ],
        "csv": [
            f"path={Path(__file__).parent.parent / 'fixtures' / 'table.csv'}",
            "targets=[height,weight]",
            "inputs=[age,city,owner]",
        ],
        "logistic_synthetic": ["n_train=20", "n_test=10", "n_inputs=3"],
        "london_air": ["hours=24", "simulated=true"],
        "matern_sde": ["n_steps=12"],
        "mixture_sim": ["n_train=12", "n_test=6"],
        "mnist": ["n_train=24", "n_test=6"],
        "mnist_variations": ["n_train=12", "n_test=6"],
        "multitask_toy": ["n_train=8", "n_test=6"],
        "nonlinear_growth": ["n_steps=12"],
        "normal_sample": ["n_test=6"],
        "sarcos": ["n_train=20", "n_test=10"],
        "sarcos_sim": ["n_train=20", "n_test=10"],
        "texts": [f"path={Path(__file__).parent.parent / 'fixtures' / 'texts.txt'}"],
        "bars": ["side=3", "n_train=12", "n_test=6", "length=8", "batch_size=4"],
        "word_counts": [
            "corpus=sms_spam",
            "simulated=true",
            "n_words=12",
            "n_train=60",
            "batch_size=20",
        ],
        "sms_spam": ["n_words=6", "n_train=60"],
        "spambase": ["n_train=60"],
        "stochastic_volatility": ["n_steps=12"],
        "smooth_function": ["n_train=20", "n_test=10", "terms=30"],
        "tan": ["n_steps=12"],
        "tosses": ["n_test=5"],
        "titanic": ["n_test=2180"],
        "airlines": ["n_train=20", "n_test=10", "simulated=true"],
        "year": ["n_train=20", "n_test=10", "simulated=true"],
        "uci_classification": ["set=crabs", "simulated=true"],
        "two_moons": ["n_train=20", "n_test=10"],
        "wiener_velocity": ["n_steps=12"],
    },
    "model": {
        "bnn": ["widths=[3]"],
        "cnn": ["channels=[2,2]", "widths=[4]"],
        "cgp": ["n_inducing=4"],
        "cmdgp": ["n_inducing=4", "inner_dim=2"],
        "collapsed_mdgp": ["n_inducing=4"],
        "dgp": ["n_inducing=4", "inner_dim=2"],
        "dlm": ["period=2"],
        "dp_mixture": ["truncation=3"],
        "dvae": ["units=3"],
        "hmm": ["states=2"],
        "gaussian_mixture": ["clusters=2"],
        "gp_classifier": ["n_inducing=4"],
        "gpytorch": ["class_path=own_things:Sparse", "n_inducing=4"],
        "gpytorch_gp": ["n_inducing=4"],
        "idgp": ["n_inducing=4", "inner_dim=2"],
        "igp": ["n_inducing=4"],
        "irf": ["trees=2"],
        "lgssm": ["unknown={observation_sd: {law: half_normal, scale: 1.0}, state_sd: null}"],
        "lstm": ["words=3", "units=3"],
        "mann2": ["widths=[3]"],
        "mann3": ["widths=[3,3]"],
        "mbnn2": ["widths=[3]"],
        "mbnn3": ["widths=[3,3]"],
        "mlp": ["widths=[3]", "dropout=0.1"],
        "mmdgp": ["n_inducing=4", "inner_dim=2"],
        "module": ["class_path=own_things:Net", "arguments={inputs: 2, outputs: 2}"],
        "roberta": [f"folder={Path(__file__).parent.parent / 'fixtures' / 'roberta'}"],
        "state_dict": [
            f"path={Path(__file__).parent.parent / 'fixtures' / 'weights.safetensors'}",
            "network={name: mlp, widths: [3]}",
        ],
        "text_transformer": ["words=4", "hidden=3"],
        "vgg": ["depth=7", "width=2"],
        "smdgp": ["n_inducing=4", "inner_dim=2"],
        "vae": ["widths=[4]", "latent_dim=2"],
        "cvae": ["widths=[4]", "latent_dim=2"],
        "lda": ["n_topics=3"],
    },
    "inference": {
        "acra": ["draws=2", "candidates=2", "changes=1"],
        "adam_noise": ["burn_in=1"],
        "particle_mcmc": ["filter={name: bootstrap_filter, particles: 8}"],
        "psgld": ["burn_in=1"],
        "adversarial_training": ["training_attacker=fgsm"],
        "ara_training": ["chains=2", "attack_steps=1.0"],
        "beta_bootstrap_filter": ["particles=8"],
        "auxiliary_filter": ["particles=8"],
        "beta_auxiliary_filter": ["particles=8"],
        "bootstrap_filter": ["particles=8"],
        "generalised_filter": ["particles=8"],
        "guided_filter": ["particles=8"],
        "oracle": ["particles=8"],
        "student_t_filter": ["particles=8"],
        "aadm": ["n_predict=2", "n_samples=3"],
        "avb": ["n_predict=2", "n_samples=3"],
        "bayes_by_backprop": ["n_predict=2", "measured=2"],
        "bbvi": ["draws=3"],
        "cavi": ["starts=2", "draws=4"],
        "em": ["starts=2"],
        "conjugate_bayes": ["draws=8", "simulations=4"],
        "crp_gibbs": ["chains=2", "burn_in=0", "scans=1"],
        "dalvi": ["changes=1"],
        "deep_ensemble": ["members=2"],
        "dsvi": ["n_predict=2"],
        "ffbs": ["filter={name: bootstrap_filter, particles: 8}"],
        "structural_gibbs": ["burn_in=1", "chains=2"],
        "structural_mle": ["restarts=2", "draws=3"],
        "swa": ["every=1"],
        "iterate_ensemble": ["every=1"],
        "swag": ["n_predict=2", "every=1"],
        "two_filter": ["filter={name: bootstrap_filter, particles: 8}"],
        "ffbsi": ["filter={name: bootstrap_filter, particles: 8}", "trajectories=4"],
        "four_statisticians": ["draws=8", "simulations=4", "number=3"],
        "full_rank_vi": ["draws=3"],
        "gaussian_vi": ["draws=3"],
        "gradient_variance": ["at=[1]", "iterations=[1]", "draws=4", "batches=1"],
        "hmc": ["chains=3", "warmup=1", "max_steps=4"],
        "importance_sampling": ["chains=8", "proposal=student_t"],
        "laplace": ["n_predict=2"],
        "lbfgs": ["n_samples=2", "n_predict=2"],
        "maximum_likelihood": ["simulations=4"],
        "bb_alpha": ["n_samples=2", "n_predict=2"],
        "mc_dropout": ["n_predict=2"],
        "mc_dropout_alpha": ["n_samples=2", "n_predict=2"],
        "renyi_vi": ["n_samples=2", "n_predict=2"],
        "mean_field_vi": ["n_predict=2"],
        "nuts": ["chains=3", "warmup=1", "max_depth=3"],
        "posterior_concentration": ["numbers=[4,8]", "simulations=3"],
        "stopping_rule": ["n_max=30", "width=0.5", "simulations=4"],
        "online_beta": [
            "filter={name: beta_bootstrap_filter, particles: 8}",
            "betas=[0.0, 0.1]",
            "window=3",
        ],
        "ridge_path": ["number=3"],
        "smc2": ["filter={name: bootstrap_filter, particles: 8}", "sets=6"],
        "robustification": ["chains=2", "undefended_steps=1", "train_eps=1"],
        "select_beta": [
            "filter={name: beta_bootstrap_filter, particles: 8}",
            "betas=[0.0, 0.1]",
            "share=0.5",
        ],
        "statistical_risk": ["simulations=4"],
        "vi": ["n_predict=2", "bound_samples=2"],
        "vis": ["draws=3"],
        "sivi": ["draws=3", "widths=[4]", "extra_samples=2", "bound_samples=3"],
        "uivi": ["draws=3", "widths=[4]", "n_samples=3", "bound_samples=3"],
        "ksivi": ["draws=3", "widths=[4]", "n_samples=4", "bound_samples=3"],
        "vcd": ["draws=3", "improve_steps=2"],
    },
    "attacker": {
        "ara": ["eps=[0,1]"],
        "cw": ["eps=[0.0,0.5]", "searches=1", "steps=2"],
        "dalvi": ["eps=[0,1]"],
        "regulator": ["regulates=tit_for_tat", "every=2"],
        "replayed": [f"file={Path(__file__).parent.parent / 'fixtures' / 'actions.txt'}"],
        "spoofing": ["eps=[0.0,2.0]", "steps=1", "restarts=0", "queries=1"],
        "square": ["queries=3"],
        "transfer": ["training_steps=2"],
        "word_flip": ["eps=[0,1]", "exact=1"],
        "word_insertion": ["eps=[0,1]", "exact=1"],
    },
}
CHAINS = ("chains=3", "burn_in=0", "warmup=0", "thinning=1")  # of whatever sampler has these keys
GRID = "eps=[0.0,0.1]"  # of an attack on continuous inputs that says nothing else

# Partners that are tried first: the cheap ones.
FIRST = {
    "dataset": ["gaussian", "linear_simulation", "digits", "spambase", "two_moons", "multitask_toy", "wiener_velocity",
                "friend_or_foe", "stochastic_volatility", "local_level", "images"],
    "model": ["target_density", "mlp", "linear_regression", "logistic_regression", "igp", "naive_bayes",
              "linear_gaussian_ssm", "q_table"],
    "inference": ["map", "sgld", "fit", "dsvi", "kalman", "bootstrap_filter", "q_learning", "conjugate_bayes", "vi"],
    "attacker": ["fgsm", "word_insertion", "gaussian_contamination", "exponential_smoother"],
}  # fmt: skip

# Where what the data are like decides, which no class says: mails are binary, a collapsed bound is
# for real labels.
GIVEN: dict[tuple[str, str, str], dict[str, str]] = {
    ("inference", "acra", "supervised"): {"dataset": "spambase"},
    ("inference", "dalvi", "supervised"): {"dataset": "spambase"},
    ("inference", "importance_sampling", "supervised"): {"model": "linear_regression"},
    ("inference", "particle_mcmc", "sequence"): {"dataset": "lgssm", "model": "lgssm"},
    ("inference", "extended_kalman", "sequence"): {
        "dataset": "nonlinear_growth",
        "model": "nonlinear_growth",
    },
    ("inference", "extended_rts_smoother", "sequence"): {
        "dataset": "nonlinear_growth",
        "model": "nonlinear_growth",
    },
    ("inference", "unscented_kalman", "sequence"): {
        "dataset": "nonlinear_growth",
        "model": "nonlinear_growth",
    },
    ("attacker", "regulator", "game"): {"dataset": "data_sharing"},
    ("attacker", "together", "game"): {"dataset": "blotto"},
    ("dataset", "tan", "sequence"): {"model": "tan"},
    ("model", "normal_gamma", "unlabelled"): {"dataset": "normal_sample"},
    ("inference", "series_gibbs", "sequence"): {"dataset": "local_level"},
    ("inference", "vis", "sequence"): {"dataset": "hmm_sim", "model": "hmm"},
    ("inference", "gaussian_vi", "sequence"): {"dataset": "dlm_sim", "model": "dlm"},
    ("inference", "full_rank_vi", "sequence"): {"dataset": "dlm_sim", "model": "dlm"},
    ("inference", "hmc", "sequence"): {"dataset": "dlm_sim", "model": "dlm"},
    ("inference", "nuts", "sequence"): {"dataset": "alternating", "model": "hmm"},
    ("dataset", "alternating", "sequence"): {"model": "hmm", "inference": "hmc"},
    ("dataset", "co2", "sequence"): {"model": "dlm", "inference": "hmc"},
    ("dataset", "dlm_sim", "sequence"): {"model": "dlm", "inference": "hmc"},
    ("dataset", "hmm_sim", "sequence"): {"model": "hmm", "inference": "hmc"},
    ("dataset", "airline", "sequence"): {"model": "dlm", "inference": "hmc"},
    ("dataset", "nutria", "sequence"): {"model": "dlm", "inference": "hmc"},
    ("dataset", "retail_sim", "sequence"): {"model": "structural", "inference": "structural_mle"},
    ("model", "dlm", "sequence"): {"dataset": "dlm_sim", "inference": "hmc"},
    ("model", "hmm", "sequence"): {"dataset": "hmm_sim", "inference": "hmc"},
    ("inference", "smc2", "sequence"): {"dataset": "lgssm", "model": "lgssm"},
    ("model", "local_level", "sequence"): {"dataset": "local_level"},
    ("model", "structural", "sequence"): {"dataset": "dlm_sim"},
    ("inference", "structural_gibbs", "sequence"): {"dataset": "dlm_sim", "model": "structural"},
    ("inference", "structural_mle", "sequence"): {"dataset": "dlm_sim", "model": "structural"},
    ("model", "nonlinear_growth", "sequence"): {"dataset": "nonlinear_growth"},
    ("model", "matern_sde", "sequence"): {"dataset": "matern_sde"},
    ("model", "cvae", "supervised"): {"dataset": "spambase", "inference": "vi"},
    ("model", "naive_bayes", "supervised"): {"dataset": "spambase"},
    ("inference", "lbfgs", "supervised"): {"dataset": "multitask_toy"},
    ("inference", "posterior_concentration", "supervised"): {
        "dataset": "smooth_function",
        "model": "matern_regression",
    },
    ("model", "matern_regression", "supervised"): {"dataset": "smooth_function"},
    ("inference", "stopping_rule", "unlabelled"): {"dataset": "tosses"},
    ("model", "beta_bernoulli", "unlabelled"): {"dataset": "tosses"},
    **{
        ("dataset", name, "unlabelled"): {"model": "vae"}
        for name in ("binarised_fashion", "binarised_mnist", "images")
    },
    ("model", "cgp", "supervised"): {"dataset": "multitask_toy"},
    ("model", "gpytorch_gp", "supervised"): {"dataset": "multitask_toy"},
    ("model", "gpytorch", "supervised"): {"dataset": "two_moons"},
    ("model", "module", "supervised"): {"dataset": "two_moons"},
    ("model", "state_dict", "supervised"): {"dataset": "two_moons"},
    ("model", "igp", "supervised"): {"dataset": "multitask_toy"},
}

# Keys of partners that a component cannot do without.
WITH: dict[tuple[str, str], dict[str, list[str]]] = {
    # nothing that needs noise to be differentiable
    ("model", "dvae"): {"inference": ["gradient=disarm"]},
}


# Components that are made of a user's own code: what a plug-in of these tests holds.
OF_A_PLUGIN = {("dataset", "log_density"), ("model", "gpytorch"), ("model", "module")}
PLUGIN = "own_things"


# Packages without which a component cannot be tried: a test with it is skipped.
PACKAGES = {("dataset", "pettingzoo"): "pettingzoo", ("model", "roberta"): "transformers"}


@dataclass(frozen=True)
class Run:
    """One component with its partners."""

    choice: tuple[tuple[str, str], ...]  # (role, name)

    def skip_without_packages(self) -> None:
        for package in (PACKAGES[part] for part in self.choice if part in PACKAGES):
            pytest.importorskip(package, reason=f"{package} is not installed")

    @property
    def overrides(self) -> list[str]:
        """What a user would type."""
        return (
            [f"{role}={name}" for role, name in self.choice]
            + [
                f"{role}.{key}"
                for role, name in self.choice
                for key in [*small(role, name), *asked_of(role, self.choice)]
            ]
            + ([f"plugins=[{PLUGIN}]"] if OF_A_PLUGIN & set(self.choice) else [])
        )

    def __str__(self) -> str:
        return "-".join(name for _, name in self.choice)


def small(role: str, name: str) -> list[str]:
    """Overrides that make a component small."""
    keys = list(SMALL.get(role, {}).get(name, []))
    fields = registry.get(role, name).model_fields
    if role == "inference":
        said = {key.split("=")[0] for key in keys}
        keys += [
            key for key in CHAINS if key.split("=")[0] in fields and key.split("=")[0] not in said
        ]
    domain = vars(registry.get(role, name)).get("domain", "continuous")
    if (
        role == "attacker"
        and domain == "continuous"
        and "Evasion" in {c.__name__ for c in registry.get(role, name).__mro__}
    ):
        keys = keys if any(key.startswith("eps") for key in keys) else [GRID, *keys]
    return keys


def asked_of(role: str, choice: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Overrides of a role's keys without which the others of a choice would not fit it."""
    return tuple(key for other in choice for key in WITH.get(other, {}).get(role, []))


def ordered(role: str) -> list[str]:
    """Names of a role, the cheap ones first."""
    first = [name for name in FIRST[role] if name in registry.names(role)]
    return first + [name for name in registry.names(role) if name not in first]


@cache
def made(role: str, name: str, asked: tuple[str, ...] = ()) -> Component:
    """A small component by itself, as its YAML and ``small`` have it, and what others ask of it."""
    values: dict = OmegaConf.to_container(OmegaConf.load(CONF / role / f"{name}.yaml"))  # type: ignore[assignment]
    values |= {
        key: yaml.safe_load(value)
        for key, value in (pair.split("=", 1) for pair in [*small(role, name), *asked])
    }
    return build_component(role, expand_component(role, values, role), role)


@cache
def _fits_data(dataset: tuple[str, tuple[str, ...]], model: tuple[str, tuple[str, ...]]) -> bool:
    """Whether a model can read what a dataset holds: a name each, and what others ask of it."""
    try:
        check_model(made("dataset", *dataset), made("model", *model))
    except ConfigError:
        return False
    return True


def fits(dataset: str, model: str, inference: str, attacker: str | None) -> bool:
    """Whether the four make a run."""
    choice = list(zip(CHOSEN, (dataset, model, inference), strict=False))
    asked = [(name, asked_of(role, choice)) for role, name in choice]
    if not _fits_data(asked[0], asked[1]):
        return False
    try:
        parts = [made(role, *named) for role, named in zip(CHOSEN, asked, strict=False)]
        check_pairs(*parts, None if attacker is None else made("attacker", attacker))
    except ConfigError:
        return False
    return True


def found(kind: str, **fixed: str) -> Run:
    """The first run on a problem of a kind that holds the components named.

    Raises:
        LookupError: there is none."""
    choices = [[fixed[role]] if role in fixed else ordered(role) for role in REQUIRED]
    datasets, models, methods = (
        [name for name in names if _takes(role, name, kind)]
        for role, names in zip(REQUIRED, choices, strict=True)
    )
    attackers = [fixed["attacker"]] if "attacker" in fixed else [None, *ordered("attacker")]
    for attacker, *names in itertools.product(attackers, datasets, models, methods):
        if fits(*names, attacker):
            named = dict(zip(REQUIRED, names, strict=True))
            named |= {"attacker": attacker} if attacker else {}
            return Run(tuple(named.items()))
    raise LookupError(f"no {kind} run with {fixed}")


def _takes(role: str, name: str, kind: str) -> bool:
    """Whether a component takes part in problems of a kind."""
    cls = registry.get(role, name)
    return kind == cls.kind if role == "dataset" else kind in cls.requires.kinds


def kinds(role: str, name: str) -> list[str]:
    """Kinds of problem that a component takes part in; one for each inference kind, the first of
    the others'."""
    cls = registry.get(role, name)
    if role == "dataset":
        return [cls.kind]
    every = sorted(cls.requires.kinds)
    return every if role == "inference" else every[:1]


@cache
def runs_of(role: str, name: str) -> tuple[Run, ...]:
    """Runs that hold a component, one for each kind of problem where something fits it.

    Raises:
        LookupError: nothing fits it anywhere."""
    out = []
    for kind in kinds(role, name):
        with contextlib.suppress(LookupError):  # no density has conditionals, say
            out.append(found(kind, **{role: name}, **GIVEN.get((role, name, kind), {})))
    if not out:
        raise LookupError(f"{role}={name}: nothing fits it")
    return tuple(out)


@cache
def runs() -> tuple[Run, ...]:
    """Runs that hold every component that a run chooses, each as small as it can be."""
    out = {run for role in CHOSEN for name in registry.names(role) for run in runs_of(role, name)}
    return tuple(sorted(out, key=str))
