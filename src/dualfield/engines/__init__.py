"""Where the work on partitions is done: here, one after another, or on the workers of a Dask cluster.

The same function of the same partitions gives the same bits on every engine: results are added up in the order of the
partitions, in a tree that depends on their number alone.
"""

from dualfield.engines.choice import engine_of
from dualfield.engines.dask_engine import DaskEngine
from dualfield.engines.engine import Engine, Handles, LostClusterError, add_in_order
from dualfield.engines.serial import Serial

__all__ = ["DaskEngine", "Engine", "Handles", "LostClusterError", "Serial", "add_in_order", "engine_of"]
