"""The concave-convex procedure for latent variables."""
