"""Models that are tables of probabilities: HMMs, Bayesian networks and grammars, counted or trained by margins."""
