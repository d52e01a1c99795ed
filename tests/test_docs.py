"""The code of every page runs as it stands, and its commands exist."""

import functools
import importlib.util
import re
import runpy
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.pages import PAGES, ROOT, blocks, inline_commands, languages, run_python, shell_commands

README = ROOT / "README.md"  # test_readme.py runs its Python blocks
WITH_PYTHON = [page for page in PAGES if blocks(page, "python") and page != README]
WITH_SHELL = [page for page in PAGES if blocks(page, "sh") or inline_commands(page)]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def name(page):
    return str(page.relative_to(ROOT))


def beside_others(page):
    """Return a page for a test, in one process with the other tests that start joblib's workers."""
    starts = "n_jobs=2" in "".join(blocks(page, "python"))
    return pytest.param(page, marks=pytest.mark.xdist_group("workers")) if starts else page


@pytest.mark.usefixtures("few_penalties")
@pytest.mark.parametrize("page", [beside_others(page) for page in WITH_PYTHON], ids=name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    for package in ("sktime", "dask", "mne", "wfdb"):
        if package in "".join(blocks(page, "python")):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    assert run_python(page)


def test_the_page_of_files_runs_again_where_it_ran(tmp_path, monkeypatch):
    """It writes files, which the blocks of a second run must neither read as data nor refuse."""
    pytest.importorskip("mne")
    pytest.importorskip("wfdb")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert run_python(ROOT / "docs" / "guide" / "files.md")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_python_or_shell(page):
    """A block with another mark would not be run; test_site.py reads the one in BibTeX."""
    assert set(languages(page)) <= {"python", "sh", "bibtex"}


@functools.cache
def help_of_dask(name):
    """Return what a command of Dask's prints on itself; another process would import it all."""
    testing, cli = pytest.importorskip("click.testing"), pytest.importorskip("dask.cli")
    (entry,) = entry_points(group="dask_cli", name=name)
    cli._register_command_ep(cli.cli, entry)
    result = testing.CliRunner().invoke(cli.cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    return result.output


def check_dask(words):
    """Check that a command of Dask's knows its options, where Dask is installed."""
    pytest.importorskip("distributed")
    printed = help_of_dask(words[0])
    for word in words[1:]:
        if word.startswith("-"):
            assert re.search(rf"(?<![\w-]){word}(?![\w-])", printed), word


def check_python(words, monkeypatch, capsys):
    """Check that a script or module exists, and that it knows the options."""
    if words[0] == "-m":
        module, *arguments = words[1:]
        spec = importlib.util.find_spec(module)
        assert spec is not None, module
        if spec.submodule_search_locations:
            spec = importlib.util.find_spec(f"{module}.__main__")
            assert spec is not None, module
        source = Path(spec.origin)
        monkeypatch.delitem(sys.modules, spec.name, raising=False)  # runpy warns of it
    else:
        source, arguments = ROOT / words[0], words[1:]
        assert source.is_file(), source
    if "argparse" not in source.read_text(encoding="utf-8"):
        assert not any(word.startswith("-") for word in arguments)
        return
    monkeypatch.setattr(sys, "argv", [str(source), *arguments, "--help"])
    with pytest.raises(SystemExit) as end:
        if words[0] == "-m":
            runpy.run_module(module, run_name="__main__")
        else:
            monkeypatch.syspath_prepend(source.parent)  # as Python does
            runpy.run_path(str(source), run_name="__main__")
    printed = capsys.readouterr()
    assert end.value.code in (0, None), printed.err
    for word in arguments:
        if word.startswith("-"):
            assert re.search(rf"(?<![\w-]){word}(?![\w-])", printed.out), word


@pytest.mark.parametrize("page", WITH_SHELL, ids=name)
def test_commands_exist(page, monkeypatch, capsys):
    commands = [command for code in blocks(page, "sh") for command in shell_commands(code)]
    for program, *words in commands + inline_commands(page):
        if program == "make":
            assert words[0] in TARGETS
        elif program == "python":
            check_python(words, monkeypatch, capsys)
        elif program == "torchrun":  # its own options come before the script
            script = next(i for i, word in enumerate(words) if word.endswith(".py"))
            check_python(words[script:], monkeypatch, capsys)
        elif program == "dask":
            check_dask(words)
        else:
            assert (program, words[0]) == ("pip", "install")
            assert words[1] in (".", ".[all]", "torch")


def test_extras_exist():
    named = re.findall(r"\[([a-z,]+)\](?!\()", README.read_text(encoding="utf-8"))
    assert {part for extra in named for part in extra.split(",")} <= EXTRAS.keys()


def test_the_extra_of_the_site_brings_what_examples_need():
    """Those that download nothing run in every build of the site, and stop it if they fail."""

    def needs(extra):
        """Return what an extra asks for, with that of the extras that it names."""
        found = set()
        for requirement in EXTRAS[extra]:
            name, _, inner = requirement.partition("[")
            if name == "sklearn-pulse":
                found |= set().union(*map(needs, inner.rstrip("]").split(",")))
            else:
                found.add(requirement)
        return found

    rooms = {"benchmark": "benchmark", "corpus": "cluster", "panel": "sktime", "theory": "theory"}
    for example in (ROOT / "examples").glob("plot_*.py"):
        for room in re.findall(r"sklearn_pulse\.(\w+)", example.read_text(encoding="utf-8")):
            if room in rooms:
                assert needs(rooms[room]) <= needs("docs"), f"{example.name}: {room}"


@pytest.mark.parametrize("code", ["maek test", "make test && cd nowhere", "python -m x $undefined"])
def test_a_wrong_shell_block_is_noticed(code):
    with pytest.raises(AssertionError):
        shell_commands(code)


def test_variables_and_loops_are_expanded():
    code = "for x in a b; do\n  A=1 python -m m $x \\\n    --y 'c d'\ndone\nmake z  # comment"
    expected = [["python", "-m", "m", x, "--y", "c d"] for x in "ab"]
    assert shell_commands(code) == [*expected, ["make", "z"]]


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", text):
            if target in ("api/index.rst", "gallery/index.rst"):  # written when the site is built
                continue
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name}: {target}"
            if anchor and path.suffix == ".md":
                assert anchor in anchors(path), f"{page.name}: {target}#{anchor}"
