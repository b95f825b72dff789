"""Checkpoints restore the exact state, and damaged ones are detected."""

from __future__ import annotations

import dataclasses
import json
import math
import threading

import pytest
import torch
from support.runs.configured import F64, generator

from runner.execution import checkpoint
from runner.execution.storage.packing import pack


@dataclasses.dataclass
class Moments:
    mean: torch.Tensor
    count: int


def _state():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    module(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
    return {
        "module": module,
        "optimizer": optimizer,
        "draws": [torch.arange(3), torch.tensor(2.5, dtype=F64)],
        "moments": Moments(torch.eye(2), 7),
        "numbers": (
            1,
            0.1,
            math.nan,
            -math.inf,
            None,
            True,
            "word",
            {3: "integer keys stay integers"},
        ),
    }


def _save(folder, state, step=10, signature="abc"):
    streams = {"noise": generator(3).get_state()}
    facts = {"step": step, "replicate": 0, "signature": signature}
    return checkpoint.save_checkpoint(folder, checkpoint.snapshot(state, streams, facts))


def test_round_trip_is_exact(tmp_path):
    state = _state()
    _save(tmp_path, state)
    facts, tensors, complaints = checkpoint.load_newest(tmp_path, "abc")
    fresh = _state()
    for p in fresh["module"].parameters():
        torch.nn.init.zeros_(p)
    fresh["draws"] = []
    got, streams = checkpoint.restore(facts, tensors, fresh)
    assert complaints == []
    for a, b in zip(
        got["module"].state_dict().values(), state["module"].state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)
    a = got["optimizer"].state_dict()
    b = state["optimizer"].state_dict()
    assert a["param_groups"] == b["param_groups"]
    assert all(
        torch.equal(a["state"][i][k], v) for i, s in b["state"].items() for k, v in s.items()
    )
    assert torch.equal(got["draws"][0], state["draws"][0])
    assert got["draws"][1].dtype == F64
    assert isinstance(got["moments"], Moments)
    assert got["moments"].count == 7
    assert repr(got["numbers"]) == repr(state["numbers"])
    assert torch.equal(streams["noise"], generator(3).get_state())


def test_unsupported_objects_are_refused():
    with pytest.raises(TypeError, match=r"state\.what: type Event cannot be stored"):
        pack({"what": threading.Event()}, {})


def test_two_checkpoints_are_kept_without_temporary_files(tmp_path):
    for step in (10, 20, 30):
        _save(tmp_path, {"x": torch.ones(2) * step}, step)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "r0000-s000000020.json",
        "r0000-s000000020.safetensors",
        "r0000-s000000030.json",
        "r0000-s000000030.safetensors",
    ]


DAMAGED = {
    "flip": lambda content: content[:-5] + bytes([content[-5] ^ 1]) + content[-4:],
    "cut": lambda content: content[:50],
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("damage", [*DAMAGED, "sidecar", "gone"])
def test_damaged_checkpoint_falls_back_to_the_previous_one(tmp_path, damage):
    _save(tmp_path, {"x": torch.ones(100)}, 10)
    path = _save(tmp_path, {"x": torch.ones(100) * 2}, 20)
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "sidecar":
        path.with_suffix(".json").write_text('{"step": 20')
    else:
        path.write_bytes(DAMAGED[damage](content))
    facts, tensors, complaints = checkpoint.load_newest(tmp_path, "abc")
    assert facts["step"] == 10
    assert len(complaints) == 1
    assert "r0000-s000000020" in complaints[0]
    state, _ = checkpoint.restore(facts, tensors, {"x": torch.zeros(1)})
    assert torch.equal(state["x"], torch.ones(100))


SKELETON = {"state": {"d": [[{"v": "x"}, {"v": 3}]]}, "streams": {"d": []}}
CHANGES = [  # keys of a sidecar; None if removed
    {"step": 17},
    {"sidecar_sha256": None, "block": None},
    {"sidecar_sha256": None, "sidecar_sha255": "0"},
    {"skeleton": SKELETON},
    {"skeleton": None},
]


@pytest.mark.parametrize("change", CHANGES)
def test_modified_sidecar_falls_back_to_the_previous_one(tmp_path, change):
    _save(tmp_path, {"x": torch.ones(3)}, 10)
    path = _save(tmp_path, {"x": torch.ones(3) * 2}, 20).with_suffix(".json")
    sidecar = json.loads(path.read_text()) | change
    path.write_text(json.dumps({k: v for k, v in sidecar.items() if v is not None}))
    facts, _, (complaint,) = checkpoint.load_newest(tmp_path, "abc")
    assert facts["step"] == 10
    assert complaint.startswith("r0000-s000000020.json: damaged")


def test_checkpoint_of_another_signature_is_not_resumed(tmp_path):
    _save(tmp_path, {"x": torch.ones(1)}, signature="another")
    assert checkpoint.load_newest(tmp_path, "abc") == ({}, {}, [])


def test_sidecar_is_json_and_nothing_is_pickled(tmp_path):
    path = _save(tmp_path, _state())
    assert json.loads(path.with_suffix(".json").read_text())["step"] == 10
    assert b"torch._utils" not in path.read_bytes()
