"""Draw the picture of README.md, a sentence with the probability of each name: ``python docs/tagged_sentence.py``.

It is the sentence of ``dualfield demo``; a test compares the file with what this draws.
"""

from pathlib import Path

from dualfield.cli.demo_names import SENTENCE, chain_model
from dualfield.datasets import load_town_news
from dualfield.plotting import MarginalsDisplay

PICTURE = Path(__file__).parent / "_static" / "tagged_sentence.svg"


def drawn() -> str:
    """Train the model of the demo, tag its sentence and draw it."""
    news = load_town_news()
    model = chain_model().fit(news.X_train, news.y_train)
    return MarginalsDisplay.from_estimator(model, SENTENCE.split()).svg(width=950)


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
