"""What ``dualfield train`` does: the fit, its progress, and what is written at the end."""
