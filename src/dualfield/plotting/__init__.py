"""Figures of fitted models as displays in the style of scikit-learn: objects that hold the data and draw it.

Each has ``plot(ax=None)``, which draws with matplotlib (``pip install matplotlib``), and ``html()`` for the
pages of :mod:`dualfield.report`: what ``plot`` draws as inline SVG, or text and tables where those read better.
"""

from dualfield.plotting.calibration_change import CalibrationChangeDisplay
from dualfield.plotting.confusion import ConfusionDisplay
from dualfield.plotting.convergence import ConvergenceDisplay
from dualfield.plotting.graph import GraphDisplay
from dualfield.plotting.learning_curve import LearningCurveDisplay
from dualfield.plotting.marginals import MarginalsDisplay
from dualfield.plotting.parse_trees.arcs import ArcDisplay
from dualfield.plotting.parse_trees.tree import TreeDisplay
from dualfield.plotting.reliability import ReliabilityDisplay
from dualfield.plotting.top_features import TopFeaturesDisplay
from dualfield.plotting.transition import TransitionDisplay
from dualfield.plotting.tuning_curve import TuningCurveDisplay

__all__ = [
    "ArcDisplay",
    "CalibrationChangeDisplay",
    "ConfusionDisplay",
    "ConvergenceDisplay",
    "GraphDisplay",
    "LearningCurveDisplay",
    "MarginalsDisplay",
    "ReliabilityDisplay",
    "TopFeaturesDisplay",
    "TransitionDisplay",
    "TreeDisplay",
    "TuningCurveDisplay",
]
