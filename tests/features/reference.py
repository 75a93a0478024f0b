"""Templates in plain Python: every attribute of every token composed as a string, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Sentence = list[tuple[str, ...]]


@dataclass(frozen=True)
class Macro:
    letter: str  # x, t, m, p, q, s or c
    offset: int
    column: int
    lowered: bool = False
    absolute: bool = False
    pattern: tuple[tuple[str, str], ...] = ()  # atoms such as "a", ".", "\\d", each with "", "?" or "*"
    from_start: bool = False
    to_end: bool = False
    length: int = 1

    def text(self) -> str:
        """Write it as in a template."""
        letter = self.letter.upper() if self.lowered else self.letter
        extra = ""
        if self.letter in "tm":
            body = "".join(atom + repeat for atom, repeat in self.pattern)
            extra = f',"{"^" * self.from_start}{body}{"$" * self.to_end}"'
        elif self.letter in "pq":
            extra = f",{self.length}"
        return f"%{letter}[{'@' * self.absolute}{self.offset},{self.column}{extra}]"

    def place(self, token: int, length: int) -> int:
        """Return the token that it points to, which may be outside of the sentence."""
        if not self.absolute:
            return token + self.offset
        return self.offset - 1 if self.offset >= 0 else length + self.offset

    def value(self, token: int, sentence: Sentence, wapiti: bool) -> str:
        """Return what it stands for at a token."""
        place, outside = self.place(token, len(sentence)), None
        if place < 0:
            outside = boundary(place, wapiti)
        elif place >= len(sentence):
            outside = boundary(place - len(sentence) + 1, wapiti)
        if outside is not None and self.letter in "pqsc":
            return outside
        result = self.made(sentence[place][self.column] if outside is None else outside)
        return "".join(character.lower()[0] for character in result) if self.lowered else result

    def made(self, value: str) -> str:
        """Return what it makes of a value."""
        if self.letter == "p":
            return value[: self.length]
        if self.letter == "q":
            return value[max(len(value) - self.length, 0) :]
        if self.letter in "sc":
            shape = [shape_of(character) for character in value]
            return "".join(a for i, a in enumerate(shape) if self.letter == "s" or i == 0 or shape[i - 1] != a)
        if self.letter in "tm":
            found = self.match(value)
            return (found or "") if self.letter == "m" else "false" if found is None else "true"
        return value

    def match(self, value: str) -> str | None:
        """Return the first match of the pattern, by trying everything in order of preference."""
        for start in range(1 if self.from_start else len(value) + 1):
            for end in self.ends(0, start, value):
                return value[start:end]
        return None

    def ends(self, at: int, place: int, value: str) -> Iterator[int]:
        if at == len(self.pattern):
            if not self.to_end or place == len(value):
                yield place
            return
        atom, repeat = self.pattern[at]
        here = place < len(value) and matches(atom, value[place])
        if repeat == "*":
            yield from self.ends(at + 1, place, value)
            if here:
                yield from self.ends(at, place + 1, value)
            return
        if here:
            yield from self.ends(at + 1, place + 1, value)
        if repeat == "?":
            yield from self.ends(at + 1, place, value)


@dataclass(frozen=True)
class Line:
    prefix: str  # the letter that starts the line, and what follows it
    texts: tuple[str, ...]
    macros: tuple[Macro, ...]

    def text(self) -> str:
        """Write it as in a template."""
        return (
            self.prefix
            + self.texts[0]
            + "".join(macro.text() + text for macro, text in zip(self.macros, self.texts[1:], strict=True))
        )


@dataclass(frozen=True)
class Form:
    lines: tuple[Line, ...]
    wapiti: bool = False
    omit_outside: bool = False
    mark_ends: bool = False
    bare_names: bool = False

    def text(self) -> str:
        """Write the template."""
        switches = ["!omit-outside"] * self.omit_outside + ["!mark-ends"] * self.mark_ends
        switches += ["!bare-names"] * self.bare_names
        return "\n".join([*switches, *(line.text() for line in self.lines)])

    def attribute(self, line: Line, token: int, sentence: Sentence) -> str | None:
        """Return the attribute of a line at a token, or None if it is left out."""
        places = [macro.place(token, len(sentence)) for macro in line.macros]
        if self.omit_outside and not all(0 <= place < len(sentence) for place in places):
            return None
        name = line.prefix + line.texts[0]
        if self.bare_names:
            name = name.partition(":")[2]
        elif self.wapiti:
            name = name[0].lower() + name[1:]
        values = [macro.value(token, sentence, self.wapiti) for macro in line.macros]
        return name + "".join(value + text for value, text in zip(values, line.texts[1:], strict=True))

    def nodes(self, sentence: Sentence) -> list[list[str]]:
        """Return the attributes of each token."""
        lines = [line for line in self.lines if line.prefix[0] in "Uu*"]
        items = []
        for token in range(len(sentence)):
            found = [self.attribute(line, token, sentence) for line in lines]
            marks = ["__BOS__"] * (token == 0) + ["__EOS__"] * (token == len(sentence) - 1)
            items.append([text for text in found if text is not None] + marks * self.mark_ends)
        return items

    def pairs(self, sentence: Sentence) -> list[list[str]]:
        """Return the attributes of each token and the one before it."""
        lines = [line for line in self.lines if line.prefix[0] in "Bb*" and line.macros]
        rows = [[self.attribute(line, token, sentence) for line in lines] for token in range(len(sentence))]
        return [[text for text in row if text is not None] if token else [] for token, row in enumerate(rows)]


def boundary(place: int, wapiti: bool) -> str:
    sign, distance = "-" if place < 0 else "+", abs(place)
    if not wapiti:
        return f"_B{sign}{distance}"
    return f"_x{sign}{distance if distance <= 4 else '#'}"


def matches(atom: str, character: str) -> bool:
    if atom == ".":
        return True
    if len(atom) == 1:
        return atom == character
    if atom[1].lower() not in "adlpsuw":
        return atom[1] == character
    is_space = character in " \t\n\v\f\r" if character.isascii() else character.isspace()
    is_word = character.isalpha() or character.isdecimal()
    found = {
        "a": character.isalpha(),
        "d": character.isdecimal(),
        "l": character.islower(),
        "p": character.isprintable() and not is_word and not is_space,
        "s": is_space,
        "u": character.isupper(),
        "w": is_word,
    }[atom[1].lower()]
    return found != atom[1].isupper()


def shape_of(character: str) -> str:
    if character.isupper():
        return "X"
    if character.isalpha():
        return "x"
    return "d" if character.isdecimal() else character
