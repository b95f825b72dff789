"""A Gibbs sweep of one chain with dense matrices, from the random numbers of the compiled one."""

import math

import numpy as np
from scipy import stats

from components.series.structural.compiled.marginal_moves import STEPS, WALKS
from components.series.structural.compiled.truncated_gamma import (
    counter_uniform,
    sample_gamma,
    variance_from_gamma,
)


def slice_sample(log_density, x, low, high, seed):
    """Neal (2003), figure 5, from hashed uniforms."""
    level = log_density(x) + math.log(counter_uniform(seed, 0))
    k = 0
    while True:
        k += 1
        point = low + (high - low) * counter_uniform(seed, k)
        if log_density(point) >= level:
            return point
        low, high = (point, high) if point < x else (low, point)


class Reference:
    def __init__(self, structure, design, place, is_marginal=False):
        self.is_marginal = is_marginal
        self.s = structure
        self.n = len(design.y)
        self.y, self.seen, self.F, self.flow = (x.numpy() for x in design)
        for key in ("sigma", "phi", "gamma", "beta", "nu", "precisions", "directions", "earlier"):
            setattr(self, key, getattr(place, key).numpy().copy())
        self.omega = structure.precision.numpy()
        self.owner = [j for j, scale in enumerate(structure.scales) for _ in scale.states]
        self.noisy = [i for scale in structure.scales for i in scale.states]

    def G(self):
        G = self.s.G.numpy().copy()
        q = 0
        for moves in self.s.transitions:
            G[moves.row] += self.phi[q : q + moves.count] @ moves.terms.numpy()
            q += moves.count
        return G

    def X(self, q=None, kept=0.0):
        """Columns [n, p]; those that decay with φ_q use ``kept`` instead."""
        X = self.flow.copy()
        for j, f in enumerate(self.s.fades.tolist()):
            if f >= 0:
                phi = kept if f == q else self.phi[f]
                X[0, j] = 0
                for t in range(1, self.n):
                    u = self.flow[t - 1, j]
                    X[t, j] = (phi - float(self.s.limits[j]) * u) * X[t - 1, j] + u
        return X

    def weights(self):
        return self.seen * (self.precisions if self.s.errors.student else 1.0)

    def noise(self):
        student = self.s.errors.student
        return self.sigma[0] / np.sqrt(self.precisions if student else np.ones(self.n))

    def paths(self, first, shocks):
        """States without their mean, from normal numbers [..., d] and [..., n − 1, k]."""
        G = self.G()
        out = [self.s.sd.numpy() * first]
        for t in range(self.n - 1):
            state = out[-1] @ G.T
            state[..., self.noisy] += self.sigma[self.owner] * shocks[..., t, :]
            out.append(state)
        return np.stack(out, -2)

    def law(self):
        """Mean [n, d] of states, and B [n, d, m] with Cov(α) = BBᵀ."""
        d = self.F.shape[1]
        k = len(self.noisy)
        unit = np.eye(d + (self.n - 1) * k)
        B = self.paths(unit[:, :d], unit[:, d:].reshape(len(unit), self.n - 1, k))
        mean = [self.s.mean.numpy()]
        for _ in range(self.n - 1):
            mean.append(self.G() @ mean[-1])
        return np.array(mean), np.moveaxis(B, 0, -1)

    def observed_moments(self):
        """Mean and covariance of the observed y without columns, and Cov(α, y) [n, d, ·]."""
        mean, B = self.law()
        FB = np.einsum("ti,tim->tm", self.F, B)[self.seen]
        cov = FB @ FB.T + np.diag(self.noise()[self.seen] ** 2)
        return mean, (self.F * mean).sum(1)[self.seen], cov, B @ FB.T

    def log_marginal(self, gamma, A, b, fit):
        """log p(γ | y), where ``fit`` maps bᵀVb to the log fit."""
        on = np.flatnonzero(gamma)
        pi = self.s.inclusion.numpy()
        with np.errstate(divide="ignore"):
            prior = np.where(gamma, np.log(pi), np.log(1 - pi)).sum()
        omega = self.omega[np.ix_(on, on)]
        lam = (A + self.omega)[np.ix_(on, on)]
        quadratic = b[on] @ np.linalg.solve(lam, b[on])
        log_ratio = np.linalg.slogdet(omega)[1] - np.linalg.slogdet(lam)[1]
        return prior + 0.5 * log_ratio + fit(quadratic)

    def scan(self, A, b, fit, u):
        p = len(b)
        for k in range(p) if u[p] < 0.5 else reversed(range(p)):
            both = []
            for inside in (False, True):
                self.gamma[k] = inside
                both.append(self.log_marginal(self.gamma, A, b, fit))
            self.gamma[k] = u[k] < 1 / (1 + np.exp(both[0] - both[1]))

    def draw_beta(self, A, b, z):
        on = np.flatnonzero(self.gamma)
        V = np.linalg.inv((A + self.omega)[np.ix_(on, on)])
        self.beta = np.zeros(len(b))
        self.beta[on] = V @ b[on] + self.sigma[0] * np.linalg.cholesky(V) @ z[on]

    def draw_columns(self, drawn):
        """Draw the columns with the states integrated out."""
        _, mean, cov, _ = self.observed_moments()
        X = self.X()[self.seen]
        unit = self.sigma[0] ** 2
        A = unit * X.T @ np.linalg.solve(cov, X)
        b = unit * X.T @ np.linalg.solve(cov, self.y[self.seen] - mean)
        self.scan(A, b, lambda q: q / (2 * unit), drawn.u)
        self.draw_beta(A, b, drawn.z)

    def draw_regression(self, drawn, g):
        """Integrate out σ, then draw σ and β."""
        scale = self.s.scales[0]
        X = self.X()
        w = self.weights()
        A = X.T @ (w[:, None] * X)
        b = X.T @ (w * self.left)
        a = (scale.df + self.seen.sum()) / 2
        S = scale.df * scale.guess**2 + (w * self.left**2).sum()
        old_gamma = self.gamma.copy()
        self.scan(A, b, lambda q: -a * math.log(S - q), drawn.u)

        def rest():
            on = self.gamma
            return S - b[on] @ np.linalg.solve((A + self.omega)[np.ix_(on, on)], b[on])

        if rest() / 2 / g[-1] > scale.upper**2:
            self.gamma = old_gamma
        self.sigma[0] = math.sqrt(variance_from_gamma(g[0], a, rest() / 2, scale.upper))
        self.draw_beta(A, b, drawn.z)

    def draw_states(self, drawn):
        plus = self.paths(drawn.first, drawn.shocks)
        y_plus = (self.F * plus).sum(1) + self.noise() * drawn.errors
        mean, y_mean, cov, cross = self.observed_moments()
        y = (self.y - self.X() @ self.beta - y_plus)[self.seen] - y_mean
        self.alpha = mean + plus + cross @ np.linalg.solve(cov, y)

    def draw_scales(self, g):
        moves = self.alpha[1:] - self.alpha[:-1] @ self.G().T
        for j, scale in enumerate(self.s.scales[1:], 1):
            eta = moves[:, list(scale.states)]
            half = (scale.df * scale.guess**2 + (eta**2).sum()) / 2
            self.sigma[j] = math.sqrt(
                variance_from_gamma(g[j], (scale.df + eta.size) / 2, half, scale.upper)
            )

    def log_density(self, z):
        """log p(log σ, φ | γ, β, λ, y), with the states integrated out by the dense Gaussian."""
        self.sigma = np.exp(z[: len(self.sigma)])
        self.phi = z[len(self.sigma) :].copy()
        value = 0.0
        for sigma, scale in zip(self.sigma, self.s.scales, strict=True):
            if sigma > scale.upper:
                return -math.inf
            law = stats.gamma(scale.df / 2, scale=2 / (scale.df * scale.guess**2))
            value += law.logpdf(sigma**-2) - 2 * math.log(sigma)  # |∂σ⁻²/∂log σ| = 2 σ⁻²
        q = 0
        for moves in self.s.transitions:
            phi = self.phi[q : q + moves.count]
            q += moves.count
            low, high = moves.interval
            rooted = moves.within is None
            within = np.abs(np.roots([1, *-phi])) < 1 if rooted else (phi > low) & (phi < high)
            if not within.all():
                return -math.inf
            value -= 0.5 * moves.precision * ((phi - moves.mean) ** 2).sum()
        on = self.gamma
        _, mean, cov, _ = self.observed_moments()
        X = self.X()
        rest = self.y[self.seen]
        if on.any():
            spread = self.sigma[0] ** 2 * np.linalg.inv(self.omega[np.ix_(on, on)])
            if self.is_marginal:
                cov = cov + X[np.ix_(self.seen, on)] @ spread @ X[np.ix_(self.seen, on)].T
            else:
                value += stats.multivariate_normal(np.zeros(on.sum()), spread).logpdf(self.beta[on])
                rest = rest - X[self.seen] @ self.beta
        return value + stats.multivariate_normal(mean, cov).logpdf(rest)

    def draw_parameters(self, drawn):
        """Move by steps along directions, and by draws from a kernel density estimate."""
        z = np.concatenate([np.log(self.sigma), self.phi])
        D = len(z)
        M = len(self.earlier)
        value = self.log_density(z)
        width = (4 / ((D + 2) * max(M, 1))) ** (1 / (D + 4))
        kernels = [stats.multivariate_t(u, width**2 * np.eye(D), D + 2) for u in self.earlier]

        def log_q(z):
            u = np.linalg.solve(self.directions.T, z)
            return np.logaddexp.reduce([kernel.logpdf(u) for kernel in kernels])

        for k, ((where, level), t) in enumerate(zip(drawn.u, drawn.t, strict=True)):
            if k < WALKS or not M:
                j = int(where * D)
                trial = z + STEPS[k % 3] * t[j] * self.directions[j]
                ratio = 0.0
            else:
                trial = (self.earlier[int(where * M)] + width * t) @ self.directions
                ratio = log_q(z) - log_q(trial)
            new = self.log_density(trial)
            if math.log(1 - level) <= new - value + ratio:
                z = trial
                value = new
        self.sigma = np.exp(z[: len(self.sigma)])
        self.phi = z[len(self.sigma) :]

    def draw_tails(self, seeds):
        errors = self.s.errors
        z = (self.left - self.X() @ self.beta) / self.sigma[0]
        if errors.nu is None:
            unit = errors.shape / errors.rate
            prior = stats.gamma(errors.shape, scale=1 / errors.rate)

            def log_density(w):
                x = unit * w / (1 - w)
                t = stats.t(2 + x).logpdf(z[self.seen]).sum()
                return prior.logpdf(x) - 2 * math.log(1 - w) + t

            x = (self.nu - 2) / unit
            w = slice_sample(log_density, x / (1 + x), 0.0, 1.0, seeds[-2])
            self.nu = 2 + unit * w / (1 - w)
        k = 0
        for t in range(self.n):
            g, k = sample_gamma((self.nu + self.seen[t]) / 2, seeds[-1], k)
            self.precisions[t] = g / ((self.nu + self.seen[t] * z[t] ** 2) / 2)

    def sweep(self, drawn):
        with np.errstate(over="ignore"):
            if len(drawn.moves.u):
                self.draw_parameters(drawn.moves)
            if len(drawn.columns.u):
                self.draw_columns(drawn.columns)
            self.draw_states(drawn.states)
            if self.is_marginal:
                return
            self.draw_scales(drawn.g)
            self.left = np.where(self.seen, self.y - (self.F * self.alpha).sum(1), 0.0)
            self.draw_regression(drawn.slab, drawn.g)
            if self.s.errors.student:
                self.draw_tails(drawn.seeds)
