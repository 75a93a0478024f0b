"""The page that ``dualfield demo`` writes: handwritten words, their readings and the probabilities behind them."""

import base64
import io
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dualfield.plotting.heat_map import heat_map
from dualfield.plotting.markup import Html, escape
from dualfield.plotting.reliability import reliability_diagram
from dualfield.plotting.tables import table
from dualfield.report.digit_words_records import DigitWordsReport, WordCard, percent
from dualfield.report.page import page

_PICTURE = 32  # pixels of a digit on the page, four for each of its own eight
_CELL = _PICTURE + 2
_MARGIN = 72
_METHOD = (
    "The independent reader and the chains score a picture by a Gaussian for its digit (own mean, one shrunk "
    "covariance for all). The independent reader adds how frequent each digit is; the chain of order k adds how often "
    "a digit follows the k digits before it. Both are counts from the training words. The CRF has the cliques of the "
    "last chain; its weights of pixels and contexts are trained jointly, to discriminate.",
    "Errors are those of the most probable word. Log-loss (nats per digit) and calibration (mean distance between "
    "confidence and the share that is right, ten bins) are those of the marginals. All of it is exact, without "
    "sampling or pruning; exact under the model, that is, which is itself only an approximation of handwriting. The "
    "last column is the time in milliseconds for the words and the marginals of the whole test set.",
)
_SHADES = "".join(f'<span><i style="opacity:{share}"></i></span>' for share in (0, 0.25, 0.5, 0.75, 1))
_KEY = Html(f'<p class="soft key">0{_SHADES}1 probability<span class="true"></span>truth</p>')
_STYLE = f"""
.figures {{ display: flex; flex-wrap: wrap; gap: 0 3rem; }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 366px), 1fr)); gap: 12px; }}
.card {{ background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 9px; overflow-x: auto; }}
.card h4 {{ font-size: .95rem; margin: 0 0 .3rem; }}
h3 {{ font-size: 1.05rem; margin: 1.6rem 0 0; }}
.word {{ table-layout: fixed; margin: 0; font-variant-numeric: tabular-nums; }}
.word th {{ width: {_MARGIN}px; padding: 0; text-align: left; white-space: nowrap;
  font-weight: normal; font-size: .75rem; color: var(--soft); }}
.word td {{ width: {_CELL}px; padding: 0; text-align: center; }}
.word img {{ display: block; margin: 0 auto; width: {_PICTURE}px; height: {_PICTURE}px;
  image-rendering: pixelated; outline: 1px solid var(--line); }}
.word .wrong, .best .wrong {{ color: var(--wrong); font-weight: bold; text-decoration: underline 2px; }}
.map td, .key span {{ border: 1px solid var(--line); }}
.map td {{ height: 12px; position: relative; z-index: 0; }}
.map th {{ height: 12px; padding-right: 5px; text-align: right; font-size: .65rem; line-height: 12px; }}
.map i {{ position: absolute; inset: 0; z-index: -1; }}
.map i, .key i {{ display: block; background: var(--accent); }}
.map .true, .key .true {{ outline: 2px solid var(--second); outline-offset: -2px; }}
.key {{ display: flex; gap: 4px; align-items: center; }}
.key span {{ width: 14px; height: 12px; }}
.key i {{ height: 100%; }}
.key .true {{ margin-left: 1rem; }}
.best {{ margin: .2rem 0 0; font-variant-numeric: tabular-nums; font-size: .9rem; }}
.best td {{ padding: 0 .8rem 0 0; }}
.best .number {{ text-align: right; }}
.best .letters {{ letter-spacing: .1em; }}
.bar {{ display: inline-block; height: .6em; background: var(--accent); vertical-align: baseline; }}
.track {{ display: inline-block; width: 5rem; text-align: left; }}
@media (max-width: 40rem) {{ .data .track {{ display: none; }} }}
"""


def digit_words_page(report: DigitWordsReport) -> Html:
    """Compose the page of the demonstration.

    Parameters
    ----------
    report : DigitWordsReport
        The numbers and pictures to show.

    Returns
    -------
    Html
        A self-contained document for :func:`dualfield.report.write_page`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.report import calibration_bins
    >>> from dualfield.report.digit_words import digit_words_page
    >>> from dualfield.report.digit_words_records import DigitWordsReport, ModelRow
    >>> row = ModelRow(
    ...     name="independent", digit_error=0.1, word_error=0.3, log_loss=0.4, calibration_error=0.02, seconds=0.001
    ... )
    >>> report = DigitWordsReport(
    ...     summary=(), setting=("One word.",), rows=(row,),
    ...     calibration={"independent": calibration_bins([0.9], [True])}, transition=np.full((11, 10), 0.1),
    ...     groups=(), n_test=1, footer="",
    ... )
    >>> "10.0%" in digit_words_page(report)
    True
    """
    return page("Handwritten numbers, read with dualfield", _body(report), style=_STYLE)


