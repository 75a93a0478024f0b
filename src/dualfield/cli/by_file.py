"""Work on many files, each for itself, here or on a Dask cluster: tagging and evaluation by partition."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.program import described, warn

if TYPE_CHECKING:
    from dualfield.cli.evaluation import Evaluation
    from dualfield.cli.labelling.labellings import Style
    from dualfield.cli.models import LoadedModel


def each_file(function: Callable[..., Any], files: Sequence[str], cluster: str | None, *shared: Any) -> Iterator[Any]:
    """Yield what a function makes of files, in their order; errors are one line, and so are warnings."""
    from dualfield.engines import Handles, engine_of

    if cluster is not None:  # whose workers may run in another folder
        files = [os.path.abspath(path) for path in files]  # noqa: PTH100 (links stay as they are)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *place, **more: warn(str(message))
            engine = engine_of(cluster)
        with engine:
            handles = engine.map(function, files, *shared, names=list(files))
            for at, value in enumerate(engine.in_order(handles)):
                yield value
                engine.release(Handles((handles.items[at],), (handles.names[at],)))
    except OSError as error:
        raise click.ClickException(described(error)) from error
    except (RuntimeError, ImportError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error


def tag_files(
    files: Sequence[str], folder: Path, cluster: str | None, model: Path, style: Style, mmap: bool, threads: int
) -> None:
    """Tag files, and write one for each into a folder: of the same name, without .gz."""
    from dualfield.io.text_lines import write_lines

    targets = [folder / Path(path).name.removesuffix(".gz") for path in files]
    for at, target in enumerate(targets):
        if target in targets[:at]:
            raise click.UsageError(f"{files[at]} and {files[targets.index(target)]} would both be written to {target}.")
        if target.exists() and any(target.samefile(path) for path in files):
            raise click.UsageError(f"--output-dir: {target} is one of FILES.")
    folder.mkdir(parents=True, exist_ok=True)
    found = each_file(_tagged, files, cluster, str(model.resolve()), style, mmap, threads)
    for target, lines in zip(targets, found, strict=True):
        write_lines(target, lines)


def evaluate_files(
    files: Sequence[str], cluster: str | None, model: Path, reading: dict[str, Any], raw: bool, threads: int
) -> Evaluation:
    """Evaluate a model on files, and add the counts up; files without sentences count nothing."""
    from dualfield.cli.evaluation import Evaluation

    found = list(each_file(_evaluated, files, cluster, str(model.resolve()), reading, raw, threads))
    if not any(one.n_sentences for one in found):
        raise click.ClickException(f"{files[0]}: is empty; expected sentences.")
    return Evaluation.sum_of(found)


def _loaded(model: str, mmap: bool, threads: int) -> LoadedModel:
    """Return a model, read once by each worker, and again when the file has changed: workers outlive commands."""
    found = Path(model).stat()
    return _read(model, (found.st_ino, found.st_mtime_ns, found.st_size), mmap, threads)


@functools.lru_cache(maxsize=2)
def _read(model: str, version: tuple[int, ...], mmap: bool, threads: int) -> LoadedModel:
    from dualfield.cli.models import load_tagger

    return load_tagger(Path(model), mmap=mmap, threads=threads)


def _tagged(path: str, model: str, style: Style, mmap: bool, threads: int) -> list[str]:
    from dualfield.cli.labelling.lines import tagged_lines

    return [line for group in tagged_lines(_loaded(model, mmap, threads), path, style) for line in group]


def _evaluated(path: str, model: str, reading: dict[str, Any], raw: bool, threads: int) -> Evaluation:
    from dualfield.cli.evaluation import Evaluation
    from dualfield.cli.reading.data_files import first_lines, read_labelled

    if not first_lines(path, reading["encoding"], 1):
        return Evaluation.of([], [], raw=raw)
    loaded = _loaded(model, False, threads)
    choice = loaded.choice(reading["columns"], reading["label"])
    data = read_labelled([path], loaded.kind, reading["delimiter"], choice, encoding=reading["encoding"])
    predicted = [[str(label) for label in labels] for labels in loaded.model.predict(data.X)]
    return Evaluation.of(data.y, predicted, raw=raw)
