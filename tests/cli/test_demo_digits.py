"""The demo of handwritten numbers: its models against enumeration and scikit-learn, and the command itself."""

import base64
import html
import io
import itertools
import os
import re
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner, Result
from matplotlib.image import imread
from rich.console import Console
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import dualfield
from dualfield import CRF
from dualfield.cli import main
from dualfield.cli.demo_digits import run, summarise
from dualfield.cli.digit_reader import GaussianDigits, context_tables, read_words, train_reader
from dualfield.datasets import load_digit_words
from dualfield.report.digit_words import digit_words_page
from dualfield.report.digit_words_records import percent
from dualfield.report.terminal import progress_steps, show_digit_words
from dualfield.structures import Chain

ROW = re.compile(r"(independent|(?:chain|CRF), order \d)\W+([\d.]+)%\W+([\d.]+)%\W+([\d.]+)\W+([\d.]+)\W+([\d.]+)")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["demo", "digits", *map(str, arguments)])


def table_of(output: str) -> dict[str, list[float]]:
    rows = {name: list(map(float, numbers)) for name, *numbers in ROW.findall(output)}
    assert list(rows) == ["independent", "chain, order 1", "chain, order 2", "chain, order 3", "CRF, order 3"]
    return rows


@pytest.fixture(scope="module")
def default_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    result = invoke("--report", folder / "report.html")
    assert result.exit_code == 0, result.output
    return result.output, folder


@pytest.fixture(scope="module")
def small_result():
    return run(200, "mixed", 0, 1, lambda name: None)


# The model


def test_image_model_is_linear_discriminant_analysis():
    data = load_digit_words(150, random_state=1)
    images, labels = np.concatenate(data.images), np.concatenate(data.labels)
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1).fit(images, labels)
    model = GaussianDigits.fit(images, labels)
    posterior = softmax(model.log_density(images) + np.log(reference.priors_), axis=1)
    np.testing.assert_allclose(posterior, reference.predict_proba(images), atol=1e-9)


def test_a_digit_never_seen_gets_the_mean_of_all_images():
    data = load_digit_words(60, random_state=1)
    images, labels = np.concatenate(data.images), np.concatenate(data.labels)
    images, labels = images[labels != 4], labels[labels != 4]
    model = GaussianDigits.fit(images, labels)
    np.testing.assert_allclose(model.means[4], images.mean(axis=0))
    assert np.isfinite(model.log_density(images)).all()


def test_context_tables_against_counting_by_hand():
    labels = list(load_digit_words(80, language="squares").labels)
    tables = context_tables(labels, 3)
    words = [tuple(int(digit) for digit in word) for word in labels]

    def probability(context: tuple[int, ...], digit: int) -> float:
        if not context:
            letters = Counter(itertools.chain(*words))
            return (letters[digit] + 1) / (letters.total() + 10)
        padded = [(10,) * len(context) + word for word in words]
        follow = Counter(
            word[place]
            for word in padded
            for place in range(len(context), len(word))
            if word[place - len(context) : place] == context
        )
        return (follow[digit] + 3.0 * probability(context[1:], digit)) / (follow.total() + 3.0)

    for context in [
        (),
        (10,),
        (4,),
        (10, 10),
        (10, 6),
        (1, 0),
        (10, 10, 10),
        (10, 10, 2),
        (10, 2, 5),
        (2, 5, 6),
        (7, 7, 7),
    ]:
        expected = [probability(context, digit) for digit in range(10)]
        np.testing.assert_allclose(tables[len(context)][context], expected, rtol=1e-12)
        assert sum(expected) == pytest.approx(1.0)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_reading_is_exact(order):
    """Marginals, the best word and the partition function against all 10^T words, for T from 1 to 4."""
    rng = np.random.default_rng(order)
    tables = context_tables(list(load_digit_words(60, language="squares").labels), 3)
    lengths = [1, 2, 3, 4, 4]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    log_density = rng.normal(scale=2.0, size=(offsets[-1], 10))
    reader = read_words(log_density, offsets, tables, order, 1)
    for length, begin in zip(lengths, offsets, strict=False):
        node = log_density[begin : begin + length]
        words = np.array(list(itertools.product(range(10), repeat=length)))
        padded = np.concatenate([np.full((len(words), order), 10), words], axis=1)
        score = sum(
            node[place, words[:, place]] + np.log(tables[order])[tuple(padded[:, place : place + order + 1].T)]
            for place in range(length)
        )
        chance = np.exp(score - logsumexp(score))
        marginals = [np.bincount(words[:, place], weights=chance, minlength=10) for place in range(length)]
        np.testing.assert_allclose(reader.marginals[begin : begin + length], marginals, atol=1e-10)
        np.testing.assert_array_equal(reader.digits[begin : begin + length], words[score.argmax()])


