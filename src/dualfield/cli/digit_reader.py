"""The models behind ``dualfield demo digits``: a Gaussian for each digit's picture with counted contexts, and a CRF.

Scores of both go to the exact inference of :mod:`dualfield.structures`.
"""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualfield.datasets.digit_words import N_DIGITS
from dualfield.structures import Chain, Scores, Single, Structure

_SHRINKAGE = 0.1  # of the covariance towards a multiple of the identity
_BACKOFF = 3.0  # how many observations the shorter context is worth
_TOL = 1e-2  # relative gap of the CRF: the errors are settled long before
_BEFORE = N_DIGITS  # stands for "no digit yet" in a context


@dataclass(frozen=True, slots=True, eq=False)
class GaussianDigits:
    """Images of a digit as a Gaussian with its own mean (10, 64) and a covariance shared by all ten digits.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.cli.digit_reader import GaussianDigits
    >>> images = np.eye(10).repeat(3, axis=0)
    >>> model = GaussianDigits.fit(images, np.arange(10).repeat(3))
    >>> model.log_density(images).argmax(axis=1)[::3].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    means: NDArray[np.float64]
    whitening: NDArray[np.float64]

    @classmethod
    def fit(cls, images: NDArray[np.float64], labels: NDArray[np.int64]) -> "GaussianDigits":
        """Estimate means and the shrunk covariance; a digit without an image gets the mean of all images."""
        means = np.stack(
            [
                images[labels == digit].mean(axis=0) if (labels == digit).any() else images.mean(axis=0)
                for digit in range(N_DIGITS)
            ]
        )
        rest = images - means[labels]
        covariance = rest.T @ rest / len(images)
        level = max(float(np.trace(covariance)) / len(covariance), 1e-9)
        covariance = (1.0 - _SHRINKAGE) * covariance + _SHRINKAGE * level * np.eye(len(covariance))
        return cls(means, np.linalg.inv(np.linalg.cholesky(covariance)).T)

    def log_density(self, images: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute log p(image | digit), (n, 10), up to a constant that is the same for all digits."""
        white = images @ self.whitening
        centres = self.means @ self.whitening
        return np.stack([-0.5 * np.square(white - centre).sum(axis=1) for centre in centres], axis=1)


def context_tables(labels: Sequence[NDArray[np.int64]], order: int) -> list[NDArray[np.float64]]:
    """Estimate p(digit | the k digits before it) for k = 0 to `order` from counts.

    A context of k digits backs off to the k - 1 nearest ones, which count as a few observations:
    ``p_k(y | h) = (count(h, y) + 3 p_(k-1)(y | h')) / (count(h) + 3)``, and p_0 is add-one smoothed.

    Parameters
    ----------
    labels : sequence of ndarray of shape (T_i,)
        The digits of the training words.
    order : int
        Length of the longest context.

    Returns
    -------
    list of ndarray
        Table k has shape (11,) * k + (10,); 10 in a context stands for "before the word".

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.cli.digit_reader import context_tables
    >>> tables = context_tables([np.array([1, 2]), np.array([1, 3])], order=1)
    >>> [table.shape for table in tables]
    [(10,), (11, 10)]
    >>> float(tables[1][10].argmax())
    1.0
    """
    counts = 1.0 + np.bincount(np.concatenate(labels), minlength=N_DIGITS)
    tables: list[NDArray[np.float64]] = [counts / counts.sum()]
    for length in range(1, order + 1):
        padded = [np.concatenate([np.full(length, _BEFORE), word]) for word in labels]
        windows = np.concatenate([np.lib.stride_tricks.sliding_window_view(word, length + 1) for word in padded])
        seen = np.zeros((N_DIGITS + 1,) * length + (N_DIGITS,))
        np.add.at(seen, tuple(windows.T), 1.0)
        tables.append((seen + _BACKOFF * tables[-1]) / (seen.sum(axis=-1, keepdims=True) + _BACKOFF))
    return tables


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reader:
    """A model applied to N test digits of n words; see :func:`read_words`.

    Attributes
    ----------
    name : str
        For tables and pictures.
    structure, scores
        The oracle and what it was asked about.
    digits : ndarray of shape (N,)
        The most probable words.
    marginals : ndarray of shape (N, 10)
        Probability of every digit at every place.
    log_partition : ndarray of shape (n,), or (N,) for the independent reader
        Logarithm of the normaliser of the probabilities of words.
    seconds : float
        Time for the two answers above.
    """

    name: str
    structure: Structure
    scores: Scores
    digits: NDArray[np.int32]
    marginals: NDArray[np.float64]
    log_partition: NDArray[np.float64]
    seconds: float


