"""An ordinary PyTorch module as a network with flat weights θ."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from components.contracts.class_outputs import Outputs, to_logits
from components.contracts.roles import LearnableScale
from components.contracts.user_code import reraise_user_error
from components.errors import ConfigMismatchError
from components.models.networks.flat_network import FlatNetwork
from components.models.own.begun import init_copies
from components.models.own.calls import (
    forgetting,
    strip_parameters,
    tied_names,
    use_generator,
)
from components.models.own.examination import (
    PROBE_SCALE,
    check_declared,
    check_finite,
    check_outputs,
    check_rows,
    is_close,
    pick_spaced_rows,
)
from components.models.own.gradient_examination import check_input_gradient, training_fault
from components.models.own.training_layers import (
    converge_norms,
    find_training_layers,
    modes,
)
from components.problems.supervised import Supervised

N_PROBE_ROWS = 2  # rows for the comparison of the module with itself
ALL_FROZEN = (
    "all of its parameters are frozen; keep requires_grad=True for some, or use inference=fixed"
)


class ModuleSource(NamedTuple):
    """Factory of a user's module."""

    make: Callable[[int], nn.Module]  # seed -> a new module
    seed: int
    given: bool  # whether initial weights come from a file
    where: str  # subject of messages


class ModuleNetwork(FlatNetwork):
    """f(x; θ) of a module called with the tensors of θ instead of its own parameters, concatenated
    in order.

    θ has the parameters with requires_grad=True.  Frozen parameters are a buffer, the same for all
    θ.  Other buffers, such as running statistics, stay with the module and are saved in
    checkpoints.  Dropout layers are active if a generator is given, with draws of the run.  Batch
    and instance normalisation and spectral norms are updated if the network itself is trained.  If
    θ is an argument (samplers, posteriors over θ), normalisation statistics are fixed, and spectral
    norms are those of θ.  ``source`` creates a new module and its initial weights.  Outputs that
    are probabilities or their logarithms are converted to logits (``outputs``)."""

    def __init__(
        self,
        problem: Supervised,
        source: ModuleSource,
        *,
        inputs: Literal["flat", "image"],
        spread: float,
        prior_std: float,
        noise: LearnableScale,
        noise_init: float,
        noise_spread: float | None,
        outputs: Outputs | None = None,
    ):
        if outputs is not None and problem.target == "real":
            raise ConfigMismatchError(
                f"model.outputs={outputs}: {problem.name} has real labels; remove model.outputs"
            )
        where = source.where
        module = source.make(source.seed)
        places = tied_names(module)
        parameters = dict(module.named_parameters())
        if not parameters:
            raise ConfigMismatchError(f"{where}: has no parameters; register them in its __init__")
        theta = torch.cat([p.detach().flatten() for p in parameters.values()])
        super().__init__(problem, theta, 0.0, prior_std, noise, noise_init, noise_spread)
        self.where = where
        self.inputs = inputs
        self.spread = spread
        self.made = source.make
        self.given = source.given
        self.meaning: Outputs = outputs or "logits"
        self.image_shape, self.answers = problem.image_shape, self.n_tasks * self.n_outputs
        self.places = places
        self.shapes = {name: tuple(p.shape) for name, p in parameters.items()}
        self.pieces = [p.numel() for p in parameters.values()]
        self.freeze(self.pieces, [not p.requires_grad for p in parameters.values()])
        self._find_layers(module, problem.train.x)
        self.net = strip_parameters(module)
        self._check_outside_parameters(module, problem.train.x[:N_PROBE_ROWS])
        self.register_buffer("start", self.theta.detach().clone(), persistent=False)
        rows = pick_spaced_rows(problem.train.x)
        check_finite(self._answers(self.start, rows), where, self.n_outputs)
        if self.target != "real":
            check_outputs(self._answers, theta, rows, outputs, where)
        check_input_gradient(self._answers, self.start, rows, problem.attacker, where)
        pieces = {name: p.numel() for name, p in parameters.items() if p.requires_grad}
        self.training_fault: str | None = self.layers_in_training.fault or (
            training_fault(self._answers, self.start, rows, pieces) if pieces else ALL_FROZEN
        )
        self._check_copies()

    def _find_layers(self, module: nn.Module, x: Tensor) -> None:
        """Check that rows are independent; find layers that behave differently in training."""
        rows = pick_spaced_rows(x)
        module.eval()
        probe = copy.deepcopy(module)
        with reraise_user_error(self.where):
            check_rows(lambda x: self._call(probe, x), rows, self.where)
            self.layers_in_training = find_training_layers(module, self._call, rows)
        rates = [layer.p for layer in module.modules() if isinstance(layer, _DropoutNd)]
        self.dropout = max(rates, default=0.5 if self.layers_in_training.dropping else 0.0)

    def _check_outside_parameters(self, module: nn.Module, x: Tensor) -> None:
        """Compare the module with itself when called with external parameters.

        Raises:
            ConfigMismatchError: the outputs differ."""
        with torch.no_grad():
            for p in module.parameters():
                # in place, to reveal copies
                p.mul_(PROBE_SCALE if p.requires_grad else 1)
            with reraise_user_error(self.where):
                expected = self._call(module, x)
            actual = self._answers(PROBE_SCALE * self.theta.detach(), x)
        if not is_close(actual, expected):
            raise ConfigMismatchError(
                f"{self.where}: the outputs change if the same parameters are passed in; forward must read its "
                "parameters, not copies of them, and be random only in dropout layers"
            )

    start: Tensor  # [P]
    shares_weights = True  # disables noise on pre-activations

    # The module
    def _to_module_input(self, x: Tensor) -> Tensor:
        """x [B, D] in the input format of the module: rows, or images [B, colours, height,
        width]."""
        if self.inputs == "flat":
            return x
        if self.image_shape is None:
            raise ConfigMismatchError(
                "model.inputs=image: the inputs of this dataset are not images; use model.inputs=flat"
            )
        return x.unflatten(
            -1, (1, *self.image_shape) if len(self.image_shape) == 2 else self.image_shape
        )

    def _call(self, module: nn.Module, x: Tensor) -> Tensor:
        return self._shape_outputs(module(self._to_module_input(x)), x)

    def _shape_outputs(self, out: object, x: Tensor) -> Tensor:
        """Outputs at x [B, D] as [B, T, C], with the dtype of x.

        With one number per binary label, the shape is [B, T, 1].  Dimensions of size one may be
        inserted or missing, as after ``squeeze``.
        """
        shape = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
        hint = "; for a table, dataset.classes lists the network's classes in order"
        if isinstance(out, Tensor) and out.is_floating_point():
            sizes = [size for size in out.shape if size != 1]
            for count in (self.answers, *([self.n_tasks] if self.target == "binary" else [])):
                if sizes == [size for size in (len(x), count) if size != 1]:
                    return out.reshape(len(x), self.n_tasks, count // self.n_tasks).to(x.dtype)
        elif isinstance(out, Tensor):
            shape = f"{str(out.dtype).removeprefix('torch.')} {shape}"
            hint = " of floating-point numbers"
        raise ConfigMismatchError(
            f"{self.where}: returns {shape} for a batch, but must return [rows, {self.answers}]"
            + (f" (or [rows, {self.n_tasks}], log odds)" if self.target == "binary" else "")
            + hint
        )

    def at(self, theta: Tensor, x: Tensor, net: nn.Module | None = None) -> Tensor:
        """f [B, T, C] with weights θ [P], from the module or its copy ``net``.

        Raises:
            ConfigMismatchError: the gradient in θ is requested and does not exist, or the outputs
                contradict their declaration.
        """
        if theta.requires_grad and torch.is_grad_enabled() and self.training_fault is not None:
            raise ConfigMismatchError(f"{self.where}: {self.training_fault}")
        values = self._answers(theta, x, net)
        if self.target == "real":
            return values
        if self.meaning != "logits":
            check_declared(values, self.meaning, self.where)
        return to_logits(values, self.meaning)

    def _answers(self, theta: Tensor, x: Tensor, net: nn.Module | None = None) -> Tensor:
        """Raw outputs of the module with weights θ [P], [B, T, C] or [B, T, 1]."""
        parts = self.all_weights(theta).split(self.pieces)
        parameters = {
            name: part.view(shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }
        net = net or self.net
        with reraise_user_error(self.where), forgetting(net):
            out = functional_call(
                net,
                {name: parameters[first] for name, first in self.places.items()},
                (self._to_module_input(x),),
            )
        return self._shape_outputs(out, x)

    def forward(
        self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None
    ) -> Tensor:
        """f [B, T, C] with the module's weights; with ``passes`` = S, S dropout passes [S, B, T,
        C]."""
        if passes is not None:
            return torch.stack([self.forward(x, generator) for _ in range(passes)])
        learning, dropping, _ = self.layers_in_training
        acting = (learning if self.training else []) + ([] if generator is None else dropping)
        with modes(self.net, acting), use_generator(generator):
            return self.at(self.theta, x)

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """f [K, B, T, C] for θ [K, P'], one after the other, also at separate inputs [K, B, D]."""
        each = x.unbind() if x.ndim == 3 else [x] * len(theta)
        self.net.eval()
        return torch.stack(
            [
                self.at(row, x_k, converge_norms(self.net))
                for row, x_k in zip(self._weights(theta), each, strict=True)
            ]
        )

    # Initial weights
    def initial(self, n: int, generator: torch.Generator) -> Tensor:
        """θ [n, P'] of n newly constructed modules, or around the weights of the file."""
        if self.given:
            theta = init_copies(self.start, len(self.start), self.spread, n, generator)
        else:
            seeds = torch.randint(
                2**31, (n,), generator=generator, device=generator.device
            ).tolist()
            theta = torch.stack([self._parameter_vector(self.made(seed)) for seed in seeds]).to(
                self.start
            )
        log_noise = theta.new_full((n, self.dim - len(self.prior_std)), self.noise_median)
        return torch.cat([theta, log_noise], 1)

    def log_prior(self, theta: Tensor) -> Tensor:
        if not len(self.prior_std):
            raise ConfigMismatchError(f"{self.where}: {ALL_FROZEN}")
        return super().log_prior(theta)

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor:
        """Starting points θ [n, P'] of chains: those of training, because few modules work at draws
        from N(0, s²)."""
        return self.initial(n, generator)

    def _check_copies(self) -> None:
        """Check that the module can be copied after a call with autograd.

        Raises:
            ConfigMismatchError: the module keeps tensors of the graph."""
        try:
            copy.deepcopy(self.net)
        except RuntimeError as error:
            raise ConfigMismatchError(
                f"{self.where}: stores tensors in its forward, for example with "
                f"self.features.append(…), and cannot be copied; detach the tensors, or do not store them"
            ) from error

    def _parameter_vector(self, module: nn.Module) -> Tensor:
        parameters = dict(module.named_parameters(remove_duplicate=False))
        theta = torch.cat([parameters[name].detach().flatten() for name in self.shapes])
        return theta if self.free is None else theta[self.free.to(theta.device)]

    # Running statistics
    def _learning(self) -> list[nn.Module]:
        return [self.net.get_submodule(name) for name in self.layers_in_training.learning]

    def statistics(self) -> list[Tensor]:
        """Running means, variances and vectors of spectral norms in the order of layers (the
        buffers themselves)."""
        return [
            buffer
            for layer in self._learning()
            for buffer in layer.buffers(recurse=False)
            if buffer.is_floating_point()
        ]

    @torch.no_grad()
    def gather(self, batches: Sequence[Tensor]) -> None:
        """Set the running statistics to the means, over the batches, of each batch's statistics,
        and spectral norms to those of the weights."""
        names = self.layers_in_training.learning
        layers = [layer for layer in self._learning() if isinstance(layer, _NormBase)]
        momenta = [layer.momentum for layer in layers]
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # the cumulative mean over all rows
        with modes(self.net, names):
            for x in batches if names else ():
                self.at(self.theta, x)
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
