"""The built-in words: what they are, that the seed decides them, and that the split shares no image."""

import datetime
import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dualfield.datasets import DigitWords, load_digit_words
from dualfield.datasets.digit_words import LANGUAGES


def is_date(word: str) -> bool:
    try:
        day = datetime.datetime.strptime(word, "%d%m%Y").date()
    except ValueError:
        return False
    return len(word) == 8 and 1950 <= day.year <= 2029


def is_square(word: str) -> bool:
    return math.isqrt(int(word)) ** 2 == int(word) and 32**2 <= int(word) <= 316**2 and len(word) in (4, 5)


def is_code(word: str) -> bool:
    for group in (word[:4], word[4:]):
        a, b, c, check = map(int, group)
        if not (1 <= b - a <= 3 and 1 <= c - b <= 3 and check == (a + b + c) % 10):
            return False
    return len(word) == 8


BELONGS = {"dates": is_date, "squares": is_square, "codes": is_code}


def arrays(data: DigitWords) -> list[np.ndarray]:
    return [*data.labels, *data.images, *data.sources, data.train, data.test]


@pytest.mark.parametrize("language", sorted(BELONGS))
def test_words_belong_to_their_language(language):
    data = load_digit_words(300, language=language, random_state=5)
    assert all(BELONGS[language](word) for word in data.words)
    assert len(set(data.words)) > 100


def test_mixed_words_come_from_all_three_languages():
    data = load_digit_words(300, language="mixed", random_state=5)
    kinds = [{name for name, belongs in BELONGS.items() if belongs(word)} for word in data.words]
    assert all(kinds)
    shares = {name: sum(name in kind for kind in kinds) / 300 for name in BELONGS}
    assert all(0.2 < share < 0.5 for share in shares.values()), shares


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_labels_pictures_and_words_agree(language):
    data = load_digit_words(60, language=language, noise=0.0)
    pixels, targets = load_digits(return_X_y=True)
    for word, labels, images, sources in zip(data.words, data.labels, data.images, data.sources, strict=True):
        assert labels.dtype == np.int64
        assert "".join(map(str, labels)) == word
        np.testing.assert_array_equal(targets[sources], labels)
        np.testing.assert_array_equal(images, pixels[sources] / 16.0)


def test_the_same_seed_gives_the_same_data_and_another_seed_does_not():
    first, again, other = (load_digit_words(50, language="mixed", random_state=seed) for seed in (7, 7, 8))
    assert first.words == again.words
    for one, two in zip(arrays(first), arrays(again), strict=True):
        np.testing.assert_array_equal(one, two)
    assert first.words != other.words


def test_a_random_state_instance_moves_on():
    rng = np.random.RandomState(3)
    first, second = load_digit_words(50, random_state=rng), load_digit_words(50, random_state=rng)
    assert first.words == load_digit_words(50, random_state=3).words
    assert first.words != second.words


@pytest.mark.parametrize("seed", range(3))
def test_no_original_image_is_in_both_parts(seed):
    data = load_digit_words(800, random_state=seed)
    train, test = (set(np.concatenate([data.sources[word] for word in part])) for part in (data.train, data.test))
    assert not train & test
    assert len(train) > 1000
    assert len(test) > 500


@pytest.mark.parametrize(("n_words", "test_size", "n_test"), [(2, 0.25, 1), (2, 0.9, 1), (40, 0.25, 10), (10, 0.3, 3)])
def test_split_sizes(n_words, test_size, n_test):
    data = load_digit_words(n_words, test_size=test_size)
    assert len(data.test) == n_test
    np.testing.assert_array_equal(np.concatenate([data.train, data.test]), np.arange(n_words))


def test_noise_has_the_stated_size_and_is_fresh_for_every_use():
    data = load_digit_words(1500, noise=0.35)
    clean = load_digits().data[np.concatenate(data.sources)] / 16.0
    noisy = np.concatenate(data.images)
    assert noisy.min() == 0.0
    assert noisy.max() == 1.0
    grey = (clean > 0.45) & (clean < 0.55)  # in the middle the cut at 0 and 1 is 1.43 standard deviations away
    rest = (noisy - clean)[grey]
    middle = np.abs(rest) < 0.4
    expected = math.erf(0.4 / 0.35 / math.sqrt(2))
    assert abs(middle.mean() - expected) < 0.02
    assert len(np.unique(noisy, axis=0)) == len(noisy)


def test_the_record_is_frozen():
    data = load_digit_words(4)
    with pytest.raises(AttributeError):
        data.words = ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_words": 1}, r"The 'n_words' parameter of load_digit_words must be an int in \[2, inf\)\. Got 1 instead\."),
        ({"n_words": 10.0}, r"'n_words' .* Got 10\.0 instead"),
        ({"n_words": True}, r"'n_words' .* Got True instead"),
        (
            {"language": "french"},
            r"must be a str among \{'codes', 'dates', 'mixed', 'squares'\}\. Got 'french' instead",
        ),
        ({"language": None}, r"'language' .* Got None instead"),
        ({"noise": -0.1}, r"'noise' .* a float in \[0, inf\)\. Got -0\.1 instead"),
        ({"noise": float("nan")}, r"'noise' .* Got nan instead"),
        ({"noise": "much"}, r"'noise' .* Got 'much' instead"),
        ({"test_size": 0.0}, r"'test_size' .* a float in \(0, 1\)\. Got 0\.0 instead"),
        ({"test_size": 1}, r"'test_size' .* Got 1 instead"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_digit_words(**arguments)


def test_numpy_scalars_are_welcome():
    data = load_digit_words(np.int64(10), noise=np.float32(0.1), test_size=np.float64(0.2))
    assert len(data.test) == 2
