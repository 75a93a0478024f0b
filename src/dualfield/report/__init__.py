"""Self-contained HTML reports, one file, no script, no outside resource, and what they are built of.

Figures are drawn with matplotlib: ``pip install matplotlib``.
"""

from dualfield.metrics import CalibrationBins, calibration_bins
from dualfield.plotting.heat_map import heat_map
from dualfield.plotting.inline_svg import svg_document
from dualfield.plotting.line_chart import Line, line_chart
from dualfield.plotting.markup import Html, escape
from dualfield.plotting.reliability import reliability_diagram
from dualfield.plotting.tables import table
from dualfield.report.page import page, write_page
from dualfield.report.training import training_page
from dualfield.report.training_dev import DevData
from dualfield.report.tuning import tuning_page

__all__ = [
    "CalibrationBins",
    "DevData",
    "Html",
    "Line",
    "calibration_bins",
    "escape",
    "heat_map",
    "line_chart",
    "page",
    "reliability_diagram",
    "svg_document",
    "table",
    "training_page",
    "tuning_page",
    "write_page",
]
