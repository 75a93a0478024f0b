"""The texts of the templates that come with the library."""

from __future__ import annotations

# CRFsuite's way: names without a prefix, nothing beyond the ends of a sentence, marks on its first and last token.
_HEADER = ("!bare-names", "!omit-outside", "!mark-ends", "b")
_WINDOW = range(-2, 3)


def _line(name: str, macro: str, offsets: tuple[int, ...], column: int) -> str:
    """Join the values at some offsets: ``u:w[-1]|w[0]=%x[-1,0]|%x[0,0]``."""
    names = "|".join(f"{name}[{offset}]" for offset in offsets)
    values = "|".join(macro.format(f"{offset},{column}") for offset in offsets)
    return f"u:{names}={values}"


def chunking_text() -> str:
    """Write the template of CRFsuite's chunking tutorial: words in column 0, part-of-speech tags in column 1."""
    singles = [(offset,) for offset in _WINDOW]
    words = [*singles, (-1, 0), (0, 1)]
    tags = [*singles, (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)]
    lines = [_line("w", "%x[{}]", offsets, 0) for offsets in words]
    lines += [_line("pos", "%x[{}]", offsets, 1) for offsets in tags]
    return "\n".join([*_HEADER, *lines]) + "\n"


def default_text(n_columns: int) -> str:
    """Write a template for words in column 0 and anything in the columns behind it."""
    lines = [_line("w", "%x[{}]", (offset,), 0) for offset in _WINDOW]
    lines += [_line("lower", "%X[{}]", offsets, 0) for offsets in [(-1,), (0,), (1,), (-1, 0), (0, 1)]]
    lines += [_line("shape", "%s[{}]", (0,), 0)]
    lines += [_line("outline", "%c[{}]", (offset,), 0) for offset in (-1, 0, 1)]
    lines += [
        f"u:{name}{n}=%{letter}[0,0,{n}]" for name, letter in (("prefix", "p"), ("suffix", "q")) for n in range(1, 5)
    ]
    for column in range(1, n_columns):
        places = [*((offset,) for offset in _WINDOW), (-1, 0), (0, 1)]
        lines += [_line(f"c{column}", "%x[{}]", offsets, column) for offsets in places]
    return "\n".join([*_HEADER, *lines]) + "\n"
