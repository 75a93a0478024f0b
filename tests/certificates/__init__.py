"""Certificates under attack: hostile problems, exact objectives, claims that must hold for every fit."""
