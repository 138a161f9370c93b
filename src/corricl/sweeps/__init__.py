"""Sweeps: a grid declared in a file, run anywhere, resumed after anything."""

from ..setting import Setting as Setting
from ._estimator import Estimator as Estimator
from ._executors import Executor as Executor
from ._executors import Local as Local
from ._results import Results as Results
from ._run import DryRun as DryRun
from ._run import Interrupted as Interrupted
from ._run import Report as Report
from ._run import dry_run as dry_run
from ._run import run as run
from ._spec import Range as Range
from ._spec import Spec as Spec
from ._store import Merged as Merged
from ._store import Store as Store
from ._store import merge as merge
