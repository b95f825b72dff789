"""All datasets draw random numbers only from the data stream, and nothing else depends on the
seed."""

import pytest
import torch
from contract.partners import runs_of
from support.runs.configured import make_setting

from components import registry
from runner.execution.data_digest import data_digest
from runner.execution.rng import Streams


def load_from_seed(dataset, seed):
    """Digest of the data, and names of the streams used."""
    rng = Streams(seed)
    untouched = Streams(seed).state()
    problem = dataset.load(rng, make_setting())
    drawn = [name for name, s in rng.state().items() if not torch.equal(s, untouched[name])]
    return data_digest(problem, {}), drawn


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", registry.names("dataset"))
def test_data_depend_only_on_their_stream(name, make_job):
    run = runs_of("dataset", name)[0]
    run.skip_without_packages()
    dataset = make_job(*run.overrides).dataset
    (first, drawn), (again, _), (other, _) = (load_from_seed(dataset, s) for s in (0, 0, 1))
    assert first == again
    assert drawn in ([], ["data"])
    assert (first != other) == (drawn == ["data"])
