"""Metrics of predicted label sequences and trees: tokens, sequences, spans, brackets, arcs, probabilities."""

from dualfield.data.span_labels import SchemeError, convert_scheme, span_labels, spans
from dualfield.metrics.attachment import AttachmentScores, attachment_scores
from dualfield.metrics.calibration import CalibrationBins, calibration_bins, calibration_error
from dualfield.metrics.cross_validation import cross_val_predict
from dualfield.metrics.parse_metrics import ParseScores, parse_f1_score, parse_scores
from dualfield.metrics.probabilities import token_brier_score, token_log_loss
from dualfield.metrics.scorers import (
    neg_brier_scorer,
    neg_calibration_error_scorer,
    neg_log_loss_scorer,
    sequence_accuracy_scorer,
    span_f1_scorer,
    token_f1_scorer,
)
from dualfield.metrics.span_errors import SpanError, span_errors
from dualfield.metrics.span_metrics import SpanScore, SpanScores, span_f1_score, span_scores
from dualfield.metrics.span_report import span_report
from dualfield.metrics.token_metrics import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_precision_score,
    flat_recall_score,
    sequence_accuracy_score,
    token_f1_score,
)

__all__ = [
    "AttachmentScores",
    "CalibrationBins",
    "ParseScores",
    "SchemeError",
    "SpanError",
    "SpanScore",
    "SpanScores",
    "attachment_scores",
    "calibration_bins",
    "calibration_error",
    "convert_scheme",
    "cross_val_predict",
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_precision_score",
    "flat_recall_score",
    "neg_brier_scorer",
    "neg_calibration_error_scorer",
    "neg_log_loss_scorer",
    "parse_f1_score",
    "parse_scores",
    "sequence_accuracy_score",
    "sequence_accuracy_scorer",
    "span_errors",
    "span_f1_score",
    "span_f1_scorer",
    "span_labels",
    "span_report",
    "span_scores",
    "spans",
    "token_brier_score",
    "token_f1_score",
    "token_f1_scorer",
    "token_log_loss",
]
