"""A plugin of pytest: the tests of safetensors import `tenfold.compat.safetensors` instead."""

import importlib
import sys

import pytest

#: Tests that cannot apply, and why.
NOT_FOR_US = {}

for name in ("", ".numpy", ".torch", ".flax", ".tensorflow", ".mlx"):
    try:
        sys.modules["safetensors" + name] = importlib.import_module("tenfold.compat.safetensors" + name)
    except ImportError:
        pass


def pytest_collection_modifyitems(items):
    for item in items:
        for part, why in NOT_FOR_US.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=why))
