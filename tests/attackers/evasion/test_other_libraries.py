"""PGD of torchattacks and foolbox, if installed, against ours."""

import pytest
import torch
from support.small.small_victims import Softmax, images, perturb

from components.contracts.costs.queries import Queries, counting_queries
from components.errors import ConfigMismatchError

PEERS = {"torchattacks_pgd": 0, "foolbox_pgd": 1}  # predictions after the last step
STEPS = 20
ROWS = 100


class Counted(Softmax):
    """A victim that counts rows predicted (``calls``), and rows with a gradient (``slopes``)."""

    def predict(self, x, g):
        predictive = super().predict(x, g)
        if x.requires_grad:
            predictive.logits.register_hook(lambda _: self.slopes.append(len(x)))
        return predictive


def attack(name, size, **keys):
    """Victim, x' and counted queries."""
    if name in PEERS:
        pytest.importorskip(name.removesuffix("_pgd"))
    model = Counted(draws=2, inputs=16, scale=0.3)
    x, y = images(model, ROWS)
    model.calls = 0
    model.slopes = []
    queries = Queries()
    with counting_queries(queries):
        ends = perturb(name, model, x, y, size, steps=STEPS, step_size=0.125, **keys)
    return model, ends, queries


@pytest.mark.parametrize(("norm", "size"), [("linf", 0.2), ("l2", 0.5)])
@pytest.mark.parametrize("name", PEERS)
def test_peer_ends_where_our_pgd_ends(name, norm, size):
    """Without random starts, and at the same cost."""
    keys = {"size": size, "norm": norm, "random_start": False}
    state = torch.get_rng_state()
    model, ends, queries = attack(name, **keys)
    assert torch.equal(torch.get_rng_state(), state)
    _, expected, ours = attack("pgd", **keys, stop_when_broken=False)
    # torchattacks adds 1e-10 to the norms of gradients
    torch.testing.assert_close(ends, expected, rtol=0, atol=1e-6)
    assert queries.gradients == sum(model.slopes) == ours.gradients == STEPS * ROWS
    assert queries.forwards == model.calls == ours.forwards + PEERS[name] * ROWS


def test_torchattacks_refuses_other_bounds():
    with pytest.raises(ConfigMismatchError, match="use attacker=foolbox_pgd"):
        attack("torchattacks_pgd", 0.1, bounds=None)


def test_torchattacks_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr("components.errors.find_spec", lambda _: None)
    model = Softmax()
    with pytest.raises(ConfigMismatchError, match="pip install --no-deps torchattacks"):
        perturb("torchattacks_pgd", model, *images(model), 0.1)
