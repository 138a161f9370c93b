# %% [markdown]
# # A kernel of your own: long memory
#
# The increments of a fractional Brownian motion, fractional Gaussian noise, are the textbook model of a series with a
# long memory: river levels, network traffic, volatility. Its correlations at lag t are
#
#     r(t) = (|t+1|^2H - 2 |t|^2H + |t-1|^2H) / 2,
#
# with a Hurst exponent H between 0 and 1. H = 1/2 is white noise; above it correlations fall as t^(2H-2).

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from corricl import InputError, Prompt, theory
from corricl.kernels import Stationary

# %% [markdown]
# A kernel that depends on the lag alone is a frozen dataclass with one method. Defining it registers it under its name,
# so that `fgn:0.8` works wherever a kernel is named, mixtures such as `0.9*fgn:0.8+0.1*iid` included.


# %%
@dataclass(frozen=True)
class FractionalNoise(Stationary):
    """Fractional Gaussian noise with Hurst exponent h in (0, 1)."""

    h: float
    name = "fgn"

    def __post_init__(self) -> None:
        if not 0 < self.h < 1:
            raise InputError(f"the Hurst exponent lies between 0 and 1; got {self.h}")

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        power = 2 * self.h
        return (np.abs(lag + 1.0) ** power - 2 * np.abs(1.0 * lag) ** power + np.abs(lag - 1.0) ** power) / 2


# %% [markdown]
# ## Where does a prompt stop being worth more when it grows?
#
# Linear attention feels `k2`, the sum of squared correlations that a token has with all others. The squares fall as
# t^(4H-4), so the sum converges for H < 3/4 and diverges beyond: there, ever longer prompts are worth a vanishing
# share of their length.

# %%
lengths = np.array([16, 32, 64, 128, 256, 512])
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for h in (0.5, 0.65, 0.75, 0.85, 0.95):
    worth = []
    for length in lengths:
        prompt = Prompt(d=16, length=int(length), kernel=f"fgn:{h}", noise=0.01)
        worth.append(length * (1 + prompt.noise) / (prompt.statistics.k2 + prompt.noise))
    axes.loglog(lengths, worth, "o-", label=f"H = {h}")
    print(f"H = {h:.2f}: {lengths[-1]} tokens are worth {worth[-1]:.0f} independent ones")
axes.set_xscale("log", base=2)
axes.set(xlabel="context length, in tokens", ylabel="worth, in independent tokens")
axes.legend()
figure.savefig("own_kernel.png", dpi=150)

# %% [markdown]
# ## Everything else follows
#
# The kernel has no closed forms and needs none. Every matrix is checked for positivity before it is used.

# %%
prompt = Prompt(d=16, length=64, kernel="0.9*fgn:0.85+0.1*iid", query="continues", noise=0.01)
for method in theory.compare(prompt):
    print(f"{method.method:<11} error {method.given.icl:.3f}, of which the query wins {method.query_gain:.3f}")

try:
    Prompt(d=16, length=64, kernel="fgn:1.2")
except InputError as error:
    print("refused:", error)
