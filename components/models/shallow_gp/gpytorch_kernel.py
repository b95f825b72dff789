"""Kernels of GPyTorch and of users from text: ``ScaleKernel(RBFKernel + PeriodicKernel)``."""

from __future__ import annotations

import ast
import inspect
import operator
from copy import deepcopy
from difflib import get_close_matches
from typing import ClassVar

import gpytorch
import torch
from gpytorch.kernels import Kernel
from torch import Tensor, nn

from components.errors import ConfigMismatchError

KEY = "model.kernel"
OPERATORS = {ast.Add: operator.add, ast.Mult: operator.mul}


def _kernel_classes() -> dict[str, type[Kernel]]:
    """Classes by name: those of GPyTorch, and of users' modules imported by ``plugins``."""
    classes: dict[str, type[Kernel]] = {}
    todo: list[type[Kernel]] = [Kernel]
    while todo:
        cls = todo.pop()
        classes.setdefault(cls.__name__, cls)
        todo += cls.__subclasses__()
    members = {
        name: value for name, value in vars(gpytorch.kernels).items() if isinstance(value, type)
    }
    return classes | {name: value for name, value in members.items() if issubclass(value, Kernel)}


def _arguments(cls: type[Kernel]) -> set[str]:
    """Argument names of the constructors of the class and its base classes."""
    constructors = (
        vars(c)["__init__"] for c in cls.__mro__ if issubclass(c, Kernel) and "__init__" in vars(c)
    )
    return {
        name for constructor in constructors for name in inspect.signature(constructor).parameters
    }


def _suggest(name: str, classes: dict[str, type[Kernel]]) -> str:
    if near := get_close_matches(name, classes, n=1):
        return f"did you mean {near[0]}?"
    return "list the module of your own kernel in plugins=[…]"


def _instantiate(cls: type[Kernel], positional: list[object], options: dict[str, object]) -> Kernel:
    """Create a kernel; options that are not constructor arguments are initial values."""
    starts = options.keys() - _arguments(cls)
    instance = cls(*positional, **{k: v for k, v in options.items() if k not in starts})
    return instance.initialize(**{k: torch.as_tensor(options[k]) for k in starts})


def parse_kernel(text: str, n_inputs: int) -> Kernel:
    """Parse a kernel from class names called with literals or kernels.

    The parts are joined by + and *.  Keywords that are not constructor arguments are initial values
    of hyper-parameters: ``RBFKernel(lengthscale=2.0)``.  ``D`` denotes the number of inputs.  No
    code is evaluated: a text can contain only kernels, numbers and strings.

    Raises:
        ConfigMismatchError: the text is invalid, names an unknown kernel, or GPyTorch rejects the
            arguments.
    """
    classes = _kernel_classes()

    def kernel(node: ast.expr) -> Kernel:
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](kernel(node.left), kernel(node.right))
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        if not isinstance(call.func, ast.Name):
            raise ConfigMismatchError(
                f"{KEY}={text}: {ast.unparse(node)} is not the name of a kernel, a sum or a product of kernels"
            )
        name = call.func.id
        if name not in classes:
            raise ConfigMismatchError(
                f"{KEY}={text}: unknown kernel {name}; {_suggest(name, classes)}"
            )
        positional = [argument(a) for a in call.args]
        options = {k.arg: argument(k.value) for k in call.keywords if k.arg}
        try:
            return _instantiate(classes[name], positional, options)
        except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError) as error:
            raise ConfigMismatchError(
                f"{KEY}={text}: {name}: {str(error).splitlines()[0]}"
            ) from None

    def argument(node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return n_inputs if node.id == "D" else kernel(node)
        if isinstance(node, ast.Call | ast.BinOp):
            return kernel(node)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise ConfigMismatchError(
                f"{KEY}={text}: {ast.unparse(node)} is not a kernel or a literal"
            ) from None

    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ConfigMismatchError(f"{KEY}={text}: {error.msg}") from None
    return kernel(tree)


class GPyTorchCovariance(nn.Module):
    """Cov[f_t(x), f_t'(x')] = δ_tt' k_t(x, x'), with k_t a copy of one GPyTorch kernel per task.

    Source: Gardner, Pleiss, Bindel, Weinberger and Wilson (2018)."""

    independent: ClassVar[bool] = True

    def __init__(self, kernel: Kernel, n_tasks: int, like: Tensor):
        super().__init__()
        if kernel.batch_shape:
            raise ConfigMismatchError(
                f"{KEY}: is a batch of kernels; give a single one, which is copied for each task"
            )
        if next(kernel.named_priors(), None):
            raise ConfigMismatchError(
                f"{KEY}: has its own priors, which are not supported; set model.hyperprior"
            )
        kernel = kernel.to(like)
        self.n_tasks = n_tasks
        self.kernels = nn.ModuleList(deepcopy(kernel) for _ in range(n_tasks))
        self.initial = [p.detach().clone() for p in kernel.parameters()]

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance between points of the same task, [T, n, m]."""
        x = x.expand(self.n_tasks, -1, -1)
        z = z.expand(self.n_tasks, -1, -1)
        return torch.stack([k(a, b).to_dense() for k, a, b in zip(self.kernels, x, z, strict=True)])

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points, [T, n]."""
        x = x.expand(self.n_tasks, -1, -1)
        return torch.stack([k(a, diag=True) for k, a in zip(self.kernels, x, strict=True)])

    def log_hyperprior(self, scale: float) -> Tensor:
        """Log density of GPyTorch's raw parameters, normal around their initial values, up to a
        constant."""
        squares = [
            ((p - start) / scale).square().sum()
            for kernel in self.kernels
            for p, start in zip(kernel.parameters(), self.initial, strict=True)
        ]
        return -0.5 * torch.stack(squares).sum()
