"""Native kernels check the sizes of what they are given: what does not fit would be read or written out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import _native


def test_sizes_of_kernel_tasks_are_checked():
    """Labels, weights and starts that do not fit the kernel matrix would be read out of bounds."""
    points = np.random.default_rng(0).standard_normal((4, 2))
    matrix = _native.KernelMatrix.from_array(np.ascontiguousarray(points @ points.T))
    good = {
        "labels": np.array([0, 1, 2, 0], dtype=np.int32),
        "weights": np.ones(4),
        "n_classes": 3,
        "pinned": False,
        "with_bias": False,
        "label_kernel": None,
        "start": None,
        "start_bias": None,
        "tolerance": 1e-3,
        "most_passes": 10.0,
        "n_threads": 1,
        "callbacks": None,
    }
    _native.solve_newton(matrix, _native.KernelTask(**good), 0.1)
    wrong = [
        {"labels": good["labels"][:3]},
        {"labels": np.array([0, 1, 3, 0], dtype=np.int32)},
        {"labels": np.array([0, 1, -1, 0], dtype=np.int32)},
        {"weights": np.ones(5)},
        {"n_classes": 0},
        {"start": np.zeros((4, 2)), "start_bias": np.zeros(3)},
        {"start": np.zeros((4, 3)), "start_bias": np.zeros(2)},
        {"start": np.zeros((4, 3))},
        {"label_kernel": np.eye(2)},
    ]
    for change in wrong:
        with pytest.raises(ValueError, match=r"must|belongs"):
            _native.solve_newton(matrix, _native.KernelTask(**good | change), 0.1)
    with pytest.raises(ValueError, match="a row for each point"):
        matrix.product(np.zeros((5, 1)), 1)
    with pytest.raises(ValueError, match="a column for each row"):
        _native.KernelMatrix.from_array(np.zeros((4, 3)))


def test_compressed_rows_are_checked():
    """Columns that are not there would be written to out of bounds."""
    good = (np.ones(3), np.array([0, 1, 0], dtype=np.int32), np.array([0, 2, 3]), 2)
    function = _native.KernelFunction("linear", 1.0, 0.0, 1.0)
    assert _native.kernel_values(good, good, function, 1).tolist() == [[2.0, 1.0], [1.0, 1.0]]
    wrong = [
        (*good[:3], 1),
        (good[0], np.array([0, -1, 0], dtype=np.int32), *good[2:]),
        (good[0], good[1], np.array([0, 2, 4]), 2),
        (good[0], good[1], np.array([0, 4, 3]), 2),
        (good[0][:2], *good[1:]),
    ]
    for rows in wrong:
        with pytest.raises(ValueError, match=r"indices must|indptr must"):
            _native.kernel_values(rows, rows, function, 1)
        with pytest.raises(ValueError, match=r"indices must|indptr must"):
            _native.BitMatrix.pack(rows)
