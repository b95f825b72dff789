"""A network of one's own: an ordinary module of PyTorch, of a plug-in."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import nn
from torch.nn.parameter import UninitializedParameter

from components.contracts.class_outputs import Outputs
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng, seed_from
from components.contracts.user_code import Place, import_object, reraise_user_error
from components.errors import ConfigMismatchError
from components.maths.exponential.global_stream import keep_global_streams
from components.models.own.module_network import ModuleNetwork, ModuleSource
from components.models.own.weights_file import fill_network, read_weights
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "module")
class Module(Model[Supervised, ModuleNetwork]):
    """A class of the user's own that is an ordinary module of PyTorch, with a Gaussian prior on its
    parameters.

    f(x) = Net(**arguments)(x), θ its parameters side by side, θ ~ N(0, s²) independently; y_t ~
    N(f_t, σ_t²) or softmax(f_t). The module knows nothing of the runner: it reads rows [B, D], or
    images, and gives [B, T C] (for binary labels also [B, T], log odds).  ``outputs`` says whether
    these are logits, probabilities p (then f = log p, or log p − log(1 − p) of one output) or their
    logarithms; probabilities in the place of logits are refused.  Its parameters begin as its
    constructor leaves them, which draws from a seed of the run, or with ``path`` as a file has
    them.  Frozen parameters (requires_grad=False) are not in θ.  It is attacked, trained and
    sampled as networks here are: Monte-Carlo weights one after the other.  The class is code: its
    module must be among ``plugins`` too. x [B, D] -> f [B, T, C].

    Raises:
        ConfigMismatchError: there is no such class, it is no module, it raises, what it gives
            has another shape or is not what ``outputs`` says, it answers a row by other rows, or
            draws random numbers.

    Source: Paszke et al. (2019)."""

    requires = Requirements(kinds={"supervised"})
    imports = {"class_path"}
    reads = {"path": "sha256"}

    class_path: Place
    arguments: dict[str, Any] | None
    inputs: Literal["flat", "image"]
    path: str | None
    prefix: str
    spread: NonNegativeFloat
    prior_std: PositiveFloat
    noise: Literal["learned"] | PositiveFloat
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
            making = f"{where}: being made with model.arguments"
            with (
                reraise_user_error(making, cls),
                keep_global_streams(like.device),
                torch.no_grad(),
            ):  # results here are copied
                torch.manual_seed(seed)
                module = cls(**(self.arguments or {}))
            if not isinstance(module, nn.Module):
                raise ConfigMismatchError(
                    f"{where}: makes a {type(module).__name__}, no torch.nn.Module; name a class that is one"
                )
            layers = dict(module.named_modules())
            if scripted := [n for n, m in layers.items() if isinstance(m, torch.jit.ScriptModule)]:
                raise ConfigMismatchError(
                    f"{where}: {scripted[0] or 'it'} is a TorchScript module (torch.jit), which takes no parameters from "
                    "outside; build it from its class, and load its weights by model.path"
                )
            if lazy := [
                name
                for name, p in module.named_parameters()
                if isinstance(p, UninitializedParameter)
            ]:
                raise ConfigMismatchError(
                    f"{where}: {lazy[0]} is of a lazy layer, of no size yet; give the layer its sizes"
                )
            module = module.to(like)
            if tensors is not None:
                fill_network(
                    module,
                    tensors,
                    f"model.path={self.path}",
                    "name the file, or model.arguments, of the module that was saved",
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
