"""Fits to a compiled corpus that are killed, or that find the disk full, a file damaged or an argument wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dualfield import CRF, StructuredSVM
from dualfield.data import CompiledCorpus, CorpusFileError
from dualfield.estimators import Checkpoint
from dualfield.models.corpus_training import read_corpus
from dualfield.objectives import StreamedStorage
from dualfield.solvers import BlockDual, StopRule
from tests.estimators.out_of_core_problems import compiled, least_memory, sentences

FITS = {"log": CRF(C=2.0, tol=1e-4), "net": CRF(C=2.0, l1_ratio=0.4, tol=1e-3), "hinge": StructuredSVM(C=2.0, tol=1e-2)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("faults"), *sentences(200))


def run(text, *arguments, **options):
    """Run a script in a process of its own."""
    script = "import os, resource, signal, sys\nfrom dualfield import CRF, StructuredSVM\n"
    script += "from dualfield.data import CompiledCorpus\nfrom dualfield.estimators import Checkpoint\n"
    command = [sys.executable, "-c", script + textwrap.dedent(text), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **options)


@pytest.mark.parametrize("kind", FITS)
def test_a_killed_fit_goes_on_to_the_same_bytes(kind, corpus, tmp_path):
    least = least_memory(FITS[kind], corpus)
    whole = FITS[kind].fit(corpus, memory=least).parameters_.copy()
    kept = tmp_path / "fit.checkpoint"
    settings = FITS[kind].get_params()
    chosen = {name: settings[name] for name in ("C", "tol", "l1_ratio") if name in settings}
    done = run(
        """
        passes = []
        def look(moment, model):
            passes.append(moment.passes)
            if len(passes) == 5:
                os.kill(os.getpid(), signal.SIGKILL)
        model = eval(sys.argv[3])(**eval(sys.argv[4]))
        kept = Checkpoint(sys.argv[2], every=0.0)
        model.fit(CompiledCorpus(sys.argv[1]), memory=int(sys.argv[5]), monitor=look, checkpoint=kept)
        """,
        *(corpus.path, kept, type(FITS[kind]).__name__, repr(chosen), least),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert Path(f"{kept}.blocks").stat().st_size > 0
    again = FITS[kind].fit(corpus, memory=1e9, checkpoint=kept)  # more memory, as another machine may have
    assert again.parameters_.tobytes() == whole.tobytes()
    assert not kept.exists()
    assert not Path(f"{kept}.blocks").exists()


def test_a_stopped_fit_goes_on_again_and_again(corpus, tmp_path):
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    whole = CRF(tol=1e-4).fit(corpus).parameters_.copy()
    sizes, least = [], least_memory(CRF(tol=1e-4), corpus)
    for _ in range(4):
        moments = iter([False, True])
        CRF(tol=1e-4).fit(corpus, memory=least, checkpoint=kept, monitor=lambda *_, left=moments: next(left))
        sizes.append(Path(kept.blocks_path).stat().st_size)
    assert sizes[-1] <= 1.05 * sizes[1]  # places are used again
    assert CRF(tol=1e-4).fit(corpus, checkpoint=kept).parameters_.tobytes() == whole.tobytes()


def test_a_checkpoint_is_that_of_its_corpus_and_its_state(corpus, tmp_path):
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    CRF(tol=1e-4).fit(corpus, checkpoint=kept, monitor=lambda moment, model: moment.passes > 2)
    other = compiled(tmp_path / "other", *sentences(200, seed=1))
    with pytest.raises(ValueError, match="belongs to another fit: the"):
        CRF(tol=1e-4).fit(other, checkpoint=kept)
    states = Path(kept.blocks_path)
    states.write_bytes(bytes(byte ^ 1 for byte in states.read_bytes()))
    with pytest.raises(ValueError, match=r"blocks is altered: the state of block \d+ is not what was written"):
        CRF(tol=1e-4).fit(corpus, checkpoint=kept)
    states.unlink()
    with pytest.raises(ValueError, match="is not the file that belongs to it"):
        CRF(tol=1e-4).fit(corpus, checkpoint=kept)


def test_a_full_disk_is_one_sentence_and_leaves_nothing(corpus, tmp_path):
    done = run(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        model = CRF(tol=1e-4)
        try:
            model.fit(CompiledCorpus(sys.argv[1]), memory=int(sys.argv[2]))
        except OSError as error:
            print(type(error).__name__, error.errno, error)
        print(hasattr(model, "parameters_"))
        """,
        *(corpus.path, least_memory(CRF(tol=1e-4), corpus)),
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("OSError 27 ")
    assert f"{tmp_path} cannot be written: File too large." in done.stdout
    assert done.stdout.splitlines()[1] == "False"
    assert list(tmp_path.iterdir()) == []


def test_the_disk_is_asked_before_the_fit_begins(corpus, tmp_path):
    data = read_corpus(CRF(), corpus, hinge=False)
    objective = data.objective(CRF(), None, 1.0, StreamedStorage(1e9, str(tmp_path / "there-is-none")))
    with pytest.raises(OSError, match="there-is-none takes no temporary file: No such file or directory"):
        BlockDual().solve(objective, StopRule(1e-3))


