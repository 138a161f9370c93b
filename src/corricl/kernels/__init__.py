"""Token correlation kernels: families, their SPEC strings, queries and statistics."""

from ._base import Kernel as Kernel
from ._base import Stationary as Stationary
from ._combine import Mixture as Mixture
from ._combine import Product as Product
from ._families import AR1 as AR1
from ._families import IID as IID
from ._families import Blocks as Blocks
from ._families import Cosine as Cosine
from ._families import Equicorrelated as Equicorrelated
from ._families import Exponential as Exponential
from ._families import Matern as Matern
from ._families import MovingAverage as MovingAverage
from ._families import PowerLaw as PowerLaw
from ._families import SquaredExponential as SquaredExponential
from ._parse import known_kernels as known_kernels
from ._parse import parse as parse
from ._query import Query as Query
from ._statistics import Statistics as Statistics
from ._statistics import ar1_statistics as ar1_statistics
from ._statistics import limit_statistics as limit_statistics
from ._statistics import statistics as statistics
from ._tabulated import Tabulated as Tabulated
