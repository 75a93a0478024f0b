"""Files that are there whole or not at all: their modes, what killed writers leave, and what errors name."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys

import pytest

from dualfield import CRF
from dualfield.io import atomic_write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs modes and locks of files")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_the_mode_stays(tmp_path, mode):
    path = tmp_path / "a.model"
    path.write_text("old")
    path.chmod(mode)
    CRF().fit([[["a"], ["b"]]], [["x", "y"]]).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_nobody_else_sees_what_replaces_a_private_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_write(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"new")
    assert path.read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_the_owner_stays(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    os.chown(path, 12345, 12346)
    with atomic_write(path):
        pass
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


def test_a_new_file_has_the_mode_of_all_new_files(tmp_path):
    (tmp_path / "other").touch()
    with atomic_write(tmp_path / "a.txt"):
        pass
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "other").stat().st_mode


KILLED = """
import os, signal, sys
from dualfield.io import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_writers_leave_is_removed_by_the_next_one(tmp_path):
    path = tmp_path / "a.txt"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert len(names(tmp_path)) == 1  # the second has removed what the first one left
    (tmp_path / ".b.txt.0123456789ab.part").touch()  # of another file
    (tmp_path / ".a.txt.notes.part").touch()  # not ours
    with atomic_write(path) as file:
        file.write(b"whole")
    assert names(tmp_path) == [".a.txt.notes.part", ".b.txt.0123456789ab.part", "a.txt"]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_what_others_have_left_is_left_alone(tmp_path):
    theirs, link = tmp_path / ".a.txt.0123456789ab.part", tmp_path / ".a.txt.ba9876543210.part"
    theirs.touch()
    os.chown(theirs, 12345, 12346)
    link.symlink_to(tmp_path / "elsewhere")
    with atomic_write(tmp_path / "a.txt") as file:
        file.write(b"whole")
    assert names(tmp_path) == [theirs.name, link.name, "a.txt"]


def test_writers_at_work_are_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    with atomic_write(path) as first:
        first.write(b"first")
        with atomic_write(path) as second:
            second.write(b"second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert names(tmp_path) == ["a.txt"]


AT_WORK = """
import sys
from dualfield.io import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"first")
    print("at work", flush=True)
    sys.stdin.readline()
"""


def test_writers_in_other_processes_are_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    command = [sys.executable, "-c", AT_WORK, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "at work\n"
        with atomic_write(path) as second:
            second.write(b"second")
        assert path.read_text() == "second"
        assert len(names(tmp_path)) == 2  # what the other process writes is still there
        other.communicate("go on\n")
    assert other.returncode == 0
    assert path.read_text() == "first"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_that_was_removed_before_its_lock_is_opened_anew(tmp_path, monkeypatch):
    from dualfield.io import atomic

    real, gone = atomic._lock, []

    def late(handle, *, wait):
        if wait and not gone:
            gone.extend(tmp_path.iterdir())
            gone[0].unlink()
        return real(handle, wait=wait)

    monkeypatch.setattr(atomic, "_lock", late)
    with atomic_write(tmp_path / "a.txt") as file:
        file.write(b"there")
    assert gone
    assert (tmp_path / "a.txt").read_text() == "there"


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space") as caught, atomic_write(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "no" / "a.txt"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "a.txt")
    with pytest.raises(OSError, match="other") as caught, atomic_write(path):
        raise OSError(errno.EIO, "Input/output error", "other.txt")  # of what is read meanwhile
    assert caught.value.filename == "other.txt"
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]
