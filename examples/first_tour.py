# %% [markdown]
# # A first tour
#
# A model sees pairs (x, y) in its prompt and must guess the label of one more x. How much do correlated
# examples cost it, and how much does a query that continues the sequence win back?

# %%
import matplotlib.pyplot as plt
import numpy as np

from corricl import Pretraining, Prompt, simulate, theory

# %% [markdown]
# ## One prompt
#
# Forty-eight tokens in twelve dimensions. Neighbours are correlated over about three positions, and so is the query,
# which comes next in the sequence. Three numbers sum up the correlations: `k2` for the tokens among themselves, `k0`
# and `k1` for the query and the tokens.

# %%
prompt = Prompt(d=12, length=48, kernel="exp:3", query="continues", noise=0.05)
k0, k1, k2 = prompt.statistics
print(f"k0 = {k0:.2f}, k1 = {k1:.2f}, k2 = {k2:.2f}")

# %% [markdown]
# ## What is the best that each kind of model can do with it?
#
# `independent` is the same context with an unrelated query, `iid` a prompt without correlations.

# %%
for method in theory.compare(prompt):
    print(
        f"{method.method:<11} error {method.given.icl:.3f}"
        f" | independent query {method.independent.icl:.3f} | iid tokens {method.iid.icl:.3f}"
    )

# %% [markdown]
# ## A model that was pretrained
#
# Those were optima. A real model learns from finitely many sequences and tasks. Theory predicts its error, and a
# finite model confirms it: pretrained anew in each replicate, scored exactly on fresh tasks.

# %%
pretraining = Pretraining(prompt, sequences=600, tasks=60)
predicted = theory.risk(pretraining, ridge=0.01)
measured = simulate.risk(pretraining, ridge=0.01, seed=0, replicates=4)
print(
    f"theory ({predicted.method}) {predicted.icl:.3f}, simulation {measured.icl.mean:.3f} ± {measured.icl.stderr:.3f}"
)
print(f"worth {predicted.effective_length:.0f} independent examples; the query wins {predicted.query_gain:.3f}")
assert abs(predicted.icl / measured.icl.mean - 1) < 0.1

# %% [markdown]
# ## A curve
#
# A method takes a prompt, so a curve is a loop. Longer correlations cost an independent query dearly; a query that
# continues the sequence loses less, and softmax attention even gains.

# %%
reach = np.geomspace(0.5, 30, 7)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for method in ("linear", "softmax", "bayes"):
    for query, style in (("independent", "--"), ("continues", "-")):
        prompts = [prompt.replace(kernel=f"exp:{xi}", query=query) for xi in reach]
        errors = [theory.risk(p, method=method).icl for p in prompts]
        color = {"linear": "C0", "softmax": "C1", "bayes": "C2"}[method]
        axes.semilogx(reach, errors, style, color=color, label=f"{method}, {query}")
axes.set(xlabel="correlation length ξ, in positions", ylabel="error on fresh tasks", ylim=(0, None))
axes.legend(fontsize="small")
figure.savefig("first_tour.png", dpi=150)
