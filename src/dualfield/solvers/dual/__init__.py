"""Dual ascent, example by example."""
