"""Structures: sets of labellings with an exact oracle on scores."""

from dualfield.structures.base import Structure
from dualfield.structures.bounds import BestPoints, BoundedLabels, Bounds
from dualfield.structures.chain import Chain
from dualfield.structures.constraints import span_constraints
from dualfield.structures.custom import CustomProblem, check_custom_problem
from dualfield.structures.factor_graph import FactorGraph
from dualfield.structures.graph import Graph
from dualfield.structures.graph_input import FlatGraphs, grid_edges
from dualfield.structures.graph_shape import GraphShape
from dualfield.structures.hypergraph import Hypergraph
from dualfield.structures.hypergraph_input import HypergraphShape
from dualfield.structures.label_graph import LabelGraph
from dualfield.structures.label_sets import LabelSets
from dualfield.structures.learnt_trees import mutual_information, spanning_tree
from dualfield.structures.network import Network
from dualfield.structures.network.hidden import Conditioned
from dualfield.structures.opened import Opened
from dualfield.structures.parse_trees.arc_shape import ArcShape, head_probabilities
from dualfield.structures.parse_trees.dependency import Dependency
from dualfield.structures.parse_trees.grammar import Grammar
from dualfield.structures.parse_trees.span_features import default_texts
from dualfield.structures.parse_trees.span_shape import SpanShape
from dualfield.structures.parse_trees.spans import Spans
from dualfield.structures.scores import KBest, Marginals, Scores
from dualfield.structures.segments import SegmentShape
from dualfield.structures.semi_markov import SemiMarkov
from dualfield.structures.single import Single
from dualfield.structures.tree import Tree, TreeShape
from dualfield.structures.user import UserStructure

__all__ = [
    "ArcShape",
    "BestPoints",
    "BoundedLabels",
    "Bounds",
    "Chain",
    "Conditioned",
    "CustomProblem",
    "Dependency",
    "FactorGraph",
    "FlatGraphs",
    "Grammar",
    "Graph",
    "GraphShape",
    "Hypergraph",
    "HypergraphShape",
    "KBest",
    "LabelGraph",
    "LabelSets",
    "Marginals",
    "Network",
    "Opened",
    "Scores",
    "SegmentShape",
    "SemiMarkov",
    "Single",
    "SpanShape",
    "Spans",
    "Structure",
    "Tree",
    "TreeShape",
    "UserStructure",
    "check_custom_problem",
    "default_texts",
    "grid_edges",
    "head_probabilities",
    "mutual_information",
    "span_constraints",
    "spanning_tree",
]
