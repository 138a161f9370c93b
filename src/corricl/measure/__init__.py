"""How much a user's own sequences and examples are worth."""

from ._choose import Choice as Choice
from ._choose import ChosenPrompt as ChosenPrompt
from ._choose import Selector as Selector
from ._choose import choose as choose
from ._choose import selector as selector
from ._choose_models import prompt_risk as prompt_risk
from ._choose_space import PREPARATIONS as PREPARATIONS
from ._choose_space import Space as Space
from ._choose_space import prepare as prepare
from ._fit import Fit as Fit
from ._input import read as read
from ._intervals import Interval as Interval
from ._kernel import EstimatedKernel as EstimatedKernel
from ._kernel import estimated_kernel as estimated_kernel
from ._measure import Band as Band
from ._measure import Measurement as Measurement
from ._measure import Preprocessing as Preprocessing
from ._measure import measure as measure
from ._predict import Prediction as Prediction
from ._predict import predict as predict
from ._report import draw as draw
from ._report import meaning as meaning
from ._report import page as page
from ._report import report as report
