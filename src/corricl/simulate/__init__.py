"""The reduced model at finite size, in float64: samplers, the ridge solve, exact errors with standard errors."""

from ._contexts import Contexts as Contexts
from ._contexts import batches as batches
from ._contexts import sample as sample
from ._contexts import score as score
from ._predictors import Predictor as Predictor
from ._predictors import context_ridge as context_ridge
from ._predictors import optimal as optimal
from ._predictors import softmax as softmax
from ._predictors import weighted_linear as weighted_linear
from ._replicates import Replicate as Replicate
from ._replicates import Simulation as Simulation
from ._replicates import data_error as data_error
from ._replicates import estimate as estimate
from ._replicates import pretrain as pretrain
from ._replicates import replicate as replicate
from ._replicates import risk as risk
from ._solver import Solution as Solution
