"""Descent on the weights."""
