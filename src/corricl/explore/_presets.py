"""Settings of the figures, to start from."""

from __future__ import annotations

import math

from ._state import State

PRESETS = {
    "effective-length": State(query="independent"),
    "query-gain": State(query="continues"),
    "mismatch": State(kernel="exp:4", query="continues", tasks=math.inf, ridge=0.0),
    "softmax-length": State(kernel="exp:10", query="independent", tasks=math.inf, ridge=0.0),
    "double-descent": State(d=20, length=200, sequences=800, tasks=10, kernel="iid", axis="tau", scale="log"),
    "task-diversity": State(d=20, length=200, sequences=4000, tasks=320, ridge=1e-6, kernel="iid", axis="kappa"),
    "breakdown": State(d=32, length=32, sequences=2048, tasks=16, ridge=1e-2, kernel="exp:32", query="independent"),
}
"""By the name of the figure whose setting each is (at the size of `--quick` where that is smaller)."""
