"""Options that several sub-commands have, declared once."""

from __future__ import annotations

import codecs
import glob
import math
from pathlib import Path
from typing import Any

import click

from dualfield.cli.reading.data_files import DELIMITERS, FORMATS
from dualfield.cli.reading.json_data import parse_label_names

# Paths are str where "-" stands for standard input.
INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True)


class Pattern(click.Path):
    """A file, or a pattern such as 'corpus/*.gz' that the shell has left alone; :func:`expanded` lists its files."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path or the pattern."""
        return value if isinstance(value, str) and files_of(value) else super().convert(value, param, ctx)


def files_of(pattern: str) -> list[str]:
    """Return the files that a pattern means, in order; none if it is a path."""
    if Path(pattern).exists() or not glob.has_magic(pattern):
        return []
    return [path for path in sorted(glob.glob(pattern, recursive=True)) if Path(path).is_file()]  # noqa: PTH207


def expanded(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Put files in the place of patterns."""
    return tuple(path for one in value for path in files_of(one) or [one])


INPUTS = Pattern(exists=True, dir_okay=False, allow_dash=True)
INPUTS_OR_FOLDER = Pattern(exists=True, allow_dash=True)
cluster = click.option(
    "--cluster",
    metavar="ADDRESS",
    default=None,
    help="Work on a Dask cluster, a file at a time on each worker: the address of its scheduler, such as "
    "tcp://host:8786. Workers must see the files under the same names.",
)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT = click.Path(dir_okay=False, path_type=Path)


class Finite(click.FloatRange):
    """A number in a range; nan and inf, which Python reads as numbers, are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return float(found)


POSITIVE = Finite(min=0.0, min_open=True)
NUMBER = Finite()

threads = click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Number of threads; results do not depend on it.",
)
seed = click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
data_format = click.option(
    "--format",
    "kind",
    type=click.Choice(["auto", *FORMATS]),
    default="auto",
    show_default=True,
    help="Format of the data: columns with the label last, CRFsuite's items, svmlight, svmlight with several labels, "
    "JSON with character spans, JSON with tokens and tags, graphs in JSON, trees in brackets, or dependency trees. "
    "auto detects it, but for dependency trees, which --structure dependency asks for.",
)
delimiter = click.option(
    "--delimiter",
    type=click.Choice(list(DELIMITERS)),
    default="blanks",
    show_default=True,
    help="Separator of columns: any run of spaces and tabs, exactly one tab, or exactly one space.",
)


