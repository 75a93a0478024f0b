"""A Python that has imported the library and forks for every program that tests start.

Importing it takes a second or two, which is longer than most programs run. A program gets a process of its own with its
own arguments, folder, environment and streams; only imports are those of the server. What tests of imports and of the
start itself need is a new Python.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import IO, Any

PROGRAM = "from dualfield.cli import main; main()"
SCRIPT = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
_LARGEST = 100_000  # bytes of a request: arguments and environment


def ask(path: str, source: str, argv: list[str], files: list[int]) -> tuple:
    """Have a program started in this folder with this environment, and return the connection; with it, its number."""
    import json
    import os
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    request = {"source": source, "argv": argv, "folder": os.path.realpath("."), "environment": dict(os.environ)}
    socket.send_fds(connection, [json.dumps(request).encode()], files)
    return connection, int(connection.recv(64))


class Process:
    """A program at work: as much of ``subprocess.Popen`` as tests use."""

    def __init__(self, connection: socket.socket, pid: int, stdout: IO[str], stderr: IO[str]) -> None:
        self.pid, self.stdout, self.stderr, self._connection = pid, stdout, stderr, connection

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing happens where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Return its exit code, minus a signal that has ended it."""
        with self._connection, self.stdout, self.stderr:
            return int(self._connection.recv(64))


class WarmPython:
    """The server; it ends with the process that has started it, or when it is closed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="warm"))
        self.path = str(self.folder / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.path)
            listener.listen()  # from now on programs can be asked for, and wait until it has imported everything
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.warm_python", str(listener.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                cwd=Path(__file__).parents[1],
                start_new_session=True,
            )

    def start(self, *arguments: str, source: str = PROGRAM) -> Process:
        """Start a program, the command line unless another source is given, with pipes to its outputs."""
        ends = [os.pipe(), os.pipe()]
        files = [os.open(os.devnull, os.O_RDONLY), *(end for _, end in ends)]
        connection, pid = ask(self.path, source, ["dualfield", *arguments], files)
        for file in files:
            os.close(file)
        return Process(connection, pid, *(os.fdopen(end, encoding="utf-8") for end, _ in ends))

    def command(self, name: str = "dualfield") -> Path:
        """Return the folder of a command of this name that asks for the command line and does what it does."""
        script = self.folder / "bin" / name
        if not script.exists():
            script.parent.mkdir(exist_ok=True)
            call = f"connection, _ = ask({self.path!r}, {PROGRAM!r}, sys.argv, [0, 1, 2])"
            end = "code = int(connection.recv(64))\nos.kill(os.getpid(), -code) if code < 0 else sys.exit(code)"
            script.write_text(
                "\n".join([f"#!{sys.executable} -IS", "import os, sys", inspect.getsource(ask), call, end])
            )
            script.chmod(0o755)
        return script.parent

    def close(self) -> None:
        """End the server; programs that are at work go on."""
        self._server.stdin.close()
        self._server.wait()
        shutil.rmtree(self.folder)


def _serve(listener: socket.socket) -> None:
    """Fork for every connection until the input ends, as it does when the one that has started this is gone."""
    import importlib
    import pkgutil
    import select

    import dualfield.cli

    for module in pkgutil.walk_packages(dualfield.__path__, "dualfield."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _wait_for_program(connection)
            os._exit(0)
        connection.close()


def _wait_for_program(connection: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, files, _, _ = socket.recv_fds(connection, _LARGEST, 3)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run(json.loads(text), files)
    for file in files:
        os.close(file)
    connection.send(str(pid).encode())
    _, status = os.waitpid(pid, 0)
    connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(request: dict[str, Any], files: list[int]) -> None:
    """Become a program, and end as it does."""
    import atexit
    import traceback

    for at, file in enumerate(files):
        os.dup2(file, at)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if "PYTHONWARNINGS" in os.environ:  # which Python looks at when it starts
        warnings.simplefilter(os.environ["PYTHONWARNINGS"])
    sys.argv, code, sys.modules["__main__"] = request["argv"], 0, types.ModuleType("__main__")
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")
    try:
        exec(compile(request["source"], "<program>", "exec"), vars(sys.modules["__main__"]))
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        sys.stderr.write(f"{error.code}\n" if isinstance(error.code, str) else "")
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
