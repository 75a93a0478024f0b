"""What all sub-commands share: quick to start, errors of one line, exit codes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import click
import pytest

from dualfield import __version__
from dualfield.cli import main
from dualfield.cli.program import Program, described

HEAVY = ("sklearn", "scipy", "numpy", "rich", "matplotlib")


def commands():
    context = click.Context(main)
    return {name: main.get_command(context, name) for name in main.list_commands(context)}


def help_of(name):
    """Return the help of a command, or of the program, for the terminal that the variable COLUMNS describes."""
    context = main.make_context("dualfield", [], resilient_parsing=True)
    if name is None:
        return context.get_help()
    return commands()[name].make_context(name, [], parent=context, resilient_parsing=True).get_help()


def test_the_listed_lines_are_those_of_the_commands():
    assert main.lines == {name: command.get_short_help_str(limit=200) for name, command in commands().items()}


def test_all_commands_are_there():
    assert set(commands()) == {
        *(
            "train",
            "tune",
            "tag",
            "rank",
            "evaluate",
            "inspect",
            "compile",
            "convert",
            "template",
            "doctor",
            "completion",
            "demo",
        )
    }


@pytest.mark.parametrize("name", [None, *commands()])
@pytest.mark.parametrize(("columns", "width"), [(200, 100), (80, 80), (60, 60), (52, 52), (20, 52)])
def test_help_fits_a_terminal(name, columns, width, monkeypatch):
    """Lines are at most as long as the terminal, 100 on wide ones, and break between words; examples stay whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text = help_of(name)
    lines = re.split(r"^Examples?:", text, flags=re.M)[0].splitlines()
    assert max(map(len, lines)) <= width
    monkeypatch.setenv("COLUMNS", "200")
    wide = help_of(name)
    assert "".join(text.split()) == "".join(wide.split())  # nothing is lost
    assert {word for word in text.split() if "|" not in word} - {*wide.split()} <= {
        "tokens]",
        "conllu]",
        "dependency]",
        "json]",
        "iobes]",
        "any]",
        "dualfield]",
    }


@pytest.mark.parametrize("name", commands())
def test_help_has_examples_that_the_command_takes(shell, name):
    _, _, shown = re.split(r"^(Examples?:)", shell(name, "--help").stdout, flags=re.M)
    examples = [line.strip() for line in shown.splitlines() if line.strip()]
    assert examples
    texts = ("train.txt", "dev.txt", "test.txt", "letter.txt", "chunks.model", "names.model")
    for file in (
        *texts,
        "train.conllu",
        "treebank.mrg",
        "test.mrg",
        "parser.model",
        "graphs.jsonl",
        "dev.jsonl",
        "new.jsonl",
        "graphs.model",
        "corpus/a.gz",
        "out/corpus.json",
    ):
        shell.write(file, "")
    for example in examples:
        assert len(example) <= 78
        _, command, *arguments = shlex.split(example.partition(" > ")[0].partition(" | ")[0])
        commands()[command].make_context(command, arguments)  # raises an error about options and files
        assert f"dualfield {name}" in example


def test_every_option_is_in_one_section():
    for name, command in commands().items():
        sections = getattr(command, "sections", {})
        listed = [option for options in sections.values() for option in options]
        assert len(set(listed)) == len(listed), name
        options = {param.name for param in command.params if isinstance(param, click.Option) and not param.hidden}
        assert not sections or options <= set(listed), name
        assert sections or len(options) <= 5, f"the options of {name} are too many for one section"


def test_every_command_is_in_one_group(shell):
    listed = [name for names in main.groups.values() for name in names]
    assert len(set(listed)) == len(listed)
    assert set(commands()) <= set(listed)
    text = shell("--help").stdout
    places = [text.index(f"\n{title}:") for title in main.groups]
    assert places == sorted(places)
    assert "Commands:" not in text