def _encoding(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Take an encoding in which lines end as in ASCII."""
    try:
        extends_ascii = "0\n\t ".encode(value) in (b"0\n\t ", codecs.BOM_UTF8 + b"0\n\t ")
    except LookupError:
        raise click.BadParameter(
            f"{value!r} is not an encoding that Python knows, such as utf-8, latin-1 or cp1252.", ctx, param
        ) from None
    if not extends_ascii:
        raise click.BadParameter(
            f"{value!r} does not extend ASCII. Convert the file, for example by iconv.", ctx, param
        )
    return "utf-8" if codecs.lookup(value).name in ("utf-8", "utf-8-sig") else value


encoding = click.option(
    "--encoding",
    metavar="NAME",
    callback=_encoding,
    default="utf-8",
    show_default=True,
    help="Encoding of the data, such as latin-1. Output is always UTF-8.",
)


def _columns(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Take numbers with commas between them."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of columns, counted from 0, such as 0,1.", ctx, param)
    found = tuple(map(int, parts))
    if len(set(found)) < len(found):
        raise click.BadParameter(f"{value!r} names a column twice.", ctx, param)
    return found


columns = click.option(
    "--columns",
    metavar="LIST",
    callback=_columns,
    default=None,
    help="Columns that describe a token, counted from 0, such as 0,1. Templates count them in this order. Of trees 0 "
    "is the word and 1 its tag.  [default: as in training, where it is all but the label]",
)
label_column = click.option(
    "--label",
    metavar="COLUMN",
    type=click.IntRange(0),
    default=None,
    help="Column of the true label, counted from 0.  [default: as in training, where it is the last]",
)
alignment = click.option(
    "--alignment",
    type=click.Choice(["strict", "expand"]),
    default="strict",
    show_default=True,
    help="For JSON with character spans: refuse spans that begin or end inside a token, or take the whole token.",
)
label_names = click.option(
    "--label-names",
    metavar="LIST|FILE",
    callback=parse_label_names,
    default=None,
    help="For JSON with numbers as tags: their names from 0, such as O,B-PER,I-PER, or a file of names (one in each "
    "line, a JSON list, or dataset_info.json).",
)
template = click.option(
    "--template",
    metavar="FILE|default|chunking",
    default=None,
    help="Template that turns columns into attributes: a file in the syntax of CRF++ or Wapiti, or a built-in one.  "
    "[default: default]",
)
features = click.option(
    "--features",
    type=click.Choice(["observed", "all"]),
    default="observed",
    show_default=True,
    help="observed: weights only for (attribute, label) pairs seen in training. all: for every pair, as in CRF++ and "
    "Wapiti.",
)
constraints = click.option(
    "--constraints",
    type=click.Choice(["none", "BIO", "BIOES"]),
    default="none",
    show_default=True,
    help="Label scheme: invalid transitions are forbidden, in training and in tagging.",
)
structure = click.option(
    "--structure",
    type=click.Choice(["graph", "tree", "semi-markov", "spans", "grammar", "dependency"]),
    default=None,
    help="For sequences: semi-markov cuts them into segments, which the labels mark.  [default: a chain]  dependency: "
    "trees of heads, in CoNLL-U, or in columns whose last one is the head, 0 for the root.  For graphs "
    "in JSON: any graph, or trees, whose edges lead from a parent to its child.  [default: graph]  For several labels: "
    "an edge between all pairs of labels, or the tree of the largest mutual information.  [default: no edges]  For "
    "trees in brackets: spans scores each labelled span, grammar the rules that the trees have.  [default: spans]",
)
max_length = click.option(
    "--max-length",
    type=click.IntRange(1),
    default=None,
    help="For semi-markov: tokens of the longest segment.  [default: that of the training data]",
)
root = click.option(
    "--root",
    type=click.Choice(["single", "any"]),
    default="single",
    show_default=True,
    help="For dependency: whether one word is below the root, or any number.",
)
non_projective = click.option(
    "--non-projective",
    type=click.Choice(["error", "skip", "lift"]),
    default="error",
    show_default=True,
    help="For dependency: refuse training trees whose arcs cross, leave them out, or move arcs up until none cross.",
)
arc_features = click.option(
    "--arc-feature",
    "arc_features",
    metavar="TEXT",
    multiple=True,
    help="For dependency: an attribute of arcs, such as '%x[head,1]/%x[child,1]/%d'; columns are form, universal tag, "
    "tag, lemma and features, or those of the file. May be given several times.  [default: a first-order set]",
)
segment_features = click.option(
    "--segment-feature",
    "segment_features",
    metavar="TEXT",
    multiple=True,
    help="For semi-markov and columns: an attribute of whole segments, such as '%x[first]/%x[last]', '%x[all]', "
    "'%x[first-1,1]' or '%n', the number of tokens. May be given several times; needs --max-length.",
)


span_features = click.option(
    "--span-feature",
    "span_features",
    metavar="TEXT",
    multiple=True,
    help="For spans: an attribute of spans, such as '%x[first]/%x[last,1]', '%x[all,1]' or '%n', the number of words. "
    "May be given several times.  [default: words and tags at the ends and around them]",
)
inference = click.option(
    "--inference",
    type=click.Choice(["auto", "exact", "trw", "max_flow"]),
    default="auto",
    show_default=True,
    help="For graphs: exact, trw (bounds of a relaxation, without probabilities), max_flow (two labels, hinge loss), "
    "or auto: exact where the budget is enough.",
)


def _bytes(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Take a whole number of bytes, also written as 1e9."""
    number: Any = value
    found = POSITIVE.convert(number, param, ctx)
    if not found.is_integer():
        raise click.BadParameter(f"{value!r} is not a whole number of bytes.", ctx, param)
    return int(found)


budget = click.option(
    "--budget",
    metavar="BYTES",
    callback=_bytes,
    default="1e9",
    show_default=True,
    help="For graphs: memory that exact answers about one graph may take, for each thread.",
)
quiet = click.option("--quiet", "-q", is_flag=True, help="Print only warnings and errors.")
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON, for other programs.")