def _body(report: DigitWordsReport) -> Iterator[Html]:
    yield Html("<h1>Handwritten numbers, read digit by digit and as whole words</h1>")
    yield from (_paragraph(text) for text in report.setting)
    yield Html("<h2>What the neighbours buy</h2>")
    yield _comparison(report)
    yield from (_paragraph(text) for text in _METHOD)
    yield Html('<h2>Are the probabilities calibrated?</h2><div class="figures">')
    yield _figure(
        reliability_diagram(report.calibration, title="Reliability: share of right digits against confidence"),
        "Test digits in ten bins by confidence; larger marks hold more digits, bars are two standard errors. Below the "
        "diagonal a model is too sure.",
    )
    yield _figure(
        heat_map(
            report.transition,
            title="Probability of the next digit given the one before",
            row_labels=[*range(10), "first"],
            column_labels=range(10),
            row_axis="digit before",
            column_axis="next digit",
            full=float(np.ceil(10.0 * report.transition.max()) / 10.0),
        ),
        "What the chain of order 1 knows of the language: smoothed counts from the training words.",
    )
    yield Html("</div><h2>Words from the test set</h2>")
    yield _paragraph(
        "Each card: the pictures, the truth, and two readings, each over its marginals: one column per digit of the "
        "word, one row per value 0 to 9. Wrong digits are red and underlined. At the foot, the three most probable "
        "whole words of the chain with their exact probability."
    )
    yield _KEY
    for group in report.groups:
        shown = f"{len(group.cards)} shown, the first in order, of {group.n_fitting} among {report.n_test} test words"
        yield Html(f'<h3>{escape(group.rule)}</h3><p class="soft">{escape(shown)}.</p><div class="cards">')
        yield from (_card(card) for card in group.cards)
        yield Html("</div>")
    yield Html(f'<p class="soft" style="margin-top:2rem">{escape(report.footer)}</p>')


def _comparison(report: DigitWordsReport) -> Html:
    widest = max(max(row.word_error for row in report.rows), 1e-9)
    cells = [
        (
            row.name,
            percent(row.digit_error),
            percent(row.word_error),
            _bar(5.0 * row.word_error / widest),
            f"{row.log_loss:.3f}",
            f"{row.calibration_error:.3f}",
            f"{1000.0 * row.seconds:.1f}",
        )
        for row in report.rows
    ]
    header = ("model", "digit error", "word error", "", "log-loss", "calibration", "ms")
    return table(header, cells, caption=f"{report.n_test} test words; lower is better in every column")


def _card(card: WordCard) -> Html:
    truth = "".join(str(digit) for digit in card.digits)
    pictures = "".join(
        f'<td><img alt="picture of a {digit}" src="{_png(image.reshape(8, 8))}"></td>'
        for digit, image in zip(card.digits, card.images, strict=True)
    )
    rows = [f"<tr><th></th>{pictures}</tr>", _digit_row("truth", card.digits, card.digits)]
    body = [f"<tbody>{''.join(rows)}</tbody>"]
    for reading in card.readings:
        body.append(f"<tbody>{_digit_row(reading.name.removeprefix('chain, '), reading.digits, card.digits)}</tbody>")
        name = f"Marginals of the model '{reading.name}' for the word {truth}"
        rows = [_marginal_row(digit, shares, card.digits) for digit, shares in enumerate(reading.marginals.T)]
        body.append(f'<tbody class="map" aria-label="{escape(name)}">{"".join(rows)}</tbody>')
    best = "".join(
        f'<tr><td class="letters">{_marked(digits, card.digits)}</td><td class="number">{escape(percent(chance))}</td>'
        f"<td>{_bar(5.0 * chance)}</td></tr>"
        for digits, chance in card.best
    )
    width = _MARGIN + _CELL * len(card.digits)
    return Html(
        f'<section class="card"><h4>{truth}</h4><table class="word" style="width:{width}px">{"".join(body)}</table>'
        f'<table class="best">{best}</table></section>'
    )


def _digit_row(name: str, digits: NDArray[np.integer], truth: NDArray[np.int64]) -> str:
    cells = "".join(f"<td>{_marked([one], [true])}</td>" for one, true in zip(digits, truth, strict=True))
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'


def _marginal_row(digit: int, shares: NDArray[np.float64], truth: NDArray[np.int64]) -> str:
    """Return one value of the digits: a cell for each place of the word, shaded by its probability."""
    cells = []
    for share, true in zip(shares, truth, strict=True):
        # What is fainter than the eye can see is left out, which keeps the page small.
        tip, shade = ("", "") if share < 0.0005 else (f' title="{escape(percent(share))}"', f"opacity:{share:.3f}")
        frame = ' class="true"' if true == digit else ""
        cells.append(f"<td{frame}{tip}>" + (f'<i style="{shade}"></i>' if shade else "") + "</td>")
    return f'<tr><th scope="row">{digit}</th>{"".join(cells)}</tr>'


def _png(ink: NDArray[np.float64]) -> str:
    """Return a picture as an address: 0 is white paper, 1 is black."""
    from matplotlib.image import imsave

    grey = np.rint(255.0 * (1.0 - np.clip(ink, 0.0, 1.0))).astype(np.uint8)
    out, unsigned = io.BytesIO(), {"Software": None}
    imsave(out, np.stack([grey] * 3, axis=2), format="png", metadata=unsigned)  # type: ignore[arg-type]
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")


def _marked(digits: Sequence[int] | NDArray[np.integer], truth: Sequence[int] | NDArray[np.int64]) -> str:
    return "".join(
        str(one) if one == true else f'<span class="wrong">{one}</span>'
        for one, true in zip(digits, truth, strict=True)
    )


def _bar(width: float) -> Html:
    return Html(f'<span class="track"><span class="bar" style="width:{width:.2f}rem"></span></span>')


def _figure(picture: Html, caption: str) -> Html:
    return Html(f'<figure style="max-width:330px">{picture}<figcaption>{escape(caption)}</figcaption></figure>')


def _paragraph(text: str) -> Html:
    return Html(f"<p>{escape(text)}</p>")
