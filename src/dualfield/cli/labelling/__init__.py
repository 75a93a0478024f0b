"""What ``dualfield tag`` does: labels for lines of every format, while they come in."""
