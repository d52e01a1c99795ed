"""What the documentation site says is so; `make docs-check` builds it."""

import ast
import importlib
import io
import re

import pytest
from docutils import nodes
from docutils.core import publish_doctree

from docs._generate import api, examples, figures, links, measured, offline, tables
from docs._generate.public import public_modules, public_names
from tests.pages import ROOT

# The reference has a page for `panel`, which needs sktime: the oldest versions have none.
pytest.importorskip("sktime")

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAPER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reference():
    return api.pages()


def test_every_public_name_has_a_page(reference):
    where = api.homes()
    for module in public_modules():
        assert module.__name__ in reference
        for name in public_names(module):
            page = where[f"{module.__name__}.{name}"]
            assert re.search(rf"auto\w+:: {name}$|py:data:: {name}$", reference[page], re.M), name
    assert len(where) > 180


def test_a_new_room_needs_a_title(monkeypatch):
    monkeypatch.setitem(api.ROOMS, "For everyone", {"sklearn_pulse": "The estimators"})
    with pytest.raises(ValueError, match=r"differ in \['sklearn_pulse.baselines'"):
        api.homes()


def test_a_new_public_name_gets_a_page(monkeypatch):
    import sklearn_pulse.windows

    def newcomer():
        """Do something."""

    monkeypatch.setattr(sklearn_pulse.windows, "newcomer", newcomer, raising=False)
    monkeypatch.setattr(
        sklearn_pulse.windows, "__all__", [*sklearn_pulse.windows.__all__, "newcomer"]
    )
    assert "autofunction:: newcomer" in api.pages()["sklearn_pulse.windows.newcomer"]


def test_pages_of_names_that_are_gone_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(api, "pages", lambda: {"index": "Reference"})
    (tmp_path / "gone.rst").write_text("")
    api.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.rst"]


def find(name):
    """Return the object that a name of the map stands for."""
    parts = ["sklearn_pulse", *name.split(".")]
    for cut in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


def rows_of_the_map():
    """Return the cells with code and with tests of each row."""
    lines = [line.strip("|").split(" | ") for line in PAPER.splitlines() if "tests/" in line]
    return [[re.findall(r"`([^`]+)`", cell) for cell in cells[-2:]] for cells in lines]


def test_code_and_tests_of_the_map_exist():
    rows = rows_of_the_map()
    assert len(rows) > 35
    for code, tests in rows:
        assert code and tests
        for name in code:
            assert callable(find(name)), name
        for test in tests:
            path, _, function = test.partition("::")
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert names if not function else function in names, test


def test_every_equation_that_the_code_cites_is_on_the_map():
    cited = set()
    for path in (ROOT / "sklearn_pulse").rglob("*.py"):
        cited |= set(
            re.findall(r"(?:Eq\. \d|Theorem \d|Section \d\.\d)", path.read_text(encoding="utf-8"))
        )
    assert len(cited) > 6
    assert [name for name in sorted(cited) if name not in PAPER] == []


def test_the_table_of_estimators_says_what_the_tags_say():
    lines = tables.estimator_table().splitlines()
    columns = [cell.strip() for cell in lines[0].strip("|").split("|")]
    rows = {}
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[cells[0].strip("`")] = dict(zip(columns, cells, strict=True))
    assert rows.keys() == tables.estimators().keys()
    assert rows["MiniRocketTransformer"]["missing values"] == "no"
    assert rows["PatchTSTTransformer"]["other lengths"] == "no"
    uses = {name for name, row in rows.items() if row["reads recordings"] == "yes"}
    assert uses == {"CrossPredictionTransformer", "REBARTransformer", "SimCLRTransformer"}
    costs = measured.costs()
    assert rows["REBARTransformer"]["training, windows/s"] == costs["REBAR"]["training, windows/s"]
    trained = {name for name, row in rows.items() if row["training, windows/s"]}
    assert len(trained) == len([row for row in costs.values() if row["training, windows/s"]]) - 1


def test_a_new_estimator_must_say_what_it_is_best_for(monkeypatch):
    monkeypatch.delitem(tables.BEST_FOR, "PulseTransformer")
    with pytest.raises(ValueError, match="BEST_FOR has no entry for PulseTransformer"):
        tables.estimator_table()


