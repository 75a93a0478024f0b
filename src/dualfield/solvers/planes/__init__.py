"""Solvers that see losses as maxima of planes."""
