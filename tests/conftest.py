"""Strict settings for every test: JAX promotes neither types nor ranks, and 64-bit types are not on globally."""

import os

os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"  # before anything imports jax
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ.pop("JAX_ENABLE_X64", None)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from hypothesis import settings

settings.register_profile("corricl", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("corricl")
