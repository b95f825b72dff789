"""A state-space model that does not fit a sequence is refused before any work."""

import pytest
import torch
from support.series.small_sequences import sequence, system

from components.errors import ConfigMismatchError
from components.series.dimensions import check_sizes, model_dims


def test_sizes_equal_those_of_the_model():
    s = system()
    cpu = torch.device("cpu")
    assert model_dims(s, cpu) == (3, 2)
    assert model_dims(object(), cpu) == (None, None)
    problem = sequence(s, 5, 2)
    check_sizes(problem, object())

    class Model:
        """Two states, one observation."""

        def init(self, shape, generator):
            return torch.zeros(*shape, 2)

        def transition(self, x, t, generator):
            return x

        def log_observation(self, y, x, t):
            return x.sum(-1)

        def observation_mean(self, x, t):
            return x[..., :1]

    assert model_dims(Model(), cpu) == (2, 1)
    with pytest.raises(
        ConfigMismatchError, match=r"1 values at a time, .* dataset=test has 2; change the model"
    ):
        check_sizes(problem, Model())
