"""What CONTRIBUTING.md says of adding a method is so; test_common.py runs the contract on it."""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import sklearn_pulse.base
from sklearn_pulse.base import BaseSSLTransformer
from sklearn_pulse.objectives import Objective
from tests import toy_method
from tests.test_architecture import ALLOWED
from tests.test_common import CLASSES

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_objective_is_the_one_that_is_tested():
    assert inspect.getsource(toy_method.DenoisedMean) in TEXT


def test_the_contract_is_run_on_it():
    assert toy_method.DenoisedMeanTransformer in CLASSES


def test_the_hooks_exist():
    table = TEXT.split("| a method that ... |")[1].split("\n\n")[0]
    names = re.findall(r"`(?:Objective\.)?(\w+)", table)
    hooks = {*dir(BaseSSLTransformer), *dir(Objective), *sklearn_pulse.base.__all__}
    assert len(names) > 8
    assert set(names) <= hooks


def test_every_room_exists():
    package = Path(__file__).parent.parent / "sklearn_pulse"
    for row in re.findall(r"^\| (`[^|]+) \|", TEXT, flags=re.MULTILINE):
        for room in re.findall(r"`([\w/]+(?:\.py|/))`", row):
            assert (package / room).exists(), room


def test_a_room_imports_from_those_above_it():
    """The table names every room, after all the rooms that it imports from."""
    rows = [
        re.findall(r"`([\w/]+)(?:\.py|/)`", row)
        for row in re.findall(r"^\| (`[^|]+) \|", TEXT, re.M)
    ]
    place = {name.replace("/", "."): i for i, row in enumerate(rows) for name in row}
    assert place.keys() >= ALLOWED.keys() - {"__init__"}
    for room, imported in ALLOWED.items():
        above = {name for name in imported if place.get(name, -1) <= place.get(room, len(rows))}
        assert above == imported, (room, imported - above)


def test_it_learns_what_it_says():
    """Means of variance one are told much better than by a guess."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1, 2)) + rng.normal(size=(200, 32, 2))
    encoder = {"embedding_dim": 8, "encoder_hidden_dim": 8, "encoder_depth": 3}
    toy = toy_method.DenoisedMeanTransformer(
        **encoder, lr=1e-2, max_epochs=30, num_threads=1, random_state=0
    )
    toy.fit(X)
    assert toy.history_[0]["valid_loss"] > 0.8
    assert toy.history_[-1]["valid_loss"] < 0.4


def test_parameters_that_a_method_left_out_are_listed():
    """The class of the page leaves out most of them."""
    code = re.search(r"^class DenoisedMeanTransformer.*?^```", TEXT, re.DOTALL | re.MULTILINE)[0]
    names = vars(toy_method).copy()
    exec(code.removesuffix("```"), names)
    with pytest.raises(TypeError, match="lacks the parameters .*'batch_size'.*: add them") as error:
        names["DenoisedMeanTransformer"](embedding_dim=8).fit(np.zeros((4, 16, 2)))
    missing = set(re.findall(r"'(\w+)'", str(error.value)))
    spelled_out = inspect.signature(toy_method.DenoisedMeanTransformer).parameters
    assert missing < {*spelled_out} - {"embedding_dim", "noise"}
    # Nothing else is needed.
    stored = {name: spelled_out[name].default for name in missing} | {"encoder_depth": 2}
    method = names["DenoisedMeanTransformer"](embedding_dim=8)
    vars(method).update(stored, max_epochs=1, encoder_hidden_dim=8)
    method.fit(np.random.default_rng(0).normal(size=(12, 16, 2)))


@pytest.mark.parametrize("room", ["base", "objectives"])
def test_the_page_lists_every_public_name(room):
    page = (Path(__file__).parent.parent / "docs" / "extending.md").read_text(encoding="utf-8")
    table = page.split(f"## Names in `sklearn_pulse.{room}`")[1].split("\n## ")[0]
    public = importlib.import_module(f"sklearn_pulse.{room}").__all__
    assert sorted(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", table, re.M)))) == (
        sorted(public)
    )


def test_a_method_needs_no_private_module():
    assert not re.search(
        r"(from|import) .*\._", Path(toy_method.__file__).read_text(encoding="utf-8")
    )
