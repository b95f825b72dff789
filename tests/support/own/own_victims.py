"""Networks of users: outputs that are not logits, and habits that libraries of attacks report."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Victim(nn.Module):
    """Two layers; subclasses or a keyword define the step after the last one."""

    def __init__(
        self,
        inputs: int = 4,
        n_outputs: int = 3,
        hidden: int = 16,
        last: str = "none",
        scale: float = 1.0,
    ):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, n_outputs)
        self.last = last
        self.scale = scale
        if last in ("zero", "half"):
            nn.init.normal_(self.second.weight, std=0.0 if last == "zero" else 1e-3)
            nn.init.constant_(self.second.bias, 0.0 if last == "zero" else 0.5)

    def body(self, x: Tensor) -> Tensor:
        return self.scale * self.second(F.relu(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        f = self.body(x)
        ends = {
            "softmax": lambda: f.softmax(1),
            "log_softmax": lambda: f.log_softmax(1),
            "sigmoid": lambda: f.sigmoid(),
            "log_sigmoid": lambda: F.logsigmoid(f),
            "relu": lambda: f.relu(),
            "tanh": lambda: f.tanh(),
            "clipped": lambda: f.clamp(0, 1),
        }
        return ends.get(self.last, lambda: f)()


class NoGrad(Victim):
    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class Detached(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).detach()


class NoInputGradient(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.detach())


class Rounded(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).round()


class InPlace(Victim):
    def forward(self, x: Tensor) -> Tensor:
        x -= 0.3
        return self.body(x)


class Drop(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.dropout(F.relu(self.first(x)), 0.5))


class Centred(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body((x - x.mean(0)) / (x.std(0) + 1e-3))


class BatchStatistics(Victim):
    def __init__(self, inputs: int = 4, n_outputs: int = 3):
        super().__init__(inputs, n_outputs)
        self.norm = nn.BatchNorm1d(16, track_running_stats=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.norm(self.first(x))))


class OverRows(Victim):
    """A softmax over the rows of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).softmax(0)


class OneClass(Victim):
    """Network that gives the first class log odds of at least 9."""

    def forward(self, x: Tensor) -> Tensor:
        f = self.body(x)
        return torch.stack([9 + f[:, 0].square(), f[:, 1].tanh()], 1)


class Nearest(nn.Module):
    """Nearest of the grades 1, 2 and 3 by the raw first column of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        return -4 * (x[:, :1] - self.centres) ** 2


class WholeRange(Victim):
    """Network that scales by the smallest and the largest number of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return self.body((x - x.min()) / (x.max() - x.min()))


class Recurrent(nn.Module):
    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.memory = nn.LSTM(2, 8, batch_first=batch_first)
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.memory(x.unflatten(1, (2, 2)))[0][:, -1])


class OverTime(Recurrent):
    """Network that treats the batch as time, as without ``batch_first``."""

    def __init__(self) -> None:
        super().__init__(batch_first=False)


class Pooled(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.mean(0, keepdim=True))


class Whole(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).long()


class NoNumber(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).log()


class LogOfSoftmax(Victim):
    """Network with a softmax that underflows."""

    def forward(self, x: Tensor) -> Tensor:
        return (1e4 * self.body(x)).softmax(1).log()


class CutOff(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).softmax(1).clamp(1e-3, 1 - 1e-3)


class Lazy(Victim):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LazyLinear(16)


class Remembers(Victim):
    def __init__(self) -> None:
        super().__init__()
        self.history: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.history.append(self.body(x))
        return self.history[-1]


class Single(Victim):
    """Network that computes and returns single precision."""

    def forward(self, x: Tensor) -> Tensor:
        w, a, v, b = (p.float() for p in self.parameters())
        return F.linear(F.linear(x.float(), w, a).relu(), v, b)


class Squeezed(Victim):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).squeeze()


class KeepsFeatures(Victim):
    """Keeps features of its last call in an attribute."""

    def forward(self, x: Tensor) -> Tensor:
        self.features = F.relu(self.first(x))
        return self.second(self.features)


class Impossible(Victim):
    """Network with an impossible last class."""

    def forward(self, x: Tensor) -> Tensor:
        f = self.body(x)
        return torch.cat([f[:, :-1], torch.full_like(f[:, -1:], -torch.inf)], 1)