def test_a_damaged_partition_is_refused(tmp_path):
    corpus = compiled(tmp_path, *sentences(50))
    path = corpus.ranges(0).path
    content = bytearray(path.read_bytes())
    content[corpus.ranges(0).indices.start] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorpusFileError, match="is altered: the bytes of 'indices' do not agree with their digest"):
        CRF().fit(CompiledCorpus(corpus.path))


def test_a_partition_that_is_damaged_during_a_fit_is_refused(tmp_path):
    corpus = compiled(tmp_path, *sentences(50))
    place, least = corpus.ranges(corpus.n_blocks - 1), least_memory(CRF(tol=1e-6), corpus)

    def damage(moment, model):
        content = bytearray(place.path.read_bytes())
        content[place.codes.start : place.codes.start + 4] = (1000).to_bytes(4, "little")
        place.path.write_bytes(content)

    with pytest.raises(CorpusFileError, match=r"is altered: in block \d+ some of its labels are out of range"):
        CRF(tol=1e-6).fit(corpus, memory=least, monitor=damage)


def test_a_memory_that_is_too_small_is_refused_with_what_is_needed(corpus):
    with pytest.raises(ValueError, match=r"memory must be at least (\d+) bytes: .* Got 1000 instead") as caught:
        CRF().fit(corpus, memory=1000)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    enough = CRF(tol=1e-2).fit(corpus, memory=least)
    assert enough.parameters_.tobytes() == CRF(tol=1e-2).fit(corpus).parameters_.tobytes()
    with pytest.raises(ValueError, match="memory must be at least"):
        CRF().fit(corpus, memory=least - 1)


REFUSED = {
    "y": (CRF(), {"y": [["a"]]}, "y must be None with a CompiledCorpus, which has the labels"),
    "weights": (CRF(), {"sample_weight": [1.0]}, "sample_weight must be None with a CompiledCorpus, whose sentences"),
    "lengths": (CRF(), {"lengths": [1]}, "lengths must be None"),
    "memory": (CRF(), {"memory": -1.0}, "The 'memory' parameter of CRF must be"),
    "kernel": (CRF(kernel="rbf"), {}, "The 'kernel' parameter of CRF must be None with a CompiledCorpus"),
    "pairs": (CRF(pair_features=True), {}, "The 'pair_features' parameter of CRF must be False"),
    "evidence": (CRF(C="evidence"), {}, "The 'C' parameter of CRF must be a number"),
    "structure": (CRF("tree"), {}, "The 'structure' parameter of CRF must be 'chain' or a Chain"),
    "solver": (CRF(solver="perceptron"), {}, "this solver needs them in memory. Use solver='auto' or 'block_dual'"),
    "hinge solver": (
        StructuredSVM(solver="cutting_plane"),
        {},
        "needs them in memory. Use solver='auto' or 'flow_swap'",
    ),
    "slack": (StructuredSVM(rescaling="slack"), {}, "The 'rescaling' parameter of StructuredSVM must be 'margin'"),
    "template": (CRF(template="U:%x[0,0]"), {}, "was compiled with no template"),
    "default": (CRF(template="default"), {}, "was compiled with no template"),
    "gradients": (CRF(template="default", solver="lbfgs"), {}, "was compiled with no template"),
    "client": (StructuredSVM(), {"client": "tcp://h:1"}, "'client' argument of StructuredSVM.fit must be None for a"),
    "labels": (CRF(class_weight={"none": 1.0}), {}, "has labels that y does not have"),
    "forbidden": (CRF(constraints=~np.eye(3, dtype=bool)), {}, r"In block \d+ of the corpus: The labels of example"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused(name, corpus):
    model, given, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        model.fit(corpus, **given)
    assert not hasattr(model, "parameters_")


def test_memory_is_for_compiled_corpora():
    with pytest.raises(ValueError, match="memory must be None unless X is a CompiledCorpus"):
        CRF().fit([[["a"]]], [["x"]], memory=1e9)


def peak_of_a_fit(corpus, memory):
    done = run(
        """
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        from tests.estimators.out_of_core_problems import sentences
        CRF(tol=1e-2).fit(*sentences(20))       # what is loaded at the first fit
        corpus = CompiledCorpus(sys.argv[1])
        before = peak()
        CRF(tol=1e-2, max_iter=3).fit(corpus, memory=float(sys.argv[2]))
        print(peak() - before)
        """,
        *(corpus.path, memory),
        env={**os.environ, "PYTHONWARNINGS": "ignore", "MALLOC_ARENA_MAX": "2"},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_memory_stays_within_the_budget_whatever_the_size(tmp_path):
    budget = 8e6
    X, y = sentences(6000, n_words=300)
    small, large = compiled(tmp_path / "small", X, y), compiled(tmp_path / "large", X * 6, y * 6)
    assert large.n_nodes * 2 * 4 * 6 > 0.9 * budget  # bytes of the states
    assert peak_of_a_fit(small, budget) <= 1.1 * budget
    assert peak_of_a_fit(large, budget) <= 1.1 * budget
