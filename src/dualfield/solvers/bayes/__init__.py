"""Distributions over weights in the place of one set of them: variational, by sampling, by expectation propagation."""
