"""Train and tag with an installed wheel: run by the Python of an otherwise empty environment, apart from the sources.

python -I check_wheel.py
"""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import dualfield
from dualfield import _native

SENTENCES = [[("the", "DT"), ("cat", "NN"), (verb, "VB"), ("it", "PR")] for verb in ("sees", "hears", "finds", "eats")]


def main() -> None:
    """Check where the library comes from, and that both its faces work."""
    where = Path(dualfield.__file__)
    if not where.is_relative_to(sysconfig.get_path("platlib")):
        sys.exit(f"dualfield is imported from {where}, which is not the installed wheel")
    X = [[{"word": word} for word, _ in sentence] for sentence in SENTENCES]
    y = [[label for _, label in sentence] for sentence in SENTENCES]
    model = dualfield.CRF().fit(X, y)
    if model.predict(X) != y:
        sys.exit("a CRF does not find the labels that it was trained on")
    command = Path(sysconfig.get_path("scripts"), "dualfield")
    with tempfile.TemporaryDirectory() as folder:
        data, saved = Path(folder, "data.txt"), Path(folder, "tags.model")
        data.write_text("\n".join("".join(f"{word} {label}\n" for word, label in one) for one in SENTENCES))
        subprocess.run([command, "train", data, "--model", saved], check=True, capture_output=True)
        tagged = subprocess.run([command, "tag", "--model", saved, data], check=True, capture_output=True, text=True)
    rows = [line.split() for line in tagged.stdout.splitlines() if line]
    if not rows or any(label != found for _, label, found in rows):
        sys.exit(f"the command line does not find the labels that it was trained on:\n{tagged.stdout}")
    print(f"{Path(_native.__file__).name} trains and tags with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
