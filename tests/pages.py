"""Code blocks of the pages that people read, and how tests run them."""

import ast
import re
import subprocess
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "guide").glob("*.md"))

_BLOCK = r"^( *)```(.*?)\n(.*?)^\1```$"

# Each command prints its arguments instead of running, one line per call, separated by tabs.
# Any other command is an error, as PATH is empty.
_STUBS = "".join(
    f"{name}() {{ local IFS=$'\\t'; echo {name}$'\\t'\"$*\"; }}\n"
    for name in ("dask", "make", "pip", "python", "torchrun")
)


def blocks(page, language):
    """Return the code blocks of a page that are marked with a language, also those in lists."""
    return [textwrap.dedent(code) for mark, code in _blocks(page) if mark == language]


def languages(page):
    """Return the marks of all code blocks of a page; a block without a mark has an empty one."""
    return [mark for mark, _ in _blocks(page)]


def _blocks(page):
    """Return the mark and the lines of each code block."""
    found = re.findall(_BLOCK, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [(mark, code) for _, mark, code in found]


def run_python(page):
    """Run the Python blocks of a page in one namespace, in order, and return the namespace.

    An expression with a comment that begins with a literal must have that value. Functions that
    are called ``test_...`` are run too.
    """
    names = {"__name__": page.stem, "__file__": str(page)}
    for code in blocks(page, "python"):
        lines = code.splitlines()
        for node in ast.parse(code).body:
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), str(page), "exec"), names)
                continue
            value = eval(compile(ast.Expression(node.value), str(page), "eval"), names)
            literal = re.search(r"  # (\{.*?\}|\[.*?\]|True|False|[-\d.]+)(?=$|:)", source)
            if literal:
                assert value == ast.literal_eval(literal[1]), source
    for name, value in list(names.items()):
        if name.startswith("test_"):
            value()
    return names


def shell_commands(code):
    """Return the commands of a shell block as lists of words, with variables and loops expanded."""
    printed = subprocess.run(
        ["/bin/bash", "-euc", _STUBS + code],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed.returncode == 0, printed.stderr
    return [line.split("\t") for line in printed.stdout.splitlines()]


def inline_commands(page):
    """Return the commands that the prose of a page quotes, as lists of words."""
    prose = re.sub(_BLOCK, "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    quoted = re.findall(r"`((?:python|make) [^`]+)`", prose)
    return [" ".join(command.split()).split(" ") for command in quoted]