def test_best_words_of_a_card_are_ordered_probabilities(small_result):
    reader = small_result.chain
    for word in range(5):
        card = small_result.card(word)
        here = slice(small_result.offsets[word], small_result.offsets[word + 1])
        (best, _), *_ = card.best
        np.testing.assert_array_equal(best, reader.digits[here])
        chances = [chance for _, chance in card.best]
        assert sorted(chances, reverse=True) == chances
        assert 0.0 < sum(chances) <= 1.0 + 1e-12
        # A word is at most as probable as the least probable of its digits.
        for digits, chance in card.best:
            assert chance <= reader.marginals[here][np.arange(len(digits)), digits].min() + 1e-9
        assert "".join(map(str, card.digits)) == small_result.data.words[small_result.data.test[word]]


def test_log_loss_and_errors_are_those_of_the_independent_reader(small_result):
    """The first row again, from scikit-learn's pieces only."""
    data, row = small_result.data, small_result.rows[0]
    train = [np.concatenate([part[word] for word in data.train]) for part in (data.images, data.labels)]
    images, truth = (np.concatenate([part[word] for word in data.test]) for part in (data.images, data.labels))
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1).fit(*train)
    smoothing = np.log(small_result.tables[0]) - np.log(reference.priors_)
    log_chance = log_softmax(reference.decision_function(images) + smoothing, axis=1)
    wrong = log_chance.argmax(axis=1) != truth
    assert row.digit_error == pytest.approx(wrong.mean())
    assert row.log_loss == pytest.approx(-log_chance[np.arange(len(truth)), truth].mean())
    words = np.split(wrong, small_result.offsets[1:-1])
    assert row.word_error == pytest.approx(np.mean([word.any() for word in words]))


def test_a_trained_reader_is_the_model(small_result):
    data = small_result.data
    X_train, X_test = ([data.images[word] for word in part] for part in (data.train, data.test))
    y_train = [data.labels[word] for word in data.train]
    model = CRF(Chain(10, order=3), tol=1e-2, random_state=0).fit(X_train, y_train)
    reader = small_result.readers[-1]
    np.testing.assert_array_equal(reader.digits, np.concatenate(model.predict(X_test)))
    np.testing.assert_allclose(reader.marginals, np.concatenate(model.predict_proba(X_test)), atol=1e-9)


def test_a_digit_that_training_lacks_has_no_probability():
    images = np.eye(10)[[1, 2, 3]]
    reader = train_reader([images] * 3, [np.array([1, 2, 3])] * 3, [images], 1, 0, 1)
    assert reader.digits.tolist() == [1, 2, 3]
    np.testing.assert_allclose(reader.marginals.sum(axis=1), 1.0)
    assert not reader.marginals[:, [0, 4, 9]].any()


# The command


