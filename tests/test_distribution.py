"""What is published: requirements said once and repeated rightly, licences, contents."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import sklearn_pulse

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
NOT_FOR_USERS = {"test", "docs"}
ON_CONDA = {"torch": "pytorch", "safetensors": "python-safetensors"}


def name_of(requirement):
    return re.match(r"[\w-]+", requirement).group().lower()


def test_conda_asks_for_what_pip_asks_for():
    text = (ROOT / "tools/conda/meta.yaml").read_text(encoding="utf-8")
    plain = re.sub(r"\{\{ *(\w+) *\}\}", r"\1", re.sub(r"\{%.*%\}", "", text))
    asked = {"python " + PROJECT["requires-python"]} | {
        requirement.replace(name_of(requirement), ON_CONDA.get(name_of(requirement), "") + " ")
        if name_of(requirement) in ON_CONDA
        else requirement.replace(">=", " >=")
        for requirement in PROJECT["dependencies"]
    }
    assert set(yaml.safe_load(plain)["requirements"]["run"]) == asked


def test_versions_agree():
    for path in ("CITATION.cff", "tools/conda/meta.yaml"):
        assert sklearn_pulse.__version__ in (ROOT / path).read_text(encoding="utf-8"), path


def test_every_dependency_has_a_licence_in_the_list():
    page = (ROOT / "docs/releasing.md").read_text(encoding="utf-8")
    listed = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")}
    needed = set(map(name_of, PROJECT["dependencies"]))
    for extra, requirements in EXTRAS.items():
        if extra not in NOT_FOR_USERS:
            needed |= {name_of(each) for each in requirements}
    assert needed - {"sklearn-pulse"} <= listed


def test_every_extra_for_users_is_checked_before_a_release():
    (line,) = re.findall(r"^EXTRAS = (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    # aeon admits no numpy that sktime admits beside it; `demo` is what `make demo` installs.
    assert set(line.split()) == set(EXTRAS) - NOT_FOR_USERS - {"controls", "demo"}


@pytest.fixture
def check_dist(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("check_dist")


def test_the_check_does_not_pass_without_something_to_check(check_dist, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["check_dist.py"])
    with pytest.raises(SystemExit) as end:
        check_dist.main()
    assert end.value.code == 2
    assert "nothing to check: pass the folder" in capsys.readouterr().err


@pytest.mark.parametrize("names", [[], ["a.whl"], ["a.whl", "a.tar.gz", "b.tar.gz"]])
def test_the_check_names_what_the_folder_must_hold(names, check_dist, tmp_path):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(SystemExit, match="must hold one sdist and one wheel, got .*: run make"):
        check_dist.check_contents(tmp_path)


def test_the_check_notices_what_is_missing_and_what_is_too_much(check_dist, tmp_path):
    import tarfile
    import zipfile

    def build(names):
        with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
            for name in names:
                wheel.writestr(name, "")
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as sdist:
            for name in names:
                sdist.add(ROOT / "LICENSE", f"a/{name}")

    files = check_dist.package_files()
    build(files)
    check_dist.check_contents(tmp_path)
    for wrong in (files - {"sklearn_pulse/py.typed"}, files | {"tests/helpers.py"}):
        build(wrong)
        with pytest.raises(SystemExit):
            check_dist.check_contents(tmp_path)
