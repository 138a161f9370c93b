# %% [markdown]
# # How much is a real series worth?
#
# Sunspots since 1700, one number a year. Cut into prompts of 44 years, how many independent examples does each hold?
# The data ship with statsmodels, which corricl needs for development only.

# %%
import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import sunspots

from corricl import Prompt, theory
from corricl.measure import measure

series = sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()

# %% [markdown]
# ## Measure
#
# `k2` is one for independent tokens; what correlations add to it is paid in examples. Every number comes with an
# interval, because three hundred years are only seven prompts.

# %%
found = measure(np.sqrt(series), length=44)
worth = found.effective_length
print(f"k2 = {found.k2.estimate:.1f}, between {found.k2.low:.1f} and {found.k2.high:.1f}")
print(f"{found.length} years are worth {worth.estimate:.1f} independent ones ({worth.low:.1f} to {worth.high:.1f})")
for caution in found.warnings:
    print("caution:", caution.message)

# %% [markdown]
# ## Use what was found
#
# The best of the fitted kernels is a string, and goes wherever a kernel does. What would a model make of a prompt with
# these correlations, and how much would it gain from a query that is the year to come?

# %%
print("fitted kernel:", found.kernel)
prompt = Prompt(d=8, length=44, kernel=found.kernel, query="continues", noise=0.1)
for method in theory.compare(prompt):
    print(
        f"{method.method:<11} next year {method.given.icl:.3f}, any year {method.independent.icl:.3f},"
        f" iid tokens {method.iid.icl:.3f}"
    )

# %%
band, lags = found.autocorrelation, np.arange(found.length + 1)
fitted = prompt.kernel.correlation(np.ones(1, int), 1 + lags)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.fill_between(lags, band.low, band.high, alpha=0.3)
axes.plot(lags, band.estimate, label="measured")
axes.plot(lags, fitted, "--", label=found.kernel)
axes.set(xlabel="lag, in years", ylabel="autocorrelation")
axes.legend()
figure.savefig("real_series.png", dpi=150)
