"""A simulated case-control study by field asymmetric ion mobility spectrometry (FAIMS) of urine."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from components.contracts.problems import Batch
from components.contracts.roles import BetweenZeroAndOne, Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.errors import ConfigMismatchError
from components.figures.supervised.calibration import calibration
from components.figures.supervised.hinton import hinton
from components.figures.supervised.roc import roc
from components.problems.supervised import Supervised
from components.registry import register

RUNS = 3
CONFOUNDERS = 3  # variation between healthy people, such as hydration, diet and age


@dataclass(frozen=True)
class Study:
    """The measurements and the true values that generated them."""

    current: np.ndarray  # [P, 3, n_df, n_cv], ion current ≥ 0, arbitrary units
    case: np.ndarray  # [P] bool
    markers: np.ndarray  # [K] bool: compounds with a concentration changed by the disease
    concentration: np.ndarray  # [P, 3, K], relative to the compounds' typical values


def plumes(
    alpha2: np.ndarray, alpha4: np.ndarray, loss: np.ndarray, n_df: int, n_cv: int
) -> np.ndarray:
    """Transmission [K, n_df, n_cv] of each ion at dispersion field s ∈ [0, 1] and compensation
    voltage v ∈ [−6, 6] V.

    exp(−loss s²) exp(−(v − v_k(s))² / 2w²): an ion passes if v offsets its drift v_k(s) = α₂ s³ +
    α₄ s⁵ (volts), and fewer ions pass at a stronger field; the width w is 0.25 V at s = 0 and 0.45
    V at s = 1."""
    s = np.linspace(0, 1, n_df)[None, :, None]
    v = np.linspace(-6, 6, n_cv)[None, None, :]
    alpha2, alpha4, loss = (a[:, None, None] for a in (alpha2, alpha4, loss))
    centre = alpha2 * s**3 + alpha4 * s**5
    width = 0.25 + 0.2 * s
    return np.exp(-loss * s**2 - (v - centre) ** 2 / (2 * width**2))


@register("dataset", "faims_sim")
class FaimsSim(Dataset):
    """Simulated FAIMS study of diabetes in urine: three runs per patient are three tasks.

    The three runs are successive, and the tasks are binary.  The data of Boustati's section 3.5.3
    (125 patients, including 48 cases) are not public; this simulation has their shape but is not
    comparable with the published scores.  Patient p, run r ∈ {0, 1, 2}, volatile compound k:

        log c_pk  = B_k · u_p + δ z_p [k is a marker] + ε_pk,   u_p ~ N(0, I₃),
                    ε ~ N(0, spread²)
        log c_prk = log c_pk − κ_k τ_p r + run noise
                    evaporation: κ_k from 0.05 to 1.2 per run
        current   = Σ_k a_k c_prk / (1 + Σ_j a_j c_prj) · plume_k(s, v − shift_pr)
                    + reactant ions + noise, at least 0

    where u_p are patient-level confounders, z_p ≥ 0 is a case's severity (0 for controls),
    τ_p the sample's temperature factor, and compounds compete for the same charge.  The
    signals of the runs are thus similar but not identical.  A replicate draws a new
    stratified split of the same patients; all three runs of a patient fall on the same
    side.  A sparse PCA is fitted only to the cells of the training rows, and its scores are
    standardised and divided by √n_components (a row then has a mean squared norm of 1, the
    scale on which the thesis initialises its kernels).  Rows are patient × run, each
    labelled for its own run.  ``effect`` was set so that a random forest per task reaches the
    published AUC of about 0.71; no other model was tried.

    Raises:
        ValueError: the number of cases, markers or components exceeds the number of patients,
            compounds or cells.

    Source: Boustati (2021), sections 3.5.3 and A.1.3.
    """

    kind = "supervised"
    traits = {"several_tasks"}
    label_kind = "binary"
    n_patients: Annotated[int, Field(ge=8)]
    n_cases: Annotated[int, Field(ge=4)]
    train_fraction: BetweenZeroAndOne
    n_components: PositiveInt
    sparsity: PositiveFloat
    n_df: Annotated[int, Field(ge=4)]
    n_cv: Annotated[int, Field(ge=8)]
    n_compounds: PositiveInt
    n_markers: PositiveInt
    effect: NonNegativeFloat
    spread: NonNegativeFloat
    run_noise: NonNegativeFloat
    study_seed: NonNegativeInt
    batch_size: PositiveInt | None

    @model_validator(mode="after")
    def _fits(self) -> FaimsSim:
        if self.n_cases > self.n_patients - 4:
            raise ValueError(
                f"n_cases: at least 4 of the {self.n_patients} patients must be controls; lower n_cases"
            )
        if self.n_markers > self.n_compounds:
            raise ValueError(
                f"n_markers: exceeds the {self.n_compounds} compounds; lower n_markers"
            )
        if self.n_components > min(
            self.n_df * self.n_cv, RUNS * int(self.train_fraction * self.n_patients)
        ):
            raise ValueError(
                "n_components: exceeds the number of cells or of training rows; lower n_components"
            )
        return self

    def study(self) -> Study:
        """The measured study, determined by the configuration."""
        rng = np.random.default_rng(self.study_seed)
        P = self.n_patients
        K = self.n_compounds
        case = np.zeros(P, dtype=bool)
        case[rng.permutation(P)[: self.n_cases]] = True
        # Compounds.  Index K is the reactant ion, which transfers its charge to the compounds.
        alpha2 = np.append(rng.uniform(-2.5, 4.0, K), 5.5)
        alpha4 = np.append(rng.uniform(-1.5, 1.5, K), -1.0)
        loss = np.append(rng.uniform(0.5, 2.5, K), 1.0)
        affinity = rng.lognormal(-2.5, 0.6, K)  # a_k
        evaporation = np.exp(rng.uniform(np.log(0.05), np.log(1.2), K))  # κ_k
        loading = rng.normal(size=(K, CONFOUNDERS)) * 0.35  # B
        markers = np.zeros(K, dtype=bool)
        markers[rng.permutation(K)[: self.n_markers]] = True
        # Patients and runs.
        severity = case * rng.gamma(2.0, 0.5, P)  # z_p, mean 1 among cases
        log_c = rng.normal(size=(P, CONFOUNDERS)) @ loading.T + self.spread * rng.normal(
            size=(P, K)
        )
        log_c += self.effect * severity[:, None] * markers
        temperature = rng.lognormal(0.0, 0.2, P)
        runs = np.arange(RUNS)
        # [P, 3, K]
        log_c = log_c[:, None, :] - evaporation * (temperature[:, None] * runs)[..., None]
        log_c += self.run_noise * rng.normal(size=log_c.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            uptake = affinity * np.exp(log_c)
            # [P, 3, K + 1]
            charge = np.append(uptake, np.ones((P, RUNS, 1)), -1) / (
                1 + uptake.sum(-1, keepdims=True)
            )
        if not np.isfinite(charge).all():
            raise ConfigMismatchError(
                f"dataset={self.name}: its concentrations overflow; lower dataset.effect, spread or run_noise"
            )
        shape = plumes(alpha2, alpha4, loss, self.n_df, self.n_cv)  # [K + 1, n_df, n_cv]
        current = np.tensordot(charge, shape, 1)  # [P, 3, n_df, n_cv]
        # Humidity shifts the voltages slightly: to first order, −shift ∂/∂v.
        shift = 0.05 * rng.normal(size=(P, RUNS, 1, 1))  # volts
        current -= shift * np.gradient(current, 12 / (self.n_cv - 1), axis=-1)
        gain = rng.lognormal(0.0, 0.05, (P, RUNS, 1, 1))
        current = gain * current + 0.01 * rng.normal(size=current.shape)
        return Study(np.clip(current, 0, None), case, markers, np.exp(log_c))

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        study = self.study()
        # Stratified: the same share of cases in training and test rows.
        training: list[torch.Tensor] = []
        for group in (np.flatnonzero(study.case), np.flatnonzero(~study.case)):
            order = torch.randperm(len(group), generator=rng.data)
            training.append(
                torch.from_numpy(group)[order[: round(self.train_fraction * len(group))]]
            )
        in_training = np.zeros(self.n_patients, dtype=bool)
        in_training[torch.cat(training).numpy()] = True

        cells = study.current.reshape(self.n_patients, RUNS, -1)  # [P, 3, cells]
        seed = int(torch.randint(2**31 - 1, (), generator=rng.data))
        x = torch.from_numpy(self._features(cells, in_training, seed))  # [P, 3, n_components]

        def batch(patients: np.ndarray) -> Batch:
            n = len(patients)
            task = torch.arange(RUNS).repeat(n)  # rows: patient by patient, run by run
            mask = task[:, None] == torch.arange(RUNS)  # [3n, 3]
            label = torch.from_numpy(study.case[patients]).long().repeat_interleave(RUNS)
            y = torch.where(mask, label[:, None], 0)
            return labelled_rows(x[patients].flatten(0, 1), y, setting, mask)

        return Supervised(
            name=self.name,
            target="binary",
            train=batch(np.flatnonzero(in_training)),
            test=batch(np.flatnonzero(~in_training)),
            batch_size=self.batch_size,
            n_classes=2,
            task_names=["run 1", "run 2", "run 3"],
            figures=[roc, hinton, calibration],
        )

    def _features(self, cells: np.ndarray, in_training: np.ndarray, seed: int) -> np.ndarray:
        """Sparse principal components [P, 3, n_components].

        They are fitted and scaled only on the training rows.
        """
        from sklearn.decomposition import MiniBatchSparsePCA  # slow to import
        from sklearn.exceptions import ConvergenceWarning

        rows = cells[in_training].reshape(-1, cells.shape[-1])
        mean = rows.mean(0)
        scale = rows.std()
        pca = MiniBatchSparsePCA(
            self.n_components,
            alpha=self.sparsity,
            method="cd",
            batch_size=32,
            max_iter=20,
            random_state=seed,
        )
        with warnings.catch_warnings():
            # Early stopping is part of the protocol: the scores need not be optimal, but must be a
            # function of the rows.
            warnings.simplefilter("ignore", ConvergenceWarning)
            pca.fit((rows - mean) / scale)
            scores = pca.transform((cells.reshape(-1, cells.shape[-1]) - mean) / scale)
        scores = scores.reshape(*cells.shape[:2], -1)
        train_scores = scores[in_training].reshape(-1, self.n_components)
        deviation = train_scores.std(0)
        deviation[deviation == 0] = 1.0  # a component that is 0 in all training rows
        return (scores - train_scores.mean(0)) / (deviation * self.n_components**0.5)
