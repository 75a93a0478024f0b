"""Model files as bytes: what is written comes back, and what was not written so is refused."""

import json
import os
import signal
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy

from dualfield.io import atomic_write
from dualfield.persistence import ModelFileError, read_model_header
from dualfield.persistence.file import open_model, write_model
from dualfield.persistence.header import LONGEST_HEADER, compose_header, digest_of

ARRAYS = {
    "doubles": np.array([[0.5, -np.inf], [np.nan, 1e-300]]),
    "singles": np.array([1.5, 2.5], np.float32),
    "halves": np.array([1.5], np.float16),
    "bools": np.array([True, False, True]),
    "none": np.zeros((0, 3), np.int32),
    "one": np.array(7, np.int64),
    **{kind.__name__: np.array([0, 1, 100], kind) for kind in (np.int8, np.uint8, np.int16, np.uint16, np.uint32)},
    "big": np.array([2**64 - 1], np.uint64),
}
METADATA = {
    "estimator": "none",
    "numbers": [float("inf"), float("-inf"), 0.1, -0.0, 3],
    "text": 'é"\\\ud800\0 "',
    "no": None,
}


@pytest.fixture
def path(tmp_path):
    write_model(tmp_path / "a.model", METADATA | ARRAYS)
    return tmp_path / "a.model"


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_what_is_written_comes_back(path, mmap):
    file = open_model(path, mmap=mmap)
    record = file.record
    for name, value in METADATA.items():
        assert file.metadata[name] == value
        record.json(name)
    for name, array in ARRAYS.items():
        found = record.array(name, array.dtype, array.shape)
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert found.tobytes() == array.tobytes()
        assert found.ctypes.data % found.itemsize == 0
        assert found.flags.writeable != mmap
    record.check_all_read()


def test_nan_in_metadata_comes_back(tmp_path):
    write_model(tmp_path / "a.model", {"gap": float("nan")})
    assert np.isnan(read_model_header(tmp_path / "a.model")["gap"])


def test_other_programs_can_read_it(path):
    found = safetensors.numpy.load_file(path)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].tobytes() == array.tobytes()
    with safetensors.safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["dualfield"])["format"] == "dualfield-model"


def test_arrays_of_any_layout_are_written_alike(tmp_path, path):
    strange = {name: np.asarray(array, order="F") for name, array in ARRAYS.items()}
    strange["big"] = strange["big"].astype(">u8")
    write_model(tmp_path / "b.model", METADATA | dict(reversed(strange.items())))
    assert (tmp_path / "b.model").read_bytes() == path.read_bytes()


# Writing.


def test_a_file_is_replaced_when_the_new_one_is_complete(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.writelines([b"half", None])
    assert path.read_text() == "new"
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_is_followed_and_the_mode_is_the_usual_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "a.txt")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a.txt").read_text() == "new"
    (tmp_path / "plain").touch()
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_folders_and_devices_are_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass
    with pytest.raises(OSError, match="is not a regular file"), atomic_write("/dev/null"):
        pass
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "no" / "a.txt"):
        pass
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
import numpy as np
import dualfield.persistence.file as model_file

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

