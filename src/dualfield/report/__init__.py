"""Building blocks of self-contained HTML reports: one file, no script, no outside resource."""

from dualfield.report.charts import CalibrationBins, calibration_bins, heat_map, reliability_diagram
from dualfield.report.line_chart import Line, line_chart, svg_document
from dualfield.report.page import Html, escape, page, table, write_page
from dualfield.report.png import encode_png, png_data_uri

__all__ = [
    "CalibrationBins",
    "Html",
    "Line",
    "calibration_bins",
    "encode_png",
    "escape",
    "heat_map",
    "line_chart",
    "page",
    "png_data_uri",
    "reliability_diagram",
    "svg_document",
    "table",
    "write_page",
]
