"""Models that come with the package: names, files, cards and numbers, and what they refuse."""

import importlib.util
import json
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    PulseTransformer,
    RandomEncoderTransformer,
    _shipped,
    load_pretrained,
    pretrained,
)
from sklearn_pulse.benchmark._task import Task

ROOT = Path(__file__).parents[1]
ROOM = ROOT / "sklearn_pulse" / "pretrained"
NAMES = sorted(path.parent.name for path in ROOM.glob("*/config.json"))
FILES = {"README.md", "config.json", "model.safetensors"}
SECTIONS = (
    "Data",
    "Licence",
    "Input",
    "Windows",
    "Settings",
    "Scores",
    "Selection",
    "What it is not for",
    "Versions",
    "Command",
)


def whole_numbers(n, n_timesteps, seed):
    """Windows of whole numbers, on which float32 rounds no convolution with whole weights.

    Hence no output lies on the other side of a bias on another processor.
    """
    rng = np.random.RandomState(seed)
    phase = rng.uniform(0, 6, size=(n, 1))
    x = 80 * np.sin(0.2 * (1 + np.arange(n))[:, None] * np.arange(n_timesteps) + phase)
    return np.rint(x + rng.normal(scale=20, size=x.shape))[..., None]


# From the name: the first four numbers and the last of three windows, and the mean standard
# deviation of a number over the windows that the model was fitted on.
REFERENCE = {
    "eeg-174hz": (
        [
            [-0.198131, 1.531899, -1.186822, 0.009903, -0.117684],
            [-0.34409, 0.914348, -1.754831, -0.827412, -0.216134],
            [-1.055176, 0.924558, -1.616768, -0.657983, 0.005751],
        ],
        0.88,
    ),
}


@pytest.fixture(scope="module")
def eeg():
    return pretrained.load("eeg-174hz")


def sections_of(card):
    """Sections of a card by their titles."""
    parts = re.split(r"^## (.*)\n", card, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def test_there_are_models_and_each_has_a_sentence_and_reference_values():
    assert NAMES == list(pretrained.available()) == sorted(REFERENCE)
    for sentence in pretrained.available().values():
        assert 40 < len(sentence) < 250 and sentence.endswith(".") and "\n" not in sentence


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small_and_published(name):
    assert {path.name for path in (ROOM / name).iterdir()} == FILES
    assert (ROOM / name / "model.safetensors").stat().st_size < 4_000_000
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "setuptools"
    ]
    patterns = settings["package-data"]["sklearn_pulse"]
    published = {path for pattern in patterns for path in ROOM.parent.glob(pattern)}
    assert {ROOM / name / file for file in FILES} <= published


@pytest.mark.parametrize("name", NAMES)
def test_cards_are_complete_and_say_what_the_files_say(name):
    card = pretrained.card(name)
    sections = sections_of(card)
    assert tuple(sections) == SECTIONS
    assert all(len(text) > 30 for text in sections.values())
    model, config = (
        pretrained.load(name),
        json.loads((ROOM / name / "config.json").read_text(encoding="utf-8")),
    )
    assert f'{type(model).__name__}.from_pretrained("{name}")' in card
    assert f"{model.sampling_rate_in_:g} Hz" in sections["Input"]
    assert f"{model.n_timesteps_in_} steps" in sections["Input"]
    assert f"{model.transform(np.ones((1, 178, 1))).shape[1]} numbers" in card
    assert f"{config['weights']['n_bytes'] / 1e6:.2f} MB" in sections["Settings"]
    for parameter in ("num_kernels", "n_components", "embedding_dim"):
        assert f"{parameter}={getattr(model, parameter)}" in sections["Settings"]
    assert "Attribution:" in sections["Data"] and "CC BY 4.0" in sections["Licence"]
    assert "Diagnosis" in sections["What it is not for"]
    assert name in sections["Command"] and (ROOT / sections["Command"].split()[1]).is_file()
    for package in ("sklearn_pulse", "numpy", "torch"):
        assert package in sections["Versions"]
    assert "None" not in card and "nan" not in card.split()


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_with_the_package_has_shown_a_gain(name):
    """With every amount of labels, the mean is above that of the twin and of each control."""
    table = sections_of(pretrained.card(name))["Scores"].split("\n\n")[2].splitlines()
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table]
    assert cells[0][1:] == ["1 %", "5 %", "all labels"]
    means = {row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in cells[2:]}
    own = means.pop("this model")
    assert len(means) == 5 and {"majority", "channel statistics", "untrained encoder"} < set(means)
    assert all(np.greater(own, others).all() for others in means.values())


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_that_were_scored(name):
    values, spread = REFERENCE[name]
    model = pretrained.load(name, device="cpu")
    embedding = model.transform(whole_numbers(3, model.n_timesteps_in_, 0))
    # Sums of some 1,400 products in float32 round by at most 1,400 * 2**-24 of their terms, and the
    # embedding is rounded to hundredths.
    atol = 1e-3 * spread + 0.005
    np.testing.assert_allclose(embedding[:, [0, 1, 2, 3, -1]], values, rtol=0, atol=atol)


