"""A user's own network: an ordinary PyTorch module from a plug-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import nn
from torch.nn.parameter import UninitializedParameter

from components.contracts.class_outputs import Outputs
from components.contracts.requirements import SUPERVISED
from components.contracts.roles import LearnableScale, Model
from components.contracts.streams import Rng, seed_from
from components.contracts.user_code import ImportPath, import_object, reraise_user_error
from components.errors import ConfigMismatchError
from components.maths.exponential.global_stream import keep_global_streams
from components.models.own.module_network import ModuleNetwork, ModuleSource
from components.models.own.weights_file import fill_network, read_weights
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "module")
class Module(Model[Supervised, ModuleNetwork]):
    """A user's ordinary PyTorch module, with a Gaussian prior on its parameters.

    f(x) = Net(**arguments)(x), θ its concatenated parameters, θ ~ N(0, s²) independently; y_t ~
    N(f_t, σ_t²) or softmax(f_t). The module is independent of the runner: it takes rows [B, D], or
    images, and returns [B, T C] (for binary labels also [B, T], log odds).  ``outputs`` declares
    these as logits, probabilities p (then f = log p, or log p − log(1 − p) for one output) or their
    logarithms; probabilities declared as logits are rejected.  Initial parameters come from its
    constructor, seeded by the run, or with ``path`` from a file.  Frozen parameters
    (requires_grad=False) are not in θ.  Attacks, training and sampling work as for other networks,
    with Monte-Carlo weights evaluated one after the other.  The class's Python module must also be
    listed in ``plugins``. x [B, D] -> f [B, T, C].

    Raises:
        ConfigMismatchError: the class does not exist, is not a module or raises; its outputs have a
            wrong shape, contradict ``outputs``, depend on other rows, or are random.

    Source: Paszke et al. (2019)."""

    requires = SUPERVISED
    imports = {"class_path"}
    reads = {"path": "sha256"}

    class_path: ImportPath
    arguments: dict[str, Any] | None
    inputs: Literal["flat", "image"]
    path: str | None
    prefix: str
    spread: NonNegativeFloat
    prior_std: PositiveFloat
    noise: LearnableScale
    noise_init: PositiveFloat
    noise_spread: PositiveFloat | None
    sha256: str | None
    outputs: Outputs | None

    def build(self, problem: Supervised, rng: Rng) -> ModuleNetwork:
        where = f"model.class_path={self.class_path}"
        like = problem.train.x
        cls = import_object("model.class_path", self.class_path)
        tensors = None if self.path is None else read_weights(Path(self.path), self.prefix)

        def make_module(seed: int) -> nn.Module:
            making = f"{where}: construction with model.arguments"
            with (
                reraise_user_error(making, cls),
                keep_global_streams(like.device),
                torch.no_grad(),
            ):  # results are copied
                torch.manual_seed(seed)
                module = cls(**(self.arguments or {}))
            if not isinstance(module, nn.Module):
                raise ConfigMismatchError(
                    f"{where}: creates a {type(module).__name__}, not a torch.nn.Module; give a class of this type"
                )
            layers = dict(module.named_modules())
            if scripted := [n for n, m in layers.items() if isinstance(m, torch.jit.ScriptModule)]:
                raise ConfigMismatchError(
                    f"{where}: {scripted[0] or 'it'} is a TorchScript module (torch.jit), which "
                    "does not support external parameters; build it from its class, and load its "
                    "weights with model.path"
                )
            if lazy := [
                name
                for name, p in module.named_parameters()
                if isinstance(p, UninitializedParameter)
            ]:
                raise ConfigMismatchError(
                    f"{where}: {lazy[0]} belongs to an uninitialised lazy layer; give the layer its sizes"
                )
            module = module.to(like)
            if tensors is not None:
                fill_network(
                    module,
                    tensors,
                    f"model.path={self.path}",
                    "set model.path or model.arguments to the values of the saved module",
                )
            return module

        return ModuleNetwork(
            problem,
            ModuleSource(make_module, seed_from(rng.init), tensors is not None, where),
            inputs=self.inputs,
            spread=self.spread,
            prior_std=self.prior_std,
            noise=self.noise,
            noise_init=self.noise_init,
            noise_spread=self.noise_spread,
            outputs=self.outputs,
        )
