"""Run a command that takes minutes and show that it is alive: one line of what it does, or its output if it fails.

python show_progress.py TITLE COMMAND [ARGUMENT ...]
"""

import collections
import re
import subprocess
import sys
import time

# What pip, CMake and ninja say at each step.
STEP = re.compile(r"\s*(?:(?P<count>\[\d+/\d+\]) (?P<what>.*)|(?:Collecting|Downloading|Configuring|\*\*\*) )")
WIDTH = 76  # columns, beside two spaces
QUIET_SECONDS = 10.0  # between lines where there is no terminal


def described(line: str) -> str:
    """Return what a line says about progress, in one line of a terminal; nothing if it says nothing."""
    step = STEP.match(line)
    if step is None:
        return ""
    if step["count"]:
        return f"{step['count']} {step['what'].rsplit('/', 1)[-1].removesuffix('.o')}"[:WIDTH]
    return line.strip(" *\n")[:WIDTH]


def main(title: str, *command: str) -> int:
    """Show the title, then steps: on a terminal in one line, elsewhere a line now and then; return the exit code."""
    begin = shown = time.monotonic()
    print(f"{title} ...", flush=True)
    in_place = sys.stdout.isatty()
    last: collections.deque[str] = collections.deque(maxlen=200)
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, **pipe) as run:
        for line in run.stdout or ():
            last.append(line)
            step = described(line)
            if step and in_place:
                print(f"\r\x1b[2K  {step}", end="", flush=True)
            elif step and time.monotonic() - shown > QUIET_SECONDS:
                shown = time.monotonic()
                print(f"  {step}", flush=True)
    if in_place:
        print("\r\x1b[2K", end="")
    if run.returncode:
        print("".join(last), end="", flush=True)
    else:
        print(f"  done in {time.monotonic() - begin:.0f} s", flush=True)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
