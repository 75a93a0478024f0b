"""Templates: they are read in both syntaxes, or refused with a ValueError, and then make attributes of any rows.

So are texts over two anchors, for segments and for arcs.
"""

import contextlib
import sys

import atheris
from instrument import instrument_library, seed_folder

from dualfield.data.anchored_rows import AnchoredRows, arc_anchors, segment_anchors
from dualfield.data.anchored_texts import ARC, SEGMENT
from dualfield.features import Template

SEEDS = {
    "crf++": b"# words\nU0:%x[-1,0]/%x[0,1]\nU2:%p[0,0,3]%q[0,0,2]%s[0,0]%c[0,0]\nB\n",
    "pairs": b"U0:%x[0,0]\nB0:%x[0,1]/%x[-2,0]\n",
    "wapiti": b'u:%X[0,1]\nu1:%t[0,0,"^[a-z]+\\d?"]\n*:%m[1,0,".$"]\nb\n',
    "hostile": b'U:%x[-2147483649,0]\nU:%x[0,4294967296]\nu:%m[0,0,"(((((((((("]\nU:%p[0,0,99999999999]\n',
    "anchored": b"%x[first]/%x[last+1,1]\n%x[all]%n\n%b[1]\n%x[head-2,2]%x[child]",
}
# Empty sentences, empty cells, letters of every width; three columns, so that most templates find theirs.
ROWS = [[("The", "DT", ""), ("d\u00f6g\U0001f436", "NN", "\0")], [], [("", "", "")], [("a" * 300, "\t ", "\ud7ff")] * 3]


def fuzz(data: bytes) -> None:
    """Read the bytes as a template, and use it."""
    text = data.decode("utf-8", "replace")
    for syntax in ("auto", "crf++", "wapiti"):
        with contextlib.suppress(ValueError):
            template = Template(text, syntax=syntax)
            assert Template(template.text, syntax=template.syntax) == template
            template.read(ROWS)
    lengths = [len(one) for one in ROWS]
    for names, (anchors, offsets) in ((SEGMENT, segment_anchors(lengths)), (ARC, arc_anchors(lengths))):
        with contextlib.suppress(ValueError):
            rows = AnchoredRows(ROWS, anchors, text.splitlines(), offsets=offsets, names=names)
            rows.build(vocabulary=rows.build(grow=anchors[:, 1] % 2 == 0).vocabulary)


def main() -> None:
    """Write templates to begin with into the folder named by the first argument, and run."""
    folder = seed_folder()
    if folder is not None:
        for name, text in SEEDS.items():
            (folder / name).write_bytes(text)
    instrument_library()
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
