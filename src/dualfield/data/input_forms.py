"""Detect the form of the input, from as little of it as possible."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse

Form = Literal["numbers", "attributes"]


def unwrapped(data: Any) -> Any:
    """Unwrap data frames, and arrays of strings or of Python objects."""
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    if isinstance(data, np.ndarray) and (data.dtype.kind in "US" or (data.dtype.kind == "O" and data.ndim == 1)):
        return data.tolist()
    return data


def names_of_columns(data: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame, if they are strings."""
    names = getattr(data, "columns", None) if hasattr(data, "to_numpy") else None
    if names is None:
        return None
    names = tuple(names)
    return names if all(isinstance(name, str) for name in names) else None


class ColumnNames:
    """Collects the column names of examples as they are read, and checks that they are all the same."""

    def __init__(self, X: Any, name: str) -> None:
        self.names, self._name = names_of_columns(X), name
        self._other: tuple[int, tuple[str, ...]] | None = None

    def watch(self, examples: Iterable[Any]) -> Iterator[Any]:
        """Pass examples on."""
        for i, example in enumerate(examples):
            names = names_of_columns(example)
            if self.names is None:
                self.names = names
            elif names is not None and names != self.names and self._other is None:
                self._other = i, names
            yield example

    def checked(self) -> tuple[str, ...] | None:
        """Return the names, which must have been the same ones in the same order."""
        if self._other is not None:
            i, names = self._other
            raise ValueError(
                f"{self._name}[{i}] has the columns {list(names)}; expected {list(self.names or ())}, the same names "
                "in the same order as the frames before it."
            )
        return self.names


def opened(example: Any) -> Any:
    """Open one example, which may also be an iterator over its items."""
    example = unwrapped(example)
    return list(example) if isinstance(example, Iterator) else example


def opened_tokens(sentence: Any) -> Any:
    """Open a sentence that is neither a list nor a tuple."""
    sentence = opened(sentence)
    return sentence.tolist() if isinstance(sentence, np.ndarray) else sentence


def listed(X: Any, name: str = "X") -> list[Any]:
    """Return the examples as a list, or raise an error where they are none."""
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise TypeError(f"{name} must be a list of sentences. Got {type(X).__name__} instead.")
    return list(X)


def read_sentences(X: Iterable[Any], name: str = "X") -> list[Any]:
    """Open sentences of tokens, each a str or a list or tuple of str, with as many columns as the first one."""
    sentences = [opened_tokens(one) for one in X]
    width: tuple[int, int, int] | None = None  # columns, and where they were seen first
    for i, sentence in enumerate(sentences):
        if not isinstance(sentence, (list, tuple)):
            is_text = isinstance(sentence, str)
            hint = ": is a level of lists missing? One sentence is passed as [sentence]." if is_text else "."
            raise TypeError(f"{name}[{i}] must be a list of tokens. Got {type(sentence).__name__} instead{hint}")
        for t, token in enumerate(sentence):
            columns = (token,) if isinstance(token, str) else token
            is_token = isinstance(columns, (list, tuple)) and columns and all(isinstance(one, str) for one in columns)
            if not is_token:
                raise TypeError(
                    f"{name}[{i}][{t}] must be a str, or a list or tuple of str. Got {token!r:.100} instead."
                )
            n_columns, *first = width = width or (len(columns), i, t)
            if len(columns) != n_columns:
                place = "".join(f"[{at}]" for at in first)
                found = f"{len(columns)} column{'s' * (len(columns) != 1)}"
                raise ValueError(f"{name}[{i}][{t}] has {found}; expected {n_columns}, as in {name}{place}.")
    return sentences


def form_of_examples(X: Iterable[Any]) -> tuple[Form | None, Iterable[Any]]:
    """Detect the form from as few examples as possible; return it and all of the examples."""
    examples = iter(X)
    seen: list[Any] = []
    for example in examples:
        seen.append(opened(example))
        form = form_of_example(seen[-1])
        if form is not None:
            return form, itertools.chain(seen, examples)
    return None, seen


def form_of_example(example: Any) -> Form | None:
    """Detect the form of one example, or of a flat list of items; None if it is empty, or all its items are."""
    if isinstance(example, (np.ndarray, numbers.Number)) or scipy.sparse.issparse(example):
        return "numbers"
    if not isinstance(example, (list, tuple)):
        return "attributes"  # or an error, which the reader of attributes gives
    return next(filter(None, map(_form_of_item, example)), None)


def _form_of_item(item: Any) -> Form | None:
    if isinstance(item, (list, tuple)):
        return _form_of_item(item[0]) if item else None
    return "numbers" if isinstance(item, (np.ndarray, numbers.Number)) else "attributes"
