"""What a fitted model is asked beyond its structure: explanations, spans, calibration."""
