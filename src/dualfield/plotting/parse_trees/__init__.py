"""Drawings of the trees of sentences: brackets and arcs."""
