"""A user's script for the answer of the experiment digits_fgsm: torch and scikit-learn."""

from __future__ import annotations

import json

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy

EPS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
STEPS = 3000

torch.manual_seed(0)
torch.set_num_threads(1)
images, labels = load_digits(return_X_y=True)
x, x_test, y, y_test = (
    torch.from_numpy(array)
    for array in train_test_split(
        (images / 16).astype("float32"), labels, test_size=500, random_state=0
    )
)
network = nn.Sequential(
    *(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
)
# the prior N(0, 1) of every weight
adam = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1 / len(x))
for _ in range(STEPS):
    rows = torch.randint(len(x), (64,))
    adam.zero_grad()
    cross_entropy(network(x[rows]), y[rows]).backward()
    adam.step()
inputs = x_test.clone().requires_grad_()
(slope,) = torch.autograd.grad(cross_entropy(network(inputs), y_test), inputs)
answer = {}
with torch.no_grad():
    for eps in EPS:
        attacked = (x_test + eps * slope.sign()).clamp(0, 1)
        answer[f"{eps:.2f}"] = float((network(attacked).argmax(1) == y_test).float().mean())
print(json.dumps(answer))