def test_context_helps_at_the_default_settings(default_run):
    rows = table_of(default_run[0])
    digit, word, loss, calibration, _ = np.array(list(rows.values())[:4]).T
    assert (np.diff(digit) < 0).all()
    assert (np.diff(word) < 0).all()
    assert (np.diff(loss) < 0).all()
    assert digit[1] < 0.8 * digit[0]
    assert digit[3] < 0.4 * digit[0]
    assert (calibration < 0.1).all()
    trained = rows["CRF, order 3"]
    assert trained[0] < digit[3]
    assert trained[1] < word[3]


@pytest.mark.parametrize("language", ["dates", "squares", "mixed"])
def test_context_helps_in_every_language(language):
    rows = run(1200, language, 0, 1, lambda name: None).rows
    assert rows[1].log_loss < rows[0].log_loss
    assert rows[2].digit_error < rows[0].digit_error
    assert rows[3].word_error < rows[0].word_error


def test_the_terminal_gets_steps_results_and_the_place_of_the_page(default_run):
    output, folder = default_run
    assert output.startswith("setting the words ...\n")
    assert "500 test words after 1500 training words" in " ".join(output.split())
    assert "The chains are scored by counts; the CRF is trained." in " ".join(output.split())
    assert output.endswith(f"Pictures, readings and marginals: {folder / 'report.html'}\n")
    assert "\x1b" not in output


def test_the_page_is_whole_and_self_contained(default_run):
    output, folder = default_run
    assert [path.name for path in folder.iterdir()] == ["report.html"]
    document = (folder / "report.html").read_text(encoding="utf-8")
    assert document.startswith("<!DOCTYPE html>")
    assert document.endswith("</html>\n")
    pictures = re.findall(r'<img alt="picture of a \d" src="([^"]*)"', document)
    cards = document.split('<section class="card">')[1:]
    assert len(cards) == 12
    assert len(pictures) == 12 * 8
    assert all(picture.startswith("data:image/png;base64,") for picture in pictures)
    without = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]*", "", document)
    assert not re.search(r"https?:|//|@import|url\(|<script|<link|<iframe|\bon\w+=", without)
    assert set(re.findall(r'(?:src|href)="([^"]*)"', without)) == {""}
    for name, numbers in table_of(output).items():
        cells = re.search(rf"<td>{name}</td><td>([\d.]+)%</td><td>([\d.]+)%</td>.*?<td>([\d.]+)</td>", document)
        assert [float(cell) for cell in cells.groups()] == numbers[:3]
    for card in cards:
        assert card.count('<tbody class="map"') == 2
        assert len(re.findall(r'class="letters"', card)) == 3
    # The rule of the first group: wrong digit by digit, right in context.
    for card in cards[:6]:
        independent, chain = re.findall(r'<tr><th scope="row">(?:independent|order 3)</th>(.*?)</tr>', card)
        assert 'class="wrong"' in independent
        assert 'class="wrong"' not in chain
    for card in cards[6:10]:
        assert 'class="wrong"' in re.findall(r'<th scope="row">order 3</th>(.*?)</tr>', card)[0]


def test_cards_show_pictures_and_marginals(small_result):
    report = summarise(small_result, "mixed", 0)
    shown = digit_words_page(report).split('<section class="card">')[1:]
    cards = [card for group in report.groups for card in group.cards]
    for card, markup in zip(cards, shown, strict=True):
        sources = re.findall(r'src="data:image/png;base64,([^"]*)"', markup)
        for source, ink in zip(sources, card.images, strict=True):
            grey = imread(io.BytesIO(base64.b64decode(source, validate=True)))[..., 0]
            np.testing.assert_allclose(grey, np.rint(255 * (1 - np.clip(ink, 0, 1))).reshape(8, 8) / 255, atol=1e-6)
        for reading, table in zip(card.readings, re.findall(r'<tbody class="map".*?</tbody>', markup), strict=True):
            for digit, row in enumerate(re.findall(r'<th scope="row">\d</th>(.*?)</tr>', table)):
                cells = re.findall(r"<td(.*?)>(.*?)</td>", row)
                shades = [float(re.findall(r"opacity:([\d.]+)", cell)[0]) if cell else 0.0 for _, cell in cells]
                np.testing.assert_allclose(shades, reading.marginals[:, digit], atol=5e-4)
                assert [bool(cell) == ("title" in look) for look, cell in cells] == [True] * len(cells)
                assert ["true" in look for look, _ in cells] == (card.digits == digit).tolist()
                for share, (look, cell) in zip(reading.marginals[:, digit], cells, strict=True):
                    assert not cell or f'title="{percent(share)}"' in html.unescape(look)


