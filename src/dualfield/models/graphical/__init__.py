"""Conditional graphical models: cliques that are trained apart and put together for prediction."""
