"""Pages read back, and sentences to train on."""

import itertools
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np

NASTY = "</td><script>alert(\"1\" & '2')</script>"
BIO = ["B-NP", "I-NP", "B-VP", "O"]


def corpus(n: int, labels: list, seed: int, *, least: int = 1) -> tuple[list, list]:
    """Draw sentences whose words mostly tell their label."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        codes = rng.integers(len(labels), size=rng.integers(least, 7))
        seen = np.where(rng.uniform(size=len(codes)) < 0.8, codes, rng.integers(len(labels), size=len(codes)))
        X.append([[f"w={at}", "bias"] for at in seen])
        y.append([labels[at] for at in codes])
    return X, y


class Page(HTMLParser):
    """Checks that a page is well formed, and collects headings, paragraphs and the rows of its tables."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {tag: [] for tag in ("h1", "h2", "h3", "h4", "p", "td", "dt", "dd")}
        self.rows: list[list[str]] = []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in self.texts:
            self.texts[tag].append("")
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open).intersection(self.texts):
            self.texts[tag][-1] += data
        if "td" in self.open:
            self.rows[-1][-1] += data

    @property
    def cards(self) -> dict[str, float]:
        """Return the figures of the cards, without what they mean."""
        found = zip(self.texts["dt"], self.texts["dd"], strict=True)
        return {name: float(re.match(r"[\d.]+", text)[0]) for name, text in found}

    @property
    def facts(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self.rows if len(row) == 2}

    def table(self, first: str, width: int) -> list[list[str]]:
        """Return the rows of some width from the one that begins with a word, as far as they are that wide."""
        begin = next(at for at, row in enumerate(self.rows) if len(row) == width and row[0] == first)
        return list(itertools.takewhile(lambda row: len(row) == width, self.rows[begin:]))


def number(text: str) -> float:
    return float(text.replace(",", ""))


def read(document: str) -> Page:
    """Check what every page must be, and parse it."""
    assert document.startswith("<!DOCTYPE html>")
    outside = r"https?:|//|@import|url\(|<script|<link|<iframe|\bon\w+=\"|src=|href="
    assert not re.search(outside, re.sub(r">[^<]*<", "><", document))
    assert "nan" not in re.sub(r">[^<]*<", "><", document).lower().replace("finance", "")
    return Page(document)


def shown_sentences(document: str) -> list[str]:
    """Return the text of the sentences that a page shows, without types, probabilities and notes."""
    sentences = re.findall(r'<div class="sentence[^"]*">(.*?)</div>', document)
    words = (re.sub(r'<span class="(type|label|chance|note)">.*?</span>', " ", sentence) for sentence in sentences)
    return [" ".join(unescape(re.sub(r"<.*?>", "", text.replace("</b>", " "))).split()) for text in words]