def test_every_door_opens_the_same_model(eeg):
    X = whole_numbers(2, 178, 1)
    expected = eeg.transform(X)
    for door in (CrossPredictionTransformer.from_pretrained, load_pretrained):
        np.testing.assert_array_equal(door("eeg-174hz").transform(X), expected)
    assert type(eeg) is CrossPredictionTransformer


def test_a_folder_goes_before_a_model_of_its_name(tmp_path, monkeypatch, eeg):
    monkeypatch.chdir(tmp_path)
    own = RandomEncoderTransformer(embedding_dim=4, encoder_depth=1).fit(np.ones((2, 16, 1)))
    own.save_pretrained("eeg-174hz")
    assert RandomEncoderTransformer.from_pretrained("eeg-174hz").embedding_dim == 4
    assert pretrained.load("eeg-174hz").embedding_dim == eeg.embedding_dim
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        CrossPredictionTransformer.from_pretrained(Path("elsewhere") / "eeg-174hz")


@pytest.mark.parametrize("door", [PulseTransformer.from_pretrained, load_pretrained])
def test_an_unknown_name_lists_the_known_names(door):
    with pytest.raises(FileNotFoundError, match=r"no folder eeg-175hz, .*\['eeg-174hz'"):
        door("eeg-175hz")


@pytest.mark.parametrize("function", [pretrained.load, pretrained.card])
def test_names_of_the_room(function):
    for wrong in ("eeg-175hz", "../pretrained", "__init__.py", ""):
        with pytest.raises(ValueError, match="name must be .*'eeg-174hz'"):
            function(wrong)
    with pytest.raises(TypeError, match="name must be .*'eeg-174hz'"):
        function(None)


def test_another_class_says_which_class_to_use():
    with pytest.raises(ValueError, match=r"call CrossPredictionTransformer\.from_pretrained"):
        PulseTransformer.from_pretrained("eeg-174hz")


def test_what_has_no_network_is_not_fine_tuned():
    X, y = np.ones((4, 178, 1)), [0, 1] * 2
    message = "it is a CrossPredictionTransformer, which cannot be used here: .*PulseTransformer"
    with pytest.raises(ValueError, match=message):
        FineTuneClassifier("eeg-174hz").fit(X, y)


def test_other_rates_and_channels_are_refused(eeg):
    X = whole_numbers(1, 178, 0)
    assert eeg.transform(X, sampling_rate=173.61).shape == eeg.transform(X).shape
    with pytest.raises(ValueError, match=r"sampled at 256 Hz, but .* 173.61 Hz: resample"):
        eeg.transform(X, sampling_rate=256)
    with pytest.raises(ValueError, match="channel"):
        eeg.transform(np.ones((1, 178, 2)))


def test_in_a_search_and_in_a_pickle(eeg):
    X, y = whole_numbers(8, 178, 2), np.arange(8) % 2
    steps = [("eeg", FrozenEstimator(eeg)), ("scale", StandardScaler()), ("probe", None)]
    pipeline = Pipeline(steps).set_params(probe=LogisticRegression())
    search = GridSearchCV(pipeline, {"probe__C": [0.1, 1.0]}, cv=2).fit(X, y)
    copied = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(copied.predict_proba(X), search.predict_proba(X))
    assert clone(eeg).get_params() == eeg.get_params() and not hasattr(clone(eeg), "alpha_")


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the room, from which names are read."""
    room = shutil.copytree(ROOM, tmp_path / "pretrained")
    monkeypatch.setattr(_shipped, "_room", lambda: room)
    return room / "eeg-174hz"


def test_a_damaged_file_is_named(copied):
    weights = bytearray((copied / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copied / "model.safetensors").write_bytes(weights)
    for door in (pretrained.load, CrossPredictionTransformer.from_pretrained):
        with pytest.raises(ValueError, match=r"eeg-174hz.model\.safetensors is damaged"):
            door("eeg-174hz")


def test_files_may_be_links_into_a_store_of_packages(copied, eeg):
    for file in FILES:
        (copied / file).rename(copied.parent / file)
        (copied / file).symlink_to(copied.parent / file)
    X = whole_numbers(1, 178, 0)
    np.testing.assert_array_equal(pretrained.load("eeg-174hz").transform(X), eeg.transform(X))


def test_from_a_wheel_that_is_not_unpacked_and_without_network(tmp_path, eeg):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from check_dist import package_files
    finally:
        sys.path.pop(0)
    with zipfile.ZipFile(tmp_path / "wheel.whl", "w") as wheel:
        for file in package_files():
            wheel.write(ROOT / file, file)
    code = """
