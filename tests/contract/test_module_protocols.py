"""A module's parameters and buffers are members of the protocols that require them, on every
Python: from 3.12 on ``isinstance`` does not call ``__getattr__``."""

import inspect

import pytest
from typing_extensions import get_protocol_members, is_protocol

from components.contracts.capabilities import CAPABILITIES
from components.contracts.capabilities.modules import ModuleProtocol
from components.contracts.plugins.protocols import to_word

OF_MODELS = sorted(filter(is_protocol, CAPABILITIES), key=to_word)


@pytest.mark.parametrize("protocol", OF_MODELS)
def test_protocols_with_values_are_module_protocols(protocol):
    values = [
        member
        for member in get_protocol_members(protocol)
        if not inspect.isfunction(inspect.getattr_static(protocol, member, None))
    ]
    assert not values or isinstance(protocol, ModuleProtocol)