def test_the_figures_show_what_was_measured():
    scores, costs = measured.scores(), measured.costs()
    shown = re.sub(r"\s+", " ", " ".join(re.findall(r">([^<]+)</text>", figures.decision())))
    assert f"QUANT {scores['MIT-BIH rhythm, 1 person']['QUANT']}" in shown
    assert "(lost)" in shown
    assert costs["MiniRocket"]["embedding, windows/s"] in shown
    for name in figures._POINTS:
        assert f">{name}</text>" in figures.cost_and_score()


def test_a_table_that_is_gone_is_an_error():
    with pytest.raises(ValueError, match="docs/costs.md has no heading 'Prices'"):
        measured.table("costs.md", "Prices")
    with pytest.raises(ValueError, match="docs/training.md has no table below"):
        measured.table("training.md", "What the closed form has that training lost")


def test_examples_run_where_their_data_are(tmp_path):
    folder = ROOT / "examples"
    assert examples.data_sets(folder / "plot_transfer.py") == {"har", "gesture"}
    assert not examples.runs(folder / "plot_har.py", tmp_path)
    assert examples.runs(folder / "plot_quickstart.py", tmp_path)
    (tmp_path / "hapt" / "RawData").mkdir(parents=True)
    (tmp_path / "hapt" / "RawData" / "labels.txt").touch()
    assert examples.runs(folder / "plot_har.py", tmp_path)
    assert not examples.runs(folder / "plot_transfer.py", tmp_path)
    assert not examples.runs(folder / "plot_wesad.py", tmp_path)
    wristband = tmp_path / "wesad" / "S2" / "S2_E4_Data"  # which the reader takes too
    wristband.mkdir(parents=True)
    (wristband / "BVP.csv").touch()
    (tmp_path / "wesad" / "label_intervals_E4time.csv").touch()
    assert examples.runs(folder / "plot_wesad.py", tmp_path)
    (tmp_path / "epilepsy").mkdir()
    for part in ("train", "val", "test"):  # as downloaded, which tell no segments
        (tmp_path / "epilepsy" / f"{part}.pt").touch()
    assert not examples.runs(folder / "plot_epilepsy.py", tmp_path)
    for name in "ZONFS":
        (tmp_path / "epilepsy" / name).mkdir()
        (tmp_path / "epilepsy" / name / f"{name}001.txt").touch()
    assert examples.runs(folder / "plot_epilepsy.py", tmp_path)


