"""``dualfield train --cluster``: files or a compiled corpus, which the workers of a Dask cluster read and train on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.compiling import plan_of
from dualfield.cli.program import described, tell
from dualfield.cli.reading.columns import ColumnChoice
from dualfield.cli.training.corpus_data import is_corpus, open_corpus
from dualfield.cli.training.end import Options, finish
from dualfield.cli.training.fit import check_target, own_warnings
from dualfield.cli.training.pass_table import PassTable

if TYPE_CHECKING:
    from dualfield.io import FileColumns
    from dualfield.models.part_sources import PartSource

# What is for one machine, and what there is instead.
_ALONE = (
    *("dev", "patience", "keep", "calibrate", "warm_start", "report", "structure", "order", "alignment", "label_names"),
    *("max_length", "segment_features", "span_features", "root", "non_projective", "arc_features", "inference"),
    *("budget", "kernel", "gamma", "degree", "coef0"),
)


@dataclass(frozen=True)
class FileData:
    """What the end of a training asks of its data."""

    columns: FileColumns | None
    label_graph: None = None


def run_on_cluster(given: Options, chosen: set[str]) -> str:
    """Train on a cluster as the options say; return how the fit ended, the value of a Status.

    Parameters
    ----------
    given : dict
        Options of the command, by name.
    chosen : set of str
        Those that the user has given.
    """
    from dualfield.estimators import CRF, Checkpoint

    _check(given, chosen)
    parts: Any
    if is_corpus(given):
        corpus = open_corpus(given, chosen)
        parts, names, template, columns = corpus.X, list[str](), None, corpus.columns
    else:
        parts, columns = _files(given)
        names, template = parts.names, parts.template
    model = CRF(
        C=given["C"],
        l1_ratio=given["l1_ratio"],
        features=given["features"],
        min_freq=given["min_freq"],
        constraints=None if given["constraints"] == "none" else given["constraints"],
        template=template,
        solver=given["solver"],
        max_iter=given["max_iter"],
        n_jobs=given["threads"],
        random_state=given["seed"],
    )
    if given["tol"] is not None:
        model.tol = given["tol"]
    kept = None
    if given["checkpoint"] is not None:
        kept = Checkpoint(given["checkpoint"], every=given["checkpoint_every"], remove=False)
        if given["checkpoint"].exists() and not given["quiet"]:
            tell(f"Resuming from {given['checkpoint']}.")
    with PassTable(model.tol, None, "", quiet=given["quiet"]) as table, own_warnings(given), one_line(names):
        model.fit(parts, client=given["cluster"], monitor=table, checkpoint=kept)
    if not given["quiet"]:
        tell(
            f"{model.n_partitions_:,} partitions, {model.n_rounds_:,} exchanges, {model.bytes_moved_ / 1e6:,.1f} MB of "
            "gradients."
        )
    data: Any = FileData(columns)
    return finish(given, data, None, model, table.history)


def _files(given: Options) -> tuple[PartSource, FileColumns | None]:
    """Return files as partitions, and which of their columns are read."""
    from dualfield.io.partition_files import PartitionFiles, read_file
    from dualfield.models.part_sources import PartSource

    paths = list(given["data"])
    plan = plan_of(
        paths,
        given["kind"],
        given["delimiter"],
        given["encoding"],
        ColumnChoice(given["columns"], given["label"]),
        given["template"],
        len(paths),
        given["seed"],
    )
    files = PartitionFiles(plan)
    return PartSource(items=files.items(), read=read_file, names=files.names, template=files.template), files.columns


@contextmanager
def one_line(names: list[str]) -> Iterator[None]:
    """Turn errors of a cluster and of partitions into one line that begins with the file, if there is one."""
    from dualfield.cli.reading.sources import placed

    try:
        yield
    except ValueError as error:
        name = next((name for name in names if str(error).startswith(name)), "")
        with placed(name):
            raise
    except OSError as error:
        raise click.ClickException(described(error)) from error
    except (RuntimeError, ImportError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error


def _check(given: Options, chosen: set[str]) -> None:
    """Refuse what only one machine can do, before any work."""
    for name in _ALONE:
        if name in chosen:
            raise click.UsageError(f"--{name.replace('_', '-')} is not for --cluster.")
    if given["loss"] == "hinge":
        raise click.UsageError(
            "--loss hinge is not for --cluster, where gradients are summed: train out of core on one machine, see "
            "`dualfield compile`."
        )
    if isinstance(given["C"], str):
        raise click.UsageError(
            f"--C {given['C']} is not for --cluster: choose C on a part of the data by `dualfield tune`."
        )
    if given["solver"] not in ("auto", "lbfgs"):
        raise click.UsageError(f"--solver {given['solver']} is not for --cluster, which takes auto, lbfgs.")
    if "-" in given["data"]:
        raise click.UsageError("Standard input is not for --cluster: workers read the files themselves.")
    if given["memory"] is not None:
        raise click.UsageError("--memory is for one machine; workers have memory limits of their own.")
    for path in (given["target"], given["checkpoint"]):
        check_target(path)
