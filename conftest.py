"""Says at the head of every test run which BLAS kernel the processor was given: rounding depends on it."""

import platform

import numpy  # noqa: F401  # loads its BLAS
import scipy.linalg  # noqa: F401  # loads another
from threadpoolctl import threadpool_info


def pytest_report_header() -> str:
    """One line, such as `BLAS: openblas 0.3.31 for SkylakeX, 1 threads; ... on x86_64`."""
    kinds = [
        f"{blas['internal_api']} {blas['version']} for {blas.get('architecture', '?')}, {blas['num_threads']} threads"
        for blas in threadpool_info()
        if blas["user_api"] == "blas"
    ]
    return f"BLAS: {'; '.join(kinds)} on {platform.machine()}"