def read_words(
    log_density: NDArray[np.float64],
    offsets: NDArray[np.int64],
    tables: Sequence[NDArray[np.float64]],
    order: int,
    n_jobs: int,
) -> Reader:
    """Infer words, exactly, under p(word, images) = prod_t p(y_t | the `order` digits before it) p(x_t | y_t).

    Parameters
    ----------
    log_density : ndarray of shape (N, 10)
        log p(image | digit), words one after another.
    offsets : ndarray of shape (n + 1,)
        Where each word begins and the last one ends.
    tables : sequence of ndarray
        From :func:`context_tables`.
    order : int
        Length of the context; 0 reads every digit on its own.
    n_jobs : int
        Number of threads.

    Returns
    -------
    Reader
        The most probable words and the marginals.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.cli.digit_reader import context_tables, read_words
    >>> tables = context_tables([np.array([1, 2])] * 9, order=1)
    >>> blurred = np.zeros((2, 10))
    >>> read_words(blurred, np.array([0, 2]), tables, order=1, n_jobs=1).digits.tolist()
    [1, 2]
    """
    log_table = np.log(tables[order])
    structure: Structure
    if order == 0:
        name, structure = "independent", Single(N_DIGITS)
        scores = Scores(log_density + log_table)
    else:
        name, structure = f"chain, order {order}", Chain(N_DIGITS, order=order)
        # The cliques at the beginning of a word are padded with -1, which is also the index of "before the word".
        transition = log_table[tuple(structure.cliques.T)]
        scores = Scores(log_density, offsets, transition=transition, start=log_table[(_BEFORE,) * order])
    return _infer(name, structure, scores, n_jobs)


def train_reader(
    train_images: Sequence[NDArray[np.float64]],
    train_labels: Sequence[NDArray[np.int64]],
    test_images: Sequence[NDArray[np.float64]],
    order: int,
    seed: int,
    n_jobs: int,
) -> Reader:
    """Train a CRF of pixels and contexts, and infer the test words with it.

    Parameters
    ----------
    train_images, train_labels : sequences of ndarray of shapes (T_i, 64) and (T_i,)
        The training words.
    test_images : sequence of ndarray of shape (T_i, 64)
        The test words.
    order : int
        How many digits before each are its context.
    seed, n_jobs : int
        Random seed and number of threads.

    Returns
    -------
    Reader
        The most probable words and the marginals; its time is that of inference.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.cli.digit_reader import train_reader
    >>> word, images = np.arange(10), np.eye(10)
    >>> train_reader([images] * 3, [word] * 3, [images], order=1, seed=0, n_jobs=1).digits.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    from dualfield.estimators import CRF

    model = CRF(Chain(order=order), tol=_TOL, random_state=seed, n_jobs=n_jobs)
    model.fit(list(train_images), list(train_labels))
    known = model.classes_  # digits that training has
    scores = model.decision_scores(list(test_images))
    reader = _infer(f"CRF, order {order}", model.structure_, scores, n_jobs)
    marginals = np.zeros((len(reader.marginals), N_DIGITS))
    marginals[:, known] = reader.marginals
    return dataclasses.replace(reader, digits=known[reader.digits].astype(np.int32), marginals=marginals)


def _infer(name: str, structure: Structure, scores: Scores, n_jobs: int) -> Reader:
    """Ask for the best words and the marginals."""
    began = time.perf_counter()
    digits = structure.argmax(scores, n_jobs=n_jobs)
    marginals = structure.marginals(scores, n_jobs=n_jobs)
    seconds = time.perf_counter() - began
    return Reader(
        name=name,
        structure=structure,
        scores=scores,
        digits=digits,
        marginals=marginals.node,
        log_partition=marginals.log_partition,
        seconds=seconds,
    )
