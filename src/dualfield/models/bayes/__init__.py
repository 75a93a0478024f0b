"""Models that average over weights, and the choice of C by evidence: posteriors, evidence, bags of bootstrap fits."""
