"""What the parameters of a conditional graphical model ask for, checked."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from dualfield.data.checks import check_choice, check_integer, check_number
from dualfield.kernels.kernel import KERNEL_NAMES
from dualfield.scores.cliques import is_count
from dualfield.solvers.kernel.cliques import CliqueModel
from dualfield.structures import Chain
from dualfield.structures.pairwise import Pairwise

OWNER = "ConditionalGraphicalModel"
# What the study of each loss found useful on letters.
DEFAULT_C = {"hinge": 5.0, "log": 100.0, "squared": 50.0}


def check_parameters(model: Any) -> None:
    """Raise an error that names the parameter unless all of them make sense, together too."""
    check_choice(OWNER, "loss", model.loss, tuple(DEFAULT_C))
    choices = ("joint", "tied", "tied_separately", "tied_printed")
    check_choice(OWNER, "features", model.features, choices)
    named = tuple(name for name in KERNEL_NAMES if name != "precomputed")
    if not callable(model.kernel):
        check_choice(OWNER, "kernel", model.kernel, named, "a callable")
    if isinstance(model.gamma, str):
        check_choice(OWNER, "gamma", model.gamma, ("clique", "scale", "auto"), "a float in (0, inf)")
    else:
        check_number(OWNER, "gamma", model.gamma, 0.0, open_low=True)
    check_number(OWNER, "degree", model.degree, 0.0)
    check_number(OWNER, "coef0", model.coef0, -np.inf)
    if model.C is not None:
        check_number(OWNER, "C", model.C, 0.0, open_low=True)
    check_number(OWNER, "tol", model.tol, 0.0, open_low=True)
    check_number(OWNER, "cache_size", model.cache_size, 0.0)
    check_number(OWNER, "backoff_cost", model.backoff_cost, 0.0)
    check_integer(OWNER, "max_iter", model.max_iter, 1, or_none=True)
    check_integer(OWNER, "verbose", model.verbose, 0)
    check_choice(OWNER, "response_method", model.response_method, ("auto", "decision_function", "predict_proba"))
    _check_tying(model)
    unseen_score(model.unseen)
    _check_features(model)
    check_padding(model.padding)
    chain_order(model.graph)
    combined_weights(model.combine)


def _check_tying(model: Any) -> None:
    if isinstance(model.graph, Pairwise):
        if model.tying is not None:
            check_choice(OWNER, "tying", model.tying, ("shared", "type"), "None with trees and graphs")
    elif not (model.tying is None or callable(model.tying)):
        check_choice(OWNER, "tying", model.tying, ("shared", "position"), "None, a callable")


def _check_features(model: Any) -> None:
    if model.base_estimator is not None:
        if not hasattr(model.base_estimator, "fit"):
            raise ValueError(
                f"The 'base_estimator' parameter of {OWNER} must be a classifier with a fit method. "
                f"Got {model.base_estimator!r} instead."
            )
        answers = [name for name in ("decision_function", "predict_proba") if hasattr(model.base_estimator, name)]
        if not answers or model.response_method not in ("auto", *answers):
            wanted = "decision_function or predict_proba" if not answers else model.response_method
            raise ValueError(
                f"The 'base_estimator' parameter of {OWNER} must have {wanted}. Got {model.base_estimator!r} instead."
            )
        if model.features in ("tied", "tied_printed"):
            raise ValueError(
                f"features={model.features!r} needs a kernel: it cannot be used with base_estimator. "
                f"Use 'joint' or 'tied_separately'."
            )
    elif model.features == "tied" and model.loss != "hinge":
        raise ValueError(
            f"features='tied' is trained with loss='hinge'. Got loss={model.loss!r}; use 'tied_separately' with it."
        )


def check_padding(padding: Any) -> tuple[int, int]:
    """Return how many blank nodes go before and behind each sequence."""
    pair = tuple(padding) if isinstance(padding, (tuple, list, np.ndarray)) else ()
    good = len(pair) == 2 and all(is_count(one) for one in pair)
    if not good:
        raise ValueError(
            f"The 'padding' parameter of {OWNER} must be two ints in [0, inf), before and behind a sequence. "
            f"Got {padding!r} instead."
        )
    return int(pair[0]), int(pair[1])


def unseen_score(unseen: Any) -> float | None:
    """Return the score of unseen tuples; None where it comes from smaller cliques."""
    if isinstance(unseen, str):
        check_choice(OWNER, "unseen", unseen, ("backoff", "-inf"), "a float")
        return None if unseen == "backoff" else -np.inf
    number = isinstance(unseen, numbers.Real) and not isinstance(unseen, (bool, np.bool_))
    if not number or np.isnan(unseen) or unseen == np.inf:
        raise ValueError(
            f"The 'unseen' parameter of {OWNER} must be 'backoff', '-inf' or a float below inf. Got {unseen!r} instead."
        )
    return float(unseen)


def chain_order(graph: Any) -> int | None:
    """Return the order of a chain; None for a graph of fixed size, and for trees and graphs of any shape."""
    if isinstance(graph, Chain):
        if graph.allowed is not None or graph.allowed_start is not None or graph.allowed_stop is not None:
            raise ValueError(
                f"The 'graph' parameter of {OWNER} takes the order of a chain only: which labels may follow each "
                f"other is said by 'unseen'. Got {graph!r} instead."
            )
        return int(graph.order)
    if is_count(graph):
        return int(graph)
    if isinstance(graph, Pairwise):
        if not graph.is_free:
            raise ValueError(
                f"The 'graph' parameter of {OWNER} takes a {type(graph).__name__} without 'allowed': which labels an "
                f"edge may join is said by 'unseen'. Got {graph!r} instead."
            )
        return None
    if isinstance(graph, (list, tuple)) or (isinstance(graph, str) and graph == "tree"):
        return None
    parts = getattr(graph, "name", graph)
    if isinstance(parts, str) and parts in ("semi_markov", "spans", "grammar", "dependency"):
        raise ValueError(
            f"The 'graph' parameter of {OWNER} must be a chain, a tree or a graph, whose cliques are fixed before "
            f"labels are known, and are trained apart. Those of {graph!r} depend on the labelling; CRF and "
            "StructuredSVM take it."
        )
    raise ValueError(
        f"The 'graph' parameter of {OWNER} must be an int in [0, inf), a Chain, a list of tuples of nodes, 'tree' (the "
        f"spanning tree of the columns of y), or an object Tree() or Graph() for examples of any shape. "
        f"Got {graph!r} instead."
    )


def combined_weights(combine: Any) -> dict[int, float] | None:
    """Return the weight of each order; None where the cliques of the graph are added up as they are."""
    if isinstance(combine, str) and combine == "sum":
        return None
    good = isinstance(combine, Mapping) and len(combine) > 0
    if good:
        for order, weight in combine.items():
            real = isinstance(weight, numbers.Real) and not isinstance(weight, (bool, np.bool_))
            good = good and is_count(order) and real and 0 < float(weight) < np.inf
    if not good:
        raise ValueError(
            f"The 'combine' parameter of {OWNER} must be 'sum' or a dict from orders, ints in [0, inf), to weights in "
            f"(0, inf). Got {combine!r} instead."
        )
    return {int(order): float(weight) for order, weight in combine.items()}


def check_combined(combine: Any, order: int) -> None:
    """Raise unless the graph has cliques of all orders that are combined."""
    highest = max(combined_weights(combine) or [order])
    if highest > order:
        raise ValueError(
            f"The 'combine' parameter of {OWNER} must not name an order above that of the graph, {order}. "
            f"Got {combine!r} instead."
        )


def score_kinds(model: Any, models: Mapping[Any, CliqueModel]) -> tuple[str, str | None]:
    """Return how the models of cliques are asked for scores, and for probabilities if they have any."""
    if model.base_estimator is None:
        is_log = model.loss == "log"
        return "tied" if model.features == "tied" else "log" if is_log else "kernel", "log" if is_log else None
    likely = "predict_proba" if hasattr(model.base_estimator, "predict_proba") else None
    if model.response_method != "auto":
        return model.response_method, likely
    known = (one.estimator for one in models.values() if one.estimator is not None)
    has_margins = hasattr(next(known, None), "decision_function")
    return "decision_function" if has_margins else "predict_proba", likely