def imported(statements, names):
    """Return which of the modules another process has imported after some statements."""
    script = f"import sys, json\n{statements}\nprint(json.dumps([name for name in {names!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def calling(arguments):
    call = f"try:\n    main({arguments!r})\nexcept SystemExit as end:\n    assert not end.code"
    return f"from dualfield.cli import main\n{call}"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["train", "--help"], ["tag", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    assert imported(calling(arguments), HEAVY) == []


def test_the_package_imports_nothing_heavy():
    assert imported("import dualfield", HEAVY) == []


# scikit-learn alone takes five times as long as NumPy and SciPy's sparse matrices together.
NOT_FOR_TAGGING = (
    *("sklearn", "joblib", "threadpoolctl", "rich", "matplotlib", "pandas", "scipy.linalg", "scipy.optimize"),
    *("scipy.stats", "scipy.special", "scipy.sparse.csgraph", "dualfield.estimators", "dualfield.solvers"),
)


@pytest.mark.parametrize("options", [[], ["--mmap"], ["--marginals", "all"], ["--k-best", "2"]], ids="".join)
def test_tagging_imports_what_it_uses(trained, options):
    arguments = ["tag", "--model", str(trained.path("chunks")), *options, str(trained.path("dev.txt"))]
    assert imported(calling(arguments), NOT_FOR_TAGGING) == []


def test_version(shell):
    assert shell("--version").stdout == f"dualfield, version {__version__}\n"


def test_the_package_is_the_program():
    """Also for its exit codes, and in a process where the script is not on the path."""

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "dualfield", *arguments], capture_output=True, text=True)

    assert run("--version").stdout == f"dualfield, version {__version__}\n"
    wrong = run("trian")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("Usage: python -m dualfield [OPTIONS]")


def test_unknown_command_is_wrong_usage(shell):
    assert "No such command 'trian'" in shell("trian", code=2).stderr


def program(action):
    """Return a program with one sub-command that does something."""

    class Alone(Program):
        def get_command(self, ctx, cmd_name):
            return click.Command("go", callback=action)

    params = [click.Option(["--traceback"], is_flag=True)]
    return Alone(name="alone", lines={"go": "Go."}, params=params)


def run(action, *arguments):
    from click.testing import CliRunner

    return CliRunner().invoke(program(action), [*arguments, "go"])


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("a\n  b"), 1, "Error: a b\n"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 1, "Error: x.txt: No such file or directory\n"),
        (PermissionError(13, "Permission denied"), 1, "Error: Permission denied\n"),
        (OSError("it is a folder"), 1, "Error: it is a folder\n"),
        (MemoryError(), 1, "Error: There is not enough memory for this.\n"),
        (click.UsageError("so not"), 2, "so not\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted.\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
    ids=["value", "missing", "permission", "os", "memory", "usage", "interrupt", "pipe"],
)
def test_exit_codes_and_lines(error, code, said):
    result = run(raising(error))
    assert result.exit_code == code
    assert result.stderr.endswith(said)
    assert "Traceback" not in result.output
    assert bool(said) == bool(result.stderr)


def test_a_fault_of_ours_asks_for_a_report():
    result = run(raising(KeyError("gone")))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: KeyError: 'gone'. This should not happen")
    assert len(result.stderr.splitlines()) == 1


def test_traceback_on_demand():
    result = run(raising(KeyError("gone")), "--traceback")
    assert isinstance(result.exception, KeyError)


def test_success_and_explicit_exit():
    assert run(lambda: None).exit_code == 0
    assert run(lambda: click.get_current_context().exit(7)).exit_code == 7


def test_programs_that_call_it_get_exceptions():
    with pytest.raises(click.ClickException, match="wrong"):
        program(raising(ValueError("wrong"))).main(["go"], standalone_mode=False)


def test_described_names_bytes_paths():
    assert described(FileNotFoundError(2, "No such file", b"x")) == "x: No such file"


def test_names_are_completed_without_an_import():
    context = click.Context(main)
    items = main.shell_complete(context, "t")
    assert [(item.value, item.help) for item in items] == [
        (name, main.lines[name]) for name in ("train", "tune", "tag", "template")
    ]
