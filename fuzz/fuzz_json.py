"""JSON of annotation tools: texts with spans, and tokens with tags, are read, or refused with a ValueError."""

import contextlib
import io
import sys

import atheris
from instrument import instrument_library, seed_folder

from dualfield.io import read_json_spans, read_json_tokens, write_json_spans

SEEDS = {
    "prodigy": b'{"text": "in New York", "tokens": [{"text": "in", "start": 0, "end": 2}, {"text": "New York", '
    b'"start": 3, "end": 11}], "spans": [{"start": 3, "end": 11, "label": "LOC"}], "answer": "accept"}\n',
    "doccano": b'{"text": "in New York", "label": [[3, 11, "LOC"]]}\n{"text": "a", "entities": [{"start_offset": 0, '
    b'"end_offset": 1, "label": "X"}]}\n',
    "studio": b'[{"data": {"text": "\\ud83d\\ude00 Gent"}, "annotations": [{"result": [{"value": {"start": 3, '
    b'"end": 7, "text": "Gent", "labels": ["LOC"]}}]}]}]',
    "tokens": b'{"label_names": ["O", "B-LOC"], "data": [{"tokens": ["in", "Gent"], "ner_tags": [0, 1]}]}',
}


def fuzz(data: bytes) -> None:
    """Read the bytes in every way; texts that were read are written, and read again."""
    for alignment in ("strict", "expand"):
        with contextlib.suppress(ValueError):
            texts = read_json_spans(io.BytesIO(data), alignment=alignment)
            written = io.StringIO()
            write_json_spans(texts, written)
            again = read_json_spans(written.getvalue().split("\n"))
            if [text.character_spans for text in again] != [text.character_spans for text in texts]:
                raise RuntimeError("What was written is not what was read.")
    with contextlib.suppress(ValueError):
        read_json_tokens(io.BytesIO(data))


def main() -> None:
    """Write texts to begin with into the folder named by the first argument, and run."""
    folder = seed_folder()
    if folder is not None:
        for name, text in SEEDS.items():
            (folder / name).write_bytes(text)
    instrument_library()
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
