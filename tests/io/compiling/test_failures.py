"""What is wrong is said in one sentence that names file and line, and nothing half-written is taken for a corpus."""

from __future__ import annotations

import errno
import gzip
import json
import pickle
import shutil

import numpy as np
import pytest

from dualfield.data import CompiledCorpus, CorpusFileError
from dualfield.data.compiled import array_file
from dualfield.io import compile_corpus
from dualfield.io.compiling import disk_space, text_chunks
from tests.io.compiling.test_equal_to_whole import sentences, split_files


def lines_of(n):
    return "".join(f"w{k} t{k % 3} L{k % 2}\n" + "\n" * (k % 5 == 4) for k in range(n))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\nc d e\n", r"bad.txt, line 2: has 3 columns; the first row, in line 1, has 2\."),
        ("\na b\n\nc\n", r"bad.txt, line 4: has 1 column; the first row, in line 2, has 2\."),
        ("a b\nc\rd e\n", r"bad.txt, line 2: has a carriage return without a line feed"),
        ("only\n", r"bad.txt, line 1: has 1 column; expected 2 or more"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(text.encode())
    with pytest.raises(ValueError, match=message):
        compile_corpus(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_errors_count_lines_through_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(text_chunks.text_chunks, "__defaults__", ("utf-8", 100))
    path = tmp_path / "bad.txt"
    text = lines_of(60)
    path.write_text(text + "one two\n")
    with pytest.raises(ValueError, match=rf"bad.txt, line {text.count(chr(10)) + 1}: has 2 columns"):
        compile_corpus(path, tmp_path / "out")
    path.write_bytes(text.encode() + b"a b \xff\n")
    with pytest.raises(ValueError, match=rf"line {text.count(chr(10)) + 1}: cannot be read as utf-8: byte 5"):
        compile_corpus(path, tmp_path / "out")


def test_a_file_with_other_columns_or_cut_off_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("x y L\n")
    (tmp_path / "b.txt").write_text("x L\n")
    with pytest.raises(ValueError, match=r"b\.txt, line 1: has 2 columns"):
        compile_corpus([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "out")
    whole = gzip.compress(lines_of(4000).encode())
    (tmp_path / "c.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"c\.txt\.gz, after line \d+: the compressed file is damaged or cut off"):
        compile_corpus(tmp_path / "c.txt.gz", tmp_path / "out")


def test_items_name_the_line(tmp_path):
    (tmp_path / "items.txt").write_text("L\ta\n\nL\tb:x\n")
    with pytest.raises(ValueError, match=r"items\.txt, line 3: the weight of 'b' must be a finite number"):
        compile_corpus(tmp_path / "items.txt", tmp_path / "out", form="crfsuite")


def test_nothing_to_read(tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ValueError, match=r"empty\.txt: empty; expected sentences in columns"):
        compile_corpus(tmp_path / "empty.txt", tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"nowhere\*: there is no such file"):
        compile_corpus(str(tmp_path / "nowhere*"), tmp_path / "out")
    with pytest.raises(ValueError, match="at least one file"):
        compile_corpus([], tmp_path / "out")


@pytest.mark.parametrize(
    ("parameter", "value"), [("parts", 0), ("parts", 2.5), ("seed", -1), ("n_jobs", 0), ("n_jobs", True)]
)
def test_parameters_are_checked(tmp_path, parameter, value):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of compile_corpus must be an int in"):
        compile_corpus([([], [])], tmp_path / "out", **{parameter: value})


def test_numbers_are_refused(tmp_path):
    with pytest.raises(TypeError, match="X must have items given by attributes"):
        compile_corpus([([np.ones((2, 3))], [["x", "y"]])], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def corpus(tmp_path):
    return compile_corpus(split_files(tmp_path, sentences(40), 2), tmp_path / "out", parts=3)


def test_a_target_that_is_there(tmp_path, corpus):
    data = tmp_path / "part0.txt.gz"
    with pytest.raises(FileExistsError, match="is a compiled corpus already"):
        compile_corpus(data, corpus.path)
    again = compile_corpus(data, corpus.path, parts=2, overwrite=True)
    assert again.n_examples == 20
    (tmp_path / "folder").mkdir()
    assert compile_corpus(data, tmp_path / "folder").n_examples == 20
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="is not empty, and not a compiled corpus"):
            compile_corpus(data, tmp_path / "other", overwrite=overwrite)
    assert (tmp_path / "other" / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize("name", ["part-00001.bin", "vocabulary.bin", "counts.bin", "blocks.bin", "transitions.bin"])
def test_damaged_files_are_refused(corpus, name):
    path = corpus.path / name
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    with pytest.raises(CorpusFileError, match=rf"{name} is cut off or altered: it has .* bytes; .* were written"):
        CompiledCorpus(corpus.path)
    path.write_bytes(content[:64] + bytes([content[64] ^ 1]) + content[65:])
    with pytest.raises(CorpusFileError, match=rf"{name} is altered: the bytes of"):
        CompiledCorpus(corpus.path).verify()
    path.write_bytes(content[:-15] + bytes([content[-15] ^ 1]) + content[-14:])
    with pytest.raises(CorpusFileError, match=rf"{name} is altered, or belongs to another corpus"):
        CompiledCorpus(corpus.path)
    path.unlink()
    with pytest.raises(CorpusFileError, match=rf"{name} is missing"):
        CompiledCorpus(corpus.path)


def test_headers_are_checked(corpus):
    path = corpus.path / "corpus.json"
    content = path.read_text()
    path.write_text(content.replace('"n_parts": 3', '"n_parts": 4'))
    with pytest.raises(CorpusFileError, match="does not agree with its digest"):
        CompiledCorpus(corpus.path)
    path.write_text(content.replace('"format_version": 1', '"format_version": 99'))
    with pytest.raises(CorpusFileError, match="has format version 99; this version of dualfield reads 1"):
        CompiledCorpus(corpus.path)
    path.write_text(content[: len(content) // 2])
    with pytest.raises(CorpusFileError, match="is cut off or altered"):
        CompiledCorpus(corpus.path)
    path.write_text(json.dumps({"format": "something else"}) + "\n0\n")
    with pytest.raises(CorpusFileError, match="is not the header of a compiled corpus"):
        CompiledCorpus(corpus.path)
    shutil.rmtree(corpus.path)
    with pytest.raises(CorpusFileError, match=r"is not a compiled corpus.*There is no such folder"):
        CompiledCorpus(corpus.path)


def test_the_working_directory_may_change(tmp_path, corpus, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = CompiledCorpus("out")
    monkeypatch.chdir("/")
    relative.verify()
    assert relative.part(1).nodes.n_examples > 0
    assert pickle.loads(pickle.dumps(relative)).path == corpus.path


@pytest.mark.parametrize("which", ["block", "part"])
def test_there_is_no_such_block(corpus, which):
    size = corpus.n_blocks if which == "block" else corpus.n_parts
    for at in (-1, size):
        with pytest.raises(IndexError, match=rf"'{which}' must be an int in \[0, {size}\)"):
            getattr(corpus, which)(at)
    for wrong in (True, 1.0, "0"):
        with pytest.raises(TypeError, match=rf"'{which}' must be an int in \[0, {size}\)\. Got {wrong!r} instead"):
            getattr(corpus, which)(wrong)
    assert getattr(corpus, which)(np.int64(0)).nodes.n_examples > 0


def test_too_little_disk_space_is_said_before(tmp_path, monkeypatch):
    path = split_files(tmp_path, sentences(40), 1)[0]
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(OSError, match=r"compiling takes about .* on this disk") as caught:
        compile_corpus(path, tmp_path / "out")
    assert caught.value.errno == errno.ENOSPC
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("n_written", [0, 1, 4, 9])
def test_a_full_disk_is_one_sentence_and_work_goes_on(tmp_path, monkeypatch, n_written):
    monkeypatch.setattr(text_chunks.text_chunks, "__defaults__", ("utf-8", 1000))
    paths = split_files(tmp_path, sentences(200), 2)
    expected = compile_corpus(paths, tmp_path / "expected", parts=3)
    left = [n_written]
    replace = array_file.Path.replace

    def full(self, target):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(array_file.Path, "replace", full)
        with pytest.raises(OSError, match=r"the disk is full.*What is finished is kept"):
            compile_corpus(paths, tmp_path / "out", parts=3)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.rglob("*.part"))
    check_same_bytes(compile_corpus(paths, tmp_path / "out", parts=3), expected)
    assert not (tmp_path / ".out.compiling").exists()


def check_same_bytes(corpus, expected):
    names = sorted(path.name for path in expected.path.iterdir())
    assert sorted(path.name for path in corpus.path.iterdir()) == names
    for name in names:
        assert (corpus.path / name).read_bytes() == (expected.path / name).read_bytes(), name
