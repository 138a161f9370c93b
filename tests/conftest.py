"""Strict settings for every test: JAX promotes neither types nor ranks, and 64-bit types are not on globally."""

import os

os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"  # before anything imports jax
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ.pop("JAX_ENABLE_X64", None)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import pytest
from hypothesis import settings

from corricl.cli import main

settings.register_profile("corricl", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("corricl")


@pytest.fixture
def own_registries(monkeypatch):
    """Kernels and attentions of the examples stay in them."""
    from corricl.attention import Attention
    from corricl.kernels import Kernel

    for kind in (Kernel, Attention):
        monkeypatch.setattr(kind, "registry", dict(kind.registry))


@pytest.fixture
def run(capsys):
    """Run a command; returns (exit code, stdout, stderr)."""

    def call(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call
