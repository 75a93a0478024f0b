"""Programs that are interrupted while a fit shows that it is at work, however they were started."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

LIMIT = 600.0  # seconds; a machine may be busy
BEGIN = "BEGIN"

# Whoever starts the tests may have chosen to ignore Ctrl-C, as nohup and shells in the background do, and programs
# inherit that.
LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
IGNORES = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def interrupted(script: str, listens: bool = True) -> Any:
    """Run a script that prints BEGIN before each fit, progress, and a line of JSON at the end, which is returned.

    SIGINT is sent once for each fit, as soon as it reports progress.
    """
    program = (LISTENS if listens else IGNORES) + textwrap.dedent(script)
    arguments = [sys.executable, "-u", "-c", program]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(LIMIT, process.kill)
        watchdog.start()
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
        reader.start()
        armed, line = False, ""
        for line in process.stdout:
            armed = armed or line.strip() == BEGIN
            if armed and ": pass " in line:
                process.send_signal(signal.SIGINT)
                armed = False
        process.wait()
        watchdog.cancel()
        reader.join()
    assert process.returncode == 0, errors[0][-2000:]
    return json.loads(line)
