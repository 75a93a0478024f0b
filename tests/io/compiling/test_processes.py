"""The same bytes from any number of processes, from compressed files, and after a kill."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time

import pytest

from dualfield.features import Template
from dualfield.io import compile_corpus, read_conll, write_conll
from dualfield.io.compiling import text_chunks
from dualfield.io.compiling.running import Runner
from tests.io.compiling.test_equal_to_whole import PAIRS, sentences, split_files
from tests.io.compiling.test_failures import check_same_bytes


def test_two_processes_and_small_chunks_give_the_same_bytes(tmp_path, monkeypatch):
    paths = split_files(tmp_path, sentences(300), 3)
    expected = compile_corpus(paths, tmp_path / "one", parts=5, template=Template(PAIRS))
    monkeypatch.setattr(text_chunks.text_chunks, "__defaults__", ("utf-8", 700))
    two = compile_corpus(paths, tmp_path / "two", parts=5, template=Template(PAIRS), n_jobs=2)
    check_same_bytes(two, expected)


def test_compression_encoding_and_line_ends_do_not_matter(tmp_path):
    (tmp_path / "gz").mkdir()
    (tmp_path / "plain").mkdir()
    (tmp_path / "other").mkdir()
    path = split_files(tmp_path / "gz", sentences(60), 1, "data")[0]
    text = path.read_text("utf-8")
    path.write_bytes(gzip.compress(text.encode()))
    (tmp_path / "plain" / "data").write_text("\ufeff" + text.rstrip("\n"), "utf-8")
    (tmp_path / "other" / "data").write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    made = []
    for name, encoding in (("gz", "utf-8"), ("plain", "utf-8"), ("other", "latin-1")):
        folder = tmp_path / name
        made.append(compile_corpus(folder / "data", folder / "out", parts=3, encoding=encoding))
    for one in made[1:]:
        for file in sorted(one.path.glob("*.bin")):
            assert file.read_bytes() == (made[0].path / file.name).read_bytes(), file.name


@pytest.mark.parametrize("separator", [None, "\t", " "])
def test_lines_are_cut_as_read_conll_does(tmp_path, separator):
    mark = separator or "\t "
    lines = [
        f"-DOCSTART-{mark}x",
        "",
        f"a{mark}b{mark}L",
        f"é{mark}-DOCSTART-{mark}M",
        " \t",
        f"-DOCSTART-x{mark}y{mark}L",
        "  -DOCSTART-",
        f"last{mark}b{mark}L",
    ]
    if separator is not None:
        lines += ["", f"a{mark}{mark}L"]
    path = tmp_path / "data.txt"
    path.write_text("\n".join(lines), "utf-8")
    rows = read_conll(path, separator=separator)
    corpus = compile_corpus(path, tmp_path / "out", parts=1, separator=separator, template="U:%x[0,0]/%x[0,1]")
    order = corpus.numbers(0).tolist()
    expected = Template("U:%x[0,0]/%x[0,1]").read([[row[:2] for row in rows[at]] for at in order])
    assert list(corpus.vocabulary) == list(expected.nodes.vocabulary)
    assert corpus.part(0).nodes.lengths.tolist() == expected.nodes.lengths.tolist()
    labels = [corpus.labels.classes[code] for code in corpus.part(0).codes]
    assert labels == [row[2] for at in order for row in rows[at]]


COMPILE = """
import sys
from dualfield.io import compile_corpus
from dualfield.io.compiling import text_chunks
text_chunks.text_chunks.__defaults__ = ("utf-8", 2000)
compile_corpus(sys.argv[1], sys.argv[2], parts=4, n_jobs=int(sys.argv[3]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_compilation_is_resumed(tmp_path):
    n_pieces = 6
    path = tmp_path / "data.txt"
    write_conll(sentences(3000), path)
    expected = compile_corpus(path, tmp_path / "expected", parts=4)
    target, work = tmp_path / "out", tmp_path / ".out.compiling"
    process = subprocess.Popen([sys.executable, "-c", COMPILE, path, target, "1"])
    try:
        limit = time.monotonic() + 300
        while len(list((work / "pieces").glob("[0-9]*.bin"))) < n_pieces and not target.exists():
            assert process.poll() is None or target.exists()
            assert time.monotonic() < limit
            time.sleep(0.001)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    if not target.exists():  # else it was faster than the eye that waits for it
        kept = {one.name: one.stat().st_mtime_ns for one in (work / "pieces").glob("[0-9]*.bin")}
        assert len(kept) >= n_pieces
        subprocess.run([sys.executable, "-c", COMPILE, path, target, "1"], check=True)
    check_same_bytes(compile_corpus_opened(target), expected)
    assert not work.exists()


def compile_corpus_opened(path):
    from dualfield.data import CompiledCorpus

    corpus = CompiledCorpus(path)
    corpus.verify()
    return corpus


def die(at):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_is_told():
    runner = Runner(2, lambda progress: None)
    with pytest.raises(ChildProcessError, match=r"died while it was compiling.*take fewer processes, or more parts"):
        list(runner.results(die, [(at,) for at in range(3)]))
    assert list(runner.results(abs, [(-1,), (-2,)])) == [1, 2]


def test_only_what_is_missing_is_done_again(tmp_path, monkeypatch):
    from dualfield.io.compiling import compile as compiling

    monkeypatch.setattr(text_chunks.text_chunks, "__defaults__", ("utf-8", 1000))
    paths = split_files(tmp_path, sentences(200), 2)
    expected = compile_corpus(paths, tmp_path / "expected", parts=3)
    read, broken = [], [5]

    def counted(plan, chunk, first_row, real=compiling.read_chunk):
        read.append((chunk.file, chunk.number))
        if len(read) == broken[0]:
            raise KeyboardInterrupt
        return real(plan, chunk, first_row)

    monkeypatch.setattr(compiling, "read_chunk", counted)
    with pytest.raises(KeyboardInterrupt):
        compile_corpus(paths, tmp_path / "out", parts=3)
    pieces = sorted((tmp_path / ".out.compiling" / "pieces").glob("[0-9]*.bin"))
    assert len(pieces) == 4
    pieces[0].write_bytes(pieces[0].read_bytes()[:-1])  # as a failure of the machine may leave it
    done, broken[0] = read[1:4], -1
    read.clear()
    check_same_bytes(compile_corpus(paths, tmp_path / "out", parts=3), expected)
    assert not set(read) & set(done)
    assert (0, 0) in read


def test_other_options_begin_anew(tmp_path, monkeypatch):
    from dualfield.io.compiling import compile as compiling

    paths = split_files(tmp_path, sentences(50), 2)
    expected = compile_corpus(paths, tmp_path / "expected", parts=3, seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "_built", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compile_corpus(paths, tmp_path / "out", parts=3)
    assert (tmp_path / ".out.compiling").exists()
    check_same_bytes(compile_corpus(paths, tmp_path / "out", parts=3, seed=1), expected)


def test_progress_is_told(tmp_path):
    seen = []
    compile_corpus(split_files(tmp_path, sentences(50), 2), tmp_path / "out", parts=3, progress=seen.append)
    assert [one.stage for one in seen] == sorted((one.stage for one in seen), key=["reading", "gathering"].index)
    for stage in ("reading", "gathering"):
        rows = [one for one in seen if one.stage == stage]
        assert rows[0].done == 0
        assert rows[-1].done == rows[-1].total > 0
    assert seen[-1].n_tokens == sum(map(len, sentences(50)))
