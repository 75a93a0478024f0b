"""Mercer kernels: their values in rows and blocks, their parameters, and landmarks."""

from dualfield.kernels.kernel import Kernel

__all__ = ["Kernel"]
