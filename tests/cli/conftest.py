"""A small corpus in files, and the command line called on them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dualfield.cli import main

WORDS = {
    "DT": ["the", "a", "every", "no"],
    "JJ": ["big", "old", "green", "quick"],
    "NN": ["dog", "cat", "house", "river", "saw"],
    "VB": ["sees", "saw", "likes", "paints"],
    "IN": ["in", "near", "behind"],
}


def corpus(n: int, seed: int) -> str:
    """Return sentences in columns: word, tag, chunk."""
    chance = random.Random(seed)
    lines = []

    def noun_phrase() -> None:
        tags = ["DT", *(["JJ"] if chance.random() < 0.5 else []), "NN"]
        for at, tag in enumerate(tags):
            lines.append(f"{chance.choice(WORDS[tag])} {tag} {'I-NP' if at else 'B-NP'}")

    for _ in range(n):
        noun_phrase()
        lines.append(f"{chance.choice(WORDS['VB'])} VB B-VP")
        noun_phrase()
        if chance.random() < 0.5:
            lines.append(f"{chance.choice(WORDS['IN'])} IN O")
            noun_phrase()
        lines += [". . O", ""]
    return "\n".join(lines) + "\n"


class Shell:
    """Calls the command line in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: object, stdin: str | bytes | None = None, code: int = 0) -> Result:
        """Run a command that must end with an exit code."""
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def path(self, name: str) -> Path:
        return self.folder / name

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with train.txt, dev.txt and the model `chunks`, which nobody changes."""
    folder = tmp_path_factory.mktemp("trained")
    made = Shell(folder)
    made.write("train.txt", corpus(40, 0))
    made.write("dev.txt", corpus(12, 1))
    made("train", folder / "train.txt", "--model", folder / "chunks", "--quiet")
    return made