import socket, sys
sys.path.insert(0, "wheel.whl")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = None
import numpy as np
from sklearn_pulse import CrossPredictionTransformer, pretrained
assert "wheel.whl" in pretrained.__file__
assert "## Data" in pretrained.card("eeg-174hz") and "eeg-174hz" in pretrained.available()
eeg = CrossPredictionTransformer.from_pretrained("eeg-174hz")
print(eeg.transform(np.ones((1, 178, 1)))[0, :4].tolist())
"""
    run = [sys.executable, "-I", "-c", code]
    printed = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == eeg.transform(np.ones((1, 178, 1)))[0, :4].tolist()


@pytest.fixture
def script(monkeypatch, tmp_path):
    """The script that makes models, with a small source whose two classes are two rhythms."""
    path = ROOT / "examples" / "reproduce" / "pretrained.py"
    spec = importlib.util.spec_from_file_location("reproduce_pretrained", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look it up
    spec.loader.exec_module(module)
    recording = np.repeat(np.arange(20), 4)
    y = recording % 2
    rng = np.random.RandomState(0)
    x = np.sin((0.3 + 0.05 * y)[:, None] * np.arange(32) + rng.uniform(0, 6, size=(80, 1)))
    X = (x + rng.normal(scale=0.5, size=x.shape)).astype(np.float32)[..., None]
    windows = module.Windows(X, y, recording, np.tile(np.arange(4) * 32, 20))
    source = module.Source(lambda: windows, 32.0, {"a": {"block_weights": (0.1, 0.05, 0.6, 0.25)}})
    monkeypatch.setitem(module.SOURCES, "eeg-174hz", source)
    small = {"num_kernels": 84, "n_components": 8, "embedding_dim": 8}
    monkeypatch.setattr(module, "SMALL", small)
    monkeypatch.setattr(module, "CS", (0.1, 1.0))
    monkeypatch.setattr(module, "N_DRAWS", 2)
    monkeypatch.setattr(sys, "argv", ["", "eeg-174hz", "--output", str(tmp_path)])
    return module


def constant(X):
    return np.zeros((len(X), 1))


same_folds = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7),
    reason="StratifiedGroupKFold divides equal groups in another order",
)


def test_a_model_that_was_saved_before_some_parameters_loads():
    """As the one that comes with the package was."""
    config = json.loads((ROOM / "eeg-174hz" / "config.json").read_text())
    assert "whitening" not in config["parameters"] and "whitening_" not in config["fitted"]
    loaded = CrossPredictionTransformer.from_pretrained("eeg-174hz")
    assert loaded.whitening_ == loaded.nearest_ == loaded.small_directions_ == 0.0


@same_folds
def test_the_script_makes_the_same_model_again(script, monkeypatch, tmp_path):
    others = {script.TWIN: constant, "majority": constant}
    monkeypatch.setattr(script, "controls", lambda model, train: others)
    made = []
    for _ in range(2):  # first from nothing, then from stored scores
        script.main()
        folder = tmp_path / "eeg-174hz"
        assert tuple(sections_of((folder / "README.md").read_text(encoding="utf-8"))) == SECTIONS
        made.append((folder / "model.safetensors").read_bytes())
        shutil.rmtree(folder)
    assert made[0] == made[1]


def test_the_script_writes_nothing_that_a_control_equals(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "controls", lambda model, train: {"itself": model.transform})
    with pytest.raises(SystemExit, match="no gain over: itself, 1 %; itself, 5 %; itself, all"):
        script.main()
    assert not (tmp_path / "eeg-174hz").exists()


@same_folds
def test_the_script_holds_out_the_first_test_part_of_the_benchmark(script):
    windows = script.SOURCES["eeg-174hz"].load()
    folds = script.folds_of(windows)
    task = Task("eeg", windows.X, windows.y, windows.recording, np.full(len(windows.y), "train"))
    np.testing.assert_array_equal(folds[0], task.stratified_fold(0).rows("test"))
    assert not set(windows.recording[folds[0]]) & set(windows.recording[np.hstack(folds[1:])])
