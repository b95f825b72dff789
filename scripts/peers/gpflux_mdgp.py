"""mMDGP with GPflux's layers in a separate process, the peer of scripts/benchmarks/deep_gp.py.

    .venv-peers/bin/python scripts/peers/gpflux_mdgp.py model.npz        # replies to each request with a line

``differentiate OUT`` writes the bound for the given noise, its terms and its gradients to the file
OUT; ``step N`` takes N steps with new noise and replies with their CPU seconds.  A step is one
``tf.function``: bound, gradients, and the fused Adam of Keras, the faster of its two.

GPflux does not batch layers: each process, shared, of a task or at the top, is a ``GPLayer``.  A
single layer with all shared processes, each with its kernel and inducing inputs
(``SeparateIndependent``), loops over them in the graph and is slower.  Tasks have their own rows,
without padding, and the S samples of the top layer's inputs are folded into its rows.  Noise is drawn
here and not by the layers' distributions, so that it can also be given."""

from __future__ import annotations

import os
import sys
import time

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, SharedIndependentInducingVariables
from gpflow.keras import tf_keras
from gpflow.kernels import Matern52, SharedIndependent
from gpflux.layers import GPLayer

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
Noise = tuple[tf.Tensor, list[tf.Tensor]]  # shared [S, B, P], and for each task [S, n_t, 1]
NOISE_FLOOR = 1e-6  # lower bound of σ², as in our model


class Layers(tf.Module):
    """Layers "shared", "specific t" and "top t", noise variances, and the bound for one batch."""

    def __init__(self, given: dict[str, np.ndarray]):
        super().__init__()
        self.S = int(given["samples"])
        self.T = int(given["tasks"])
        task = given["task"]
        self.rows = [tf.constant(np.flatnonzero(task == t), tf.int32) for t in range(self.T)]
        self.x = tf.constant(given["x"])
        self.y = [tf.constant(given["y"][task == t][:, None]) for t in range(self.T)]
        self.scale = float(given["scale"])
        self.shared = [self.layer(given, "shared", i) for i in range(len(given["shared.Z"]))]
        self.specific = [self.layer(given, "specific", t) for t in range(self.T)]
        self.top = [self.layer(given, "top", t) for t in range(self.T)]
        self.likelihoods = [
            gpflow.likelihoods.Gaussian(variance=v, variance_lower_bound=NOISE_FLOOR)
            for v in given["noise_variance"]
        ]

    def layer(self, given: dict[str, np.ndarray], name: str, g: int) -> GPLayer:
        """Layer of process g with a given name."""
        length = given[f"{name}.lengthscale"][g]
        kernel = Matern52(given[f"{name}.variance"][g], length[0] if length.size == 1 else length)
        layer = GPLayer(
            SharedIndependent(kernel, 1),
            SharedIndependentInducingVariables(InducingPoints(given[f"{name}.Z"][g])),
            num_data=len(given["x"]),
            mean_function=gpflow.mean_functions.Zero(1),
            whiten=True,
        )
        layer.q_mu.assign(given[f"{name}.q_mean"][g][:, None])
        layer.q_sqrt.assign(given[f"{name}.q_tril"][g][None])
        return layer

    def layers(self) -> list[GPLayer]:
        return [*self.shared, *self.specific, *self.top]

    def noise(self) -> Noise:
        """Standard normal noise of one step."""
        kind = self.x.dtype
        shared = tf.random.normal([self.S, self.x.shape[0], len(self.shared)], dtype=kind)
        return shared, [tf.random.normal([self.S, r.shape[0], 1], dtype=kind) for r in self.rows]

    def terms(self, noise: Noise) -> tuple[tf.Tensor, tf.Tensor]:
        """Terms of the bound: scale · Σ E[log p(y|f)], averaged over the S samples, and Σ KL."""
        moments = [layer.predict(self.x) for layer in self.shared]
        mean, variance = (tf.concat(each, -1) for each in zip(*moments, strict=True))  # [B, P]
        g = mean + tf.sqrt(variance) * noise[0]  # [S, B, P]
        total = tf.zeros((), self.x.dtype)
        for t, rows in enumerate(self.rows):
            mean, variance = self.specific[t].predict(tf.gather(self.x, rows))
            h = mean + tf.sqrt(variance) * noise[1][t]  # [S, n_t, 1]
            features = tf.concat([tf.gather(g, rows, axis=1), h], -1)
            folded = tf.reshape(features, [-1, features.shape[-1]])  # [S · n_t, P + 1]
            mean, variance = self.top[t].predict(folded)
            y = tf.tile(self.y[t], [self.S, 1])
            total += tf.reduce_sum(
                self.likelihoods[t].variational_expectations(folded, mean, variance, y)
            )
        return total * (self.scale / self.S), tf.add_n(
            [layer.prior_kl() for layer in self.layers()]
        )

    def gradients(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Bound, terms, and gradients with the given names and shapes."""
        noise = (
            tf.constant(given["noise.shared"]),
            [tf.constant(given[f"noise.{t}"]) for t in range(self.T)],
        )
        with tf.GradientTape() as tape:
            likelihood, kl = self.terms(noise)
            bound = likelihood - kl

        def to_gradient(parameter: gpflow.Parameter) -> np.ndarray:
            raw = parameter.unconstrained_variable
            slope = gradient[raw.ref()]
            if parameter.shape != raw.shape:  # a triangle stored as a vector
                return parameter.transform.forward(slope).numpy()
            with tf.GradientTape() as inner:
                inner.watch(raw)
                value = parameter.transform.forward(raw)
            return (slope / inner.gradient(value, raw)).numpy()

        variables = self.trainable_variables
        gradient = dict(
            zip([v.ref() for v in variables], tape.gradient(bound, variables), strict=True)
        )
        out = {"bound": bound.numpy(), "log_likelihood": likelihood.numpy(), "kl": kl.numpy()}
        parts = {"shared": self.shared, "specific": self.specific, "top": self.top}
        for name, layers in parts.items():
            kernels = [layer.kernel.kernel for layer in layers]
            inducing = [layer.inducing_variable.inducing_variable for layer in layers]
            out[f"{name}.Z"] = np.stack([to_gradient(i.Z) for i in inducing])
            out[f"{name}.lengthscale"] = np.stack(
                [np.atleast_1d(to_gradient(k.lengthscales)) for k in kernels]
            )
            out[f"{name}.variance"] = np.stack([to_gradient(k.variance) for k in kernels])
            out[f"{name}.q_mean"] = np.concatenate([to_gradient(layer.q_mu).T for layer in layers])
            out[f"{name}.q_tril"] = np.concatenate([to_gradient(layer.q_sqrt) for layer in layers])
        out["noise_variance"] = np.stack(
            [to_gradient(likelihood.variance) for likelihood in self.likelihoods]
        )
        return out


def main() -> None:
    with np.load(sys.argv[1]) as file:
        inputs = dict(file)
    gpflow.config.set_default_float(inputs["x"].dtype.type)
    gpflow.config.set_default_jitter(float(inputs["jitter"]))
    model = Layers(inputs)
    variables = model.trainable_variables
    optimizer = tf_keras.optimizers.legacy.Adam(1e-4, epsilon=1e-8)

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            likelihood, kl = model.terms(model.noise())
            loss = kl - likelihood
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    for line in sys.stdin:
        request, argument = line.split()
        if request == "differentiate":
            np.savez(argument, **model.gradients(inputs))
            print("written", flush=True)
        else:
            start = time.process_time()
            for _ in range(int(argument)):
                step()
            print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