model_file.safe_open = killed  # all bytes are written by then, and nothing is renamed
model_file.write_model(sys.argv[1], {"estimator": "new", "weights": np.zeros(100_000)})
"""


def test_killed_while_it_writes_it_leaves_the_old_file(path):
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    left = [found for found in path.parent.iterdir() if found != path]
    assert len(left) == 1  # what it had written, beside the place of the model
    assert left[0].stat().st_size > 800_000
    write_model(path, {})
    assert read_model_header(path)["format_version"] == 2


def test_metadata_that_could_not_be_read_again_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="more than 16777216"):
        write_model(tmp_path / "a.model", {"text": "x" * LONGEST_HEADER})
    assert list(tmp_path.iterdir()) == []


# Refusing.


def forged(metadata=None, arrays=ARRAYS, text=None, outer=None):
    """Bytes of a file with agreeing digests; `text` and `outer` change JSON texts on the way."""
    header, order = compose_header({**METADATA, **(metadata or {})}, arrays)
    data = b"".join(arrays[name].tobytes() for name in order)
    content = json.loads(header)
    if text is not None:
        inner = text(content["__metadata__"]["dualfield"])
        content["__metadata__"] = {"dualfield": inner, "digest": digest_of(inner.encode("utf-8", "surrogatepass"))}
    whole = json.dumps(content, separators=(",", ":"))
    whole = whole if outer is None else outer(whole)
    header = whole.encode()
    header += b" " * (-(8 + len(header)) % 64)
    return struct.pack("<Q", len(header)) + header + data


def edited(change):
    def text(old):
        content = json.loads(old)
        change(content)
        return json.dumps(content, separators=(",", ":"))

    return text


def set_tensor(name, **changes):
    return edited(lambda content: content["tensors"][name].update(changes))


REFUSED = {
    "nothing": (b"", "is cut off: it has 0 bytes, fewer than the 8"),
    "seven bytes": (b"\0" * 7, "is cut off: it has 7 bytes"),
    "text": (b"U00:%x[0,0]\nB\n", "is not a model file of dualfield: its first 8 bytes, b'U00:%x[0', are not"),
    "zeros": (bytes(100), "is not a model file of dualfield, or altered: its header cannot be read"),
    "huge header": (struct.pack("<Q", 2**63) + b"{}", "are not the length of a header, which is at most 16777216"),
    "long header": (struct.pack("<Q", 100) + b"{}", "is cut off: it has 10 bytes, and its header alone 100"),
    "list": (forged(outer=lambda _: "[]"), "its header is no JSON object"),
    "not JSON": (forged(outer=lambda old: old[:-1]), "its header cannot be read"),
    "not UTF-8": (struct.pack("<Q", 2) + b"\xff\xfe", "its header cannot be read"),
    "deep header": (forged(outer=lambda _: "[" * 100_000), "its header cannot be read: it is nested too deep"),
    "deep metadata": (forged(text=lambda _: '{"a":' * 100_000), "its metadata cannot be read: it is nested too deep"),
    "key twice": (forged(outer=lambda old: old[:-1] + ',"big":1}'), "a key occurs twice"),
    "key twice in metadata": (forged(text=lambda old: old[:-1] + ',"format":"x"}'), "a key occurs twice"),
    "NaN": (forged(text=lambda old: old[:-1] + ',"x":NaN}'), "NaN is not JSON"),
    "no such float": (forged(text=lambda old: old[:-1] + ',"x":{"float":"1"}}'), "'1' is no number"),
    "long number": (forged(text=lambda old: old[:-1] + ',"x":' + "1" * 5000 + "}"), "its metadata cannot be read"),
    "safetensors of others": (
        safetensors.numpy.save({"weights": np.zeros(3)}, {"format": "pt"}),
        "is not a model file of dualfield: its header has no entry for it",
    ),
    "other format": (forged({"format": "flowers"}), "its format is 'flowers'"),
    "newer": (
        forged({"format_version": 3, "dualfield_version": "3.1"}),
        "was written by a newer dualfield, '3.1', in format 3. This one reads format 2: upgrade dualfield",
    ),
    "older": (
        forged({"format_version": 1, "dualfield_version": "0.1"}),
        "was written by an older dualfield, '0.1', in format 1, which this one does not read: fit the model again",
    ),
    "array in another": (forged({"a": [1]}, {"a.0": np.zeros(1)}), "it has an array 'a.0', no part of such a model"),
    "array twice": (forged({"a": {"b": 1}}, {"a.b": np.zeros(1)}), "it has an array 'a.b', no part of such a model"),
    "array nowhere": (forged({}, {"a.b.c": np.zeros(1)}), "it has an array 'a.b.c', no part of such a model"),
    "array beyond a list": (forged({"a": [{}]}, {"a.1.b": np.zeros(1)}), "it has an array 'a.1.b', no part of such"),
    "version zero": (forged({"format_version": 0}), "format_version must be an int of at least 1. Got 0"),
    "version true": (forged({"format_version": True}), "format_version must be an int of at least 1. Got True"),
    "no tensors": (forged(text=edited(lambda content: content.pop("tensors"))), "do not list its arrays"),
    "tensor without digest": (
        forged(text=edited(lambda content: content["tensors"]["one"].pop("digest"))),
        "array 'one' must have dtype, shape and digest",
    ),
    "unknown type": (forged(text=set_tensor("one", dtype="C64")), "has type 'C64'; known are F64, "),
    "type that is no text": (forged(text=set_tensor("one", dtype=["F64"])), "has type"),
    "negative size": (forged(text=set_tensor("one", shape=[-1])), "must have a shape of sizes. Got [-1]"),
    "size that is no int": (forged(text=set_tensor("one", shape=[1.0])), "must have a shape of sizes. Got [1.0]"),
    "too many sizes": (forged(text=set_tensor("one", shape=[1] * 9)), "must have a shape of sizes"),
    "huge shape": (forged(text=set_tensor("one", shape=[2**61, 2**61])), "its header does not agree"),
    "other shape": (forged(text=set_tensor("doubles", shape=[4])), "its header does not agree"),
    "other type": (forged(text=set_tensor("singles", dtype="I32")), "its header does not agree"),
    "moved": (
        forged(outer=lambda old: old.replace('"data_offsets":[0,8]', '"data_offsets":[8,16]')),
        "its header does not agree",
    ),
    "blank in the header": (forged(outer=lambda old: "{ " + old[1:]), "its header does not agree"),
    "not aligned": (
        forged(text=edited(lambda content: content["tensors"].update(z={"dtype": "F64", "shape": [], "digest": ""}))),
        "array 'z' does not lie where its type must",
    ),
    "metadata without digest": (
        forged(outer=lambda old: old.replace('"digest":"', '"digest":"0', 1)),
        "its metadata do not agree with their digest",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unsound_file_is_refused(tmp_path, name):
    data, message = REFUSED[name]
    path = tmp_path / "bad.model"
    path.write_bytes(data)
    for mmap in (False, True):
        with pytest.raises(ModelFileError) as error:
            open_model(path, mmap=mmap)
        assert str(error.value).startswith(f"{path} ")
        assert message in str(error.value)
        assert len(str(error.value)) < 500 + len(str(path))
    with pytest.raises(ModelFileError):
        read_model_header(path)


def test_the_forger_can_write_sound_files(tmp_path, path):
    (tmp_path / "forged.model").write_bytes(forged(text=lambda old: old, outer=lambda old: old))
    assert (tmp_path / "forged.model").read_bytes() == path.read_bytes()


def test_every_cut_is_refused(path):
    data = path.read_bytes()
    for size in {*range(0, len(data), 11), *range(16), *range(len(data) - 16, len(data))}:
        path.write_bytes(data[:size])
        with pytest.raises(ModelFileError, match=r"is cut off|changed"):
            open_model(path, mmap=bool(size % 2))
    path.write_bytes(data + b"\0")
    with pytest.raises(ModelFileError, match=r"is altered: it has .* bytes; its header describes"):
        open_model(path)


def test_altered_arrays_are_refused_when_they_are_read(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"the bytes of array '\w+' do not agree with their digest"):
        open_model(path)
    file = open_model(path, mmap=True)
    file.record.array("doubles")
    with pytest.raises(ModelFileError, match=r"the bytes of array '\w+' do not agree with their digest"):
        file.verify()


def test_bools_are_zero_or_one(tmp_path):
    arrays = {"flags": np.array([0, 2], np.uint8)}
    header, _ = compose_header({}, arrays)
    text = header.decode().replace("U8", "BOOL").rstrip()
    inner = json.loads(text)["__metadata__"]["dualfield"]
    text = text.replace(json.loads(text)["__metadata__"]["digest"], digest_of(inner.encode()))
    padded = text.encode() + b" " * (-(8 + len(text)) % 64)
    (tmp_path / "a.model").write_bytes(struct.pack("<Q", len(padded)) + padded + b"\0\2")
    with pytest.raises(ModelFileError, match=r"array 'flags' must have bytes 0 and 1. Got 2"):
        open_model(tmp_path / "a.model")


def test_arrays_must_be_what_is_expected(path):
    file = open_model(path).record
    with pytest.raises(ModelFileError, match="has no array 'weights'"):
        file.array("weights")
    with pytest.raises(ModelFileError, match=r"array 'doubles' must be of type float32. Got float64"):
        file.array("doubles", np.float32)
    with pytest.raises(ModelFileError, match=r"array 'doubles' must have shape \(any, 3\). Got \(2, 2\)"):
        file.array("doubles", np.float64, (None, 3))
    with pytest.raises(ModelFileError, match=r"array 'doubles' must have shape \(4\)"):
        file.array("doubles", np.float64, (4,))
    with pytest.raises(ModelFileError, match="it has an entry 'big', no part of such a model"):
        open_model(path).record.check_all_read()


def test_nothing_is_allocated_for_what_a_file_only_claims(tmp_path):
    """A header that promises terabytes; the file is as long as it says, but has a hole instead of data."""
    header, _ = compose_header({}, {"weights": np.zeros(1)})
    text = header.decode().rstrip().replace("[1]", f"[{2**37}]").replace("[0,8]", f"[0,{2**40}]")
    text = text.replace('\\"shape\\":[1]', f'\\"shape\\":[{2**37}]')
    inner = json.loads(text)["__metadata__"]["dualfield"]
    text = text.replace(json.loads(text)["__metadata__"]["digest"], digest_of(inner.encode()))
    padded = text.encode() + b" " * (-(8 + len(text)) % 64)
    path = tmp_path / "big.model"
    path.write_bytes(struct.pack("<Q", len(padded)) + padded)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="is cut off"):
        open_model(path)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()
    try:
        os.truncate(path, 8 + len(padded) + 2**40)
    except OSError:
        return  # a file system without such files: there is nothing more to see
    assert open_model(path, mmap=True).record.shape("weights") == (2**37,)


def test_what_is_no_file_is_no_model(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_model(tmp_path / "no.model")
    with pytest.raises(ModelFileError, match="is not a regular file"):
        open_model(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is not a regular file"):
        open_model(tmp_path / "pipe")


@pytest.mark.parametrize("shape", [[0, 2**61], [2**61, 0], [2**40, 0, 2**40]])
def test_empty_arrays_with_endless_sides(tmp_path, shape):
    """They take no bytes, and NumPy cannot make them."""
    from dualfield.persistence import header as model_header

    tensor = {"dtype": "F64", "shape": shape, "digest": digest_of(b"")}
    text = json.dumps({"format": "dualfield-model", "format_version": 2, "tensors": {"x": tensor}})
    places = {"x": model_header.Tensor(np.dtype(np.float64), tuple(shape), digest_of(b""), 0, 0)}
    header = model_header._header(text, places)
    path = tmp_path / "a.model"
    path.write_bytes(model_header.LENGTH.pack(len(header)) + header)
    for mmap in (False, True):
        with pytest.raises(ModelFileError, match=r"array 'x' is too large. Its shape is"):
            open_model(path, mmap=mmap)
