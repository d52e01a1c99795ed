"""The code of the pages in docs/ runs as it stands, and says what it says."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = [
    pytest.param(code, id=f"{page.stem}-{i}")
    for page in sorted((ROOT / "docs").glob("*.md"))
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_a_comment_after_an_expression_is_its_value(code):
    if "sktime" in code or "sklearn_pulse.panel" in code:
        pytest.importorskip("sktime")
    names = {}
    lines = code.splitlines()
    for node in ast.parse(code).body:
        source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if not isinstance(node, ast.Expr):
            exec(source, names)
            continue
        value = eval(source.split("  #")[0], names)
        literal = re.search(r"  # (\{.*?\}|True|False|[-\d.]+)(?=$|:)", source)
        if literal:
            assert value == ast.literal_eval(literal[1])


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
