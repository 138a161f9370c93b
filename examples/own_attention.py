# %% [markdown]
# # An attention of your own: softmax with a sign
#
# A token opposite to the query is as telling as one like it: its label has the other sign. Linear attention knows
# that, softmax attention does not; its weights are positive. Softmax attention listens to the best tokens, linear
# attention to all of them. What about weights that do both, sinh over the sum of cosh?

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
from jax import Array

from corricl import Prompt, theory
from corricl.attention import Attention, Training, View, train

# %% [markdown]
# An attention makes weights of scores, both of shape (heads, rows, tokens); `view.seen` says which tokens a row may
# see. Defining the class is enough: `signed` is now a layer like `linear` and `softmax`, with heads, positions and
# masks, and with an MLP or a LayerNorm beside it.


# %%
class Signed(Attention):
    """Weights sinh(score) / sum of cosh(score)."""

    name = "signed"

    def weights(self, scores: Array, view: View) -> Array:
        seen = jnp.asarray(view.seen)[None]
        top = jax.lax.stop_gradient(jnp.abs(scores).max(-1, keepdims=True))  # cancels, and nothing overflows
        near, opposite = jnp.exp(scores - top), jnp.exp(-scores - top)
        return jnp.where(seen, near - opposite, 0) / jnp.where(seen, near + opposite, 0).sum(-1, keepdims=True)


# %% [markdown]
# ## Train it beside softmax attention
#
# Fresh prompts in every step, so that nothing can be memorised. The parameters that are best on validation prompts are
# kept, and scored on test prompts that no step has seen. The training is short; the dotted lines are the best that
# softmax attention and any model at all can do.

# %%
prompt = Prompt(d=4, length=16, kernel="exp:2", query="continues", noise=0.05)
config = Training(steps=150, batch=128, rate=3e-3, data="fresh", validation=2048, test=2048, interval=10)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for layers in ("softmax", "signed"):
    trained = train(layers, prompt, config, seed=0)
    risk = trained.risk()
    print(f"{layers}: error {risk.mean:.3f} ± {risk.stderr:.3f} after {trained.selected_step} steps")
    axes.plot([row.step for row in trained.curve], [row.validation for row in trained.curve], label=layers)
for method, color in (("softmax", "C0"), ("bayes", "k")):
    axes.axhline(theory.risk(prompt, method=method).icl, color=color, linestyle=":")
axes.set(xlabel="steps", ylabel="error on validation prompts", ylim=(0, None))
axes.legend()
figure.savefig("own_attention.png", dpi=150)
