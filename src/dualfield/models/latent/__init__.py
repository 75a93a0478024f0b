"""Latent variables: sub-states of labels, mixture components and bags, and how they are trained."""