def test_commands_of_examples_are_shown_as_code():
    """In other text the site makes one dash of two, and such an option cannot be copied."""
    for path in sorted((ROOT / "examples").glob("plot_*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        page = publish_doctree(text, settings_overrides={"report_level": 5})
        assert not [quote.astext() for quote in page.findall(nodes.block_quote)], path.name


def test_examples_leave_their_figures_open():
    """The gallery shows the figures that are open at the end of a part of an example."""
    for path in (ROOT / "examples").glob("plot_*.py"):
        assert "plt.close(" not in path.read_text(encoding="utf-8"), path.name


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.html", '<script src="https://cdn.example.org/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//fonts.example.org/css">'),
        ("a.html", '<link href="https://fonts.example.org/css" rel="stylesheet">'),
        ("a.css", "@font-face { src: url(https://fonts.example.org/x.woff) }"),
    ],
)
def test_what_the_site_would_load_from_the_network_is_found(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert offline.loads_from_network(tmp_path) == [name]


def test_links_and_local_files_are_no_loads(tmp_path):
    text = '<a href="https://example.org">x</a><link rel="stylesheet" href="_static/site.css">'
    (tmp_path / "a.html").write_text(text, encoding="utf-8")
    assert offline.loads_from_network(tmp_path) == []


def test_the_rows_of_the_readme_are_those_of_the_results():
    results = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").splitlines()
    part = README.split("## Which method to take")[1].split("\n## ")[0]
    rows = [line for line in part.splitlines() if re.match(r"\| \w", line)]
    assert len(rows) == 5
    assert [line for line in rows if line not in results] == []
    wins = measured.scores()
    won = [row for row in wins.values() if "(lost)" not in row["cross-prediction"]]
    assert f"cross-prediction wins {len(won)}." in " ".join(part.split())
    assert {45: "forty-five"}[len(wins)] in part


def cells(line):
    """Return the cells of a row of a table, without bold type and spreads."""
    return [cell.strip("* ").split(" ±")[0] for cell in line.strip("|").split("|")]


def test_what_training_gives_is_that_of_the_results():
    """The scores at the published budget, with all, 5 % and 1 % of the labels."""
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    part = README.split("## How PULSE works")[1].split("\n## ")[0]
    names, _, *rows = [cells(line) for line in part.splitlines() if line.startswith("|")]
    assert [row[0] for row in rows] == ["HAR", "WESAD", "MIT-BIH"]
    for source, *shown in rows:
        table = results.split(f"| {source}, test part |")[1].split("\n\n")[0]
        measured_rows = {row[0]: row[2:] for row in map(cells, table.splitlines()[2:])}
        scores = {name: row[:3] for name, row in measured_rows.items()}
        scores["paper"] = measured_rows["PULSE"][3:]
        assert dict(zip(names[1:], shown, strict=True)) == {
            name: ", ".join(scores[name]) for name in names[1:]
        }


def test_the_rates_of_the_arithmetic_are_those_that_were_measured():
    """A billion windows: the rates stand on the pages that are cited, and give the times."""
    docs = ROOT / "docs"
    text = (docs / "scaling.md").read_text(encoding="utf-8").split("## A billion windows")[1]
    words = " ".join(text.split())
    gpu = (docs / "performance.md").read_text(encoding="utf-8").split("## On a GPU")[1]
    embedded = re.search(r"H200 in float32, which embedded ([\d,]+)", words)[1]
    trained = re.search(r"replayed, trained on ([\d,]+)", words)[1]
    assert re.search(rf"^\| HAR \|.*\| {embedded} \(", gpu, re.MULTILINE)
    assert f"({trained} windows per second)" in " ".join(gpu.split())
    cpu = measured.costs()["PULSE"]
    both = f"({cpu['embedding, windows/s']} and {cpu['training, windows/s']} windows per second;"
    assert both in words
    hours = {rate: 1e9 / float(rate.replace(",", "")) / 3600 for rate in (embedded, trained)}
    assert f"| {hours[embedded]:.1f} h | {hours[embedded] / 8:.1f} h |" in words
    assert f"| {hours[trained]:.0f} h | {hours[trained] / 8:.1f} h |" in words


def test_the_readme_cites_as_the_citation_file_does():
    bibtex = README.split("```bibtex")[1].split("```")[0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    title = re.search(r"title = \{(.*)\}", bibtex)[1]
    assert f"title: {title}" in citation
    names = re.search(r"author = \{(.*)\}", bibtex)[1].split(" and ")
    families = re.findall(r"family-names: (\w+)", citation)
    assert [name.split(",")[0] for name in names] == families
    assert re.search(r"year = \{(\d+)\}", bibtex)[1] in citation


def test_an_object_of_two_rooms_has_one_page():
    where = api.homes()
    assert where["sklearn_pulse.baselines.RandomEncoderTransformer"] == (
        "sklearn_pulse.RandomEncoderTransformer"
    )


def test_links_to_files_of_the_repository_lead_to_their_pages():
    source = ["[a](../CONTRIBUTING.md), [b](../../CONTRIBUTING.md), [c](../examples/plot_har.py)"]
    links.to_site(None, "guide/windows", source)
    assert source[0].startswith("[a](../contributing.md), [b](../contributing.md), [c](../examples")


def test_names_in_a_text_become_links(tmp_path):
    """Inline code that names something public is a link; a name that does not exist warns."""
    application = pytest.importorskip("sphinx.application")
    page = "# A\n\n`PulseTransformer`, `windows.nothing`, `PulseTransformer.reconstruct`, `numpy`\n"
    (tmp_path / "index.md").write_text(page, encoding="utf-8")
    (tmp_path / "conf.py").write_text("extensions = ['myst_parser']\nhtml_theme = 'basic'\n")
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "sklearn_pulse.PulseTransformer.md").write_text(
        "---\norphan: true\n---\n# P\n"
    )
    warnings = io.StringIO()
    folders = [str(tmp_path), str(tmp_path), str(tmp_path / "out"), str(tmp_path / "trees")]
    app = application.Sphinx(*folders, "html", status=None, warning=warnings)
    app.site_targets = links.targets()
    app.connect("doctree-resolved", links.link_names)
    app.build()
    html = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert html.count('href="api/sklearn_pulse.PulseTransformer.html"') == 2
    assert "windows.nothing names nothing public" in warnings.getvalue()
    assert "numpy names" not in warnings.getvalue()
