"""A module's parameters and buffers are members of the protocols that ask for them, on every
Python: from 3.12 on ``isinstance`` does not call ``__getattr__``."""

import inspect

import pytest
from typing_extensions import get_protocol_members, is_protocol

from components.contracts.capabilities import CAPABILITIES
from components.contracts.capabilities.modules import ModuleProtocol

OF_MODELS = [
    name
    for name, one in CAPABILITIES.items()
    if is_protocol(one) and one.__module__.startswith("components.contracts.capabilities.")
]


@pytest.mark.parametrize("name", OF_MODELS)
def test_protocols_with_values_ask_modules_for_them(name):
    protocol = CAPABILITIES[name]
    values = [
        member
        for member in get_protocol_members(protocol)
        if not inspect.isfunction(inspect.getattr_static(protocol, member, None))
    ]
    assert not values or isinstance(protocol, ModuleProtocol)
