"""Attention models and their training, in JAX: compositions of linear and softmax attention, LayerNorm and MLP."""

from ._architecture import Architecture as Architecture
from ._attentions import Attention as Attention
from ._attentions import Linear as Linear
from ._attentions import Softmax as Softmax
from ._attentions import known_attentions as known_attentions
from ._config import Training as Training
from ._config import configure as configure
from ._metrics import Row as Row
from ._metrics import tracker as tracker
from ._metrics import write_curve as write_curve
from ._model import Model as Model
from ._model import build as build
from ._positions import Sizes as Sizes
from ._positions import View as View
from ._trained import Trained as Trained
from ._training import find_rate as find_rate
from ._training import subject_of as subject_of
from ._training import train as train
from ._training import train_many as train_many