def test_seed_and_threads(tmp_path):
    arguments = ("--report", tmp_path / "report.html", "--words", 120, "--language", "squares")
    outputs = [invoke(*arguments, *more) for more in ((), ("--threads", 2), ("--seed", 1))]
    assert [output.exit_code for output in outputs] == [0, 0, 0]
    first, threads, seed = ([row[:4] for row in table_of(one.output).values()] for one in outputs)
    assert first == threads
    assert first != seed


@pytest.mark.parametrize("words", [50, 51])
def test_few_words_are_enough(tmp_path, words):
    result = invoke("--report", tmp_path / "report.html", "--words", words, "--language", "dates")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--words", 10), "10 is not in the range 50<=x<=100000"),
        (("--words", "many"), "'many' is not a valid integer"),
        (("--language", "french"), "'french' is not one of 'codes', 'dates', 'squares', 'mixed'"),
        (("--seed", -1), "-1 is not in the range"),
        (("--threads", 0), "0 is not in the range"),
        (("--colour",), "No such option"),
    ],
)
def test_bad_options_are_usage_errors(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.output
    assert message in result.output


def test_a_missing_folder_is_named_before_the_work_begins(tmp_path):
    target = tmp_path / "missing" / "report.html"
    result = invoke("--report", target)
    assert result.exit_code == 1
    expected = f"Error: cannot write the report to '{target}': the folder '{target.parent}' does not exist\n"
    assert result.output == expected


def test_what_to_install_is_said_before_the_work_begins(tmp_path, without_matplotlib):
    result = invoke("--report", tmp_path / "report.html")
    assert result.exit_code == 1
    assert result.output.startswith("Error: --report: Figures and reports need matplotlib: pip install matplotlib")


def test_a_folder_is_no_report(tmp_path):
    result = invoke("--report", tmp_path)
    assert result.exit_code == 1
    assert result.output == f"Error: cannot write the report to '{tmp_path}': it is a folder\n"


def test_a_folder_without_permission_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    result = invoke("--report", tmp_path / "report.html")
    assert result.exit_code == 1
    assert f"the folder '{tmp_path}' is not writable" in result.output


def test_a_full_disk_is_reported_and_the_old_page_stays(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")

    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    result = invoke("--report", target, "--words", 50)
    assert result.exit_code == 1
    assert f"cannot write the report to '{target}': No space left on device" in result.output
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_version_and_help():
    runner = CliRunner()
    assert runner.invoke(main, ["--version"]).output == f"dualfield, version {dualfield.__version__}\n"
    text = runner.invoke(main, ["--help"]).output
    assert "demo" in text
    options = runner.invoke(main, ["demo", "digits", "-h"]).output
    assert all(name in options for name in ("--report", "--words", "--language", "--seed", "--threads"))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_colour_terminal_gets_a_bar_and_pictures_that_fit(small_result, width):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="truecolor", width=width, legacy_windows=False)
    with progress_steps(console, total=2) as step:
        step("one")
        step("two")
    show_digit_words(console, summarise(small_result, "mixed", 0))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert "2/2" in plain
    lines = plain.replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= width
    drawn = [line for line in lines if "▀" in line]
    longest = max(len(word) for word in small_result.data.words)
    assert (len(drawn) == 8) or width < 9 * longest
