"""A kernel that adds up over the nodes of a clique."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.kernels.kernel import Kernel


@dataclass(frozen=True)
class SummedKernel:
    """The sum over the nodes of a clique of a kernel between their rows: the kernel printed in the paper.

    It is the function of a :class:`Kernel`.
    """

    kernel: Kernel
    size: int

    @property
    def is_mercer(self) -> bool:
        """Whether it is a Mercer kernel by its formula: sums of such kernels are."""
        return bool(self.kernel.is_mercer)

    def __call__(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Return the matrix of values between two sets of clique inputs."""
        width = X.shape[1] // self.size
        parts = [slice(slot * width, (slot + 1) * width) for slot in range(self.size)]
        return np.asarray(sum(self.kernel.values(X[:, part], Y[:, part]) for part in parts))
