"""Tables with a row for each token."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import CRF
from dualfield.data import Batch, Labels
from dualfield.io import compile_corpus
from dualfield.io.compiling import table_chunks
from tests.io.compiling.test_equal_to_whole import check_rows, order_of

pytest.importorskip("pyarrow", reason="pyarrow is not installed: the extra 'parquet'")


def table_of(X, y, ids=None):
    import pyarrow

    ids = range(len(X)) if ids is None else ids
    columns = {
        "sentence_id": [name for name, items in zip(ids, X, strict=True) for _ in items],
        "label": [label for labels in y for label in labels],
        "attributes": [item for items in X for item in items],
    }
    return pyarrow.table(columns)


def drawn(n=120):
    rng = np.random.default_rng(0)
    X = [[[f"a{k}é" for k in rng.integers(0, 50, 3)] for _ in range(rng.integers(1, 7))] for _ in range(n)]
    return X, [[f"L{rng.integers(4)}" for _ in items] for items in X]


@pytest.mark.parametrize("rows", [7, 10_000])
def test_sentences_may_cross_row_groups(tmp_path, monkeypatch, rows):
    import pyarrow.parquet

    monkeypatch.setattr(table_chunks.table_chunks, "__defaults__", (rows,))
    X, y = drawn()
    pyarrow.parquet.write_table(table_of(X[:50], y[:50]), tmp_path / "a.parquet", row_group_size=16)
    pyarrow.parquet.write_table(table_of(X[50:], y[50:]), tmp_path / "b.parquet", row_group_size=1000)
    corpus = compile_corpus(str(tmp_path / "*.parquet"), tmp_path / "out", parts=4)
    order = order_of(corpus)
    whole = Batch.build([X[at] for at in order])
    assert list(corpus.vocabulary) == list(whole.vocabulary)
    check_rows([part.nodes for part in corpus], whole)
    codes = Labels.fit(y).encode([y[at] for at in order])
    np.testing.assert_array_equal(np.concatenate([part.codes for part in corpus]), codes)


def test_files_are_partitions(tmp_path):
    import pyarrow.parquet

    X, y = drawn(20)
    for at, rows in enumerate((slice(12), slice(12, 12), slice(12, 20))):
        table = table_of(X[rows], y[rows]).cast(table_of(X, y).schema)
        pyarrow.parquet.write_table(table, tmp_path / f"{at}.parquet")
    model = CRF(tol=1e-6).fit(str(tmp_path / "*.parquet"))
    whole = CRF(tol=1e-6).fit(X, y)
    assert model.n_partitions_ == 3
    assert abs(model.objective_ - whole.objective_) <= model.dual_gap_ + whole.dual_gap_
    with pytest.raises(ValueError, match="'template', 'columns' and 'label' are for columns of text"):
        CRF(template="default").fit(str(tmp_path / "*.parquet"))


def test_errors(tmp_path):
    import pyarrow
    import pyarrow.parquet

    def written(table):
        pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    X, y = drawn(5)
    good = table_of(X, y)
    with pytest.raises(ValueError, match=r"t\.parquet: has no column 'label'; expected sentence_id, label, attributes"):
        compile_corpus(written(good.drop_columns(["label"])), tmp_path / "out")
    labels = good["label"].to_pylist()
    labels[3] = None
    with pytest.raises(ValueError, match=r"t\.parquet, row 4: has no label"):
        compile_corpus(written(good.set_column(1, "label", pyarrow.array(labels))), tmp_path / "out")
    with pytest.raises(ValueError, match="'attributes' must be lists of str"):
        compile_corpus(written(good.set_column(2, "attributes", good["label"])), tmp_path / "out")
    numbers = pyarrow.array([[1.0]] * good.num_rows)
    with pytest.raises(ValueError, match=r"the column 'attributes' must hold str\. Got double"):
        compile_corpus(written(good.set_column(2, "attributes", numbers)), tmp_path / "out")
    (tmp_path / "t.parquet").write_bytes(b"no table at all")
    with pytest.raises(ValueError, match="is not a sound Parquet file"):
        compile_corpus(tmp_path / "t.parquet", tmp_path / "out")
