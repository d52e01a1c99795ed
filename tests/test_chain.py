"""Whole chains in folders: what comes back, to the bit, and what is refused."""

import fnmatch
import os
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC

from sklearn_pulse import (
    CrossPredictionTransformer,
    PulseTransformer,
    RandomEncoderTransformer,
    export,
    load_pretrained,
    push_to_hub,
    save_pretrained,
)
from sklearn_pulse.evaluation import LabeledSubsetClassifier, make_linear_probe
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import (
    BandpassFilter,
    ChannelWhitener,
    Resampler,
    WindowScaler,
)
from sklearn_pulse.windows import SlidingWindows
from tests.helpers import SMALL_ENCODER, make_windows
from tests.persistence.helpers import pulse, read_config, write_config

X = make_windows(24, n_timesteps=32)[0]
y = np.array(["calm", "active", "asleep"])[np.arange(24) % 3]
FEW = np.where(np.arange(24) < 12, np.arange(24) % 2, -1)


def encoder(**params):
    return RandomEncoderTransformer(**SMALL_ENCODER | {"random_state": 0} | params)


def through(model, tmp_path):
    save_pretrained(model, tmp_path / "chain")
    return load_pretrained(tmp_path / "chain")


CHAINS = {
    "scaled": (make_pipeline(WindowScaler(), encoder(), make_linear_probe()), y),
    "whitened": (make_pipeline(ChannelWhitener(0.1), encoder(), make_linear_probe()), y),
    "two classes": (make_pipeline(encoder(), LogisticRegression()), y == "calm"),
    "window by window": (
        make_pipeline(WindowScaler(per="window"), encoder(), RobustScaler(), RidgeClassifier()),
        y,
    ),
    "components in reverse": (
        make_pipeline(encoder(), PCA(5, svd_solver="arpack", random_state=0)),
        y,
    ),
    "components of more": (
        make_pipeline(encoder(), PCA(3, svd_solver="randomized", random_state=0)),
        y,
    ),
    "two classes of ridge": (make_pipeline(encoder(), RidgeClassifier()), np.arange(24) % 2),
    "filtered": (
        make_pipeline(
            BandpassFilter(None, 20, sampling_rate=64),
            Resampler(64, 32),
            encoder(),
            PCA(3),
            LinearSVC(),
        ),
        y,
    ),
    "bags": (
        make_pipeline(SlidingWindows(16, 8), encoder(), MinMaxScaler(), PCA(2, whiten=True)),
        y,
    ),
    "few labels": (make_pipeline(encoder(), LabeledSubsetClassifier(make_linear_probe())), FEW),
    "few labels, default": (make_pipeline(encoder(), LabeledSubsetClassifier()), FEW),
    "gradient descent": (
        make_pipeline(encoder(), "passthrough", SGDClassifier(loss="log_loss", random_state=0)),
        y,
    ),
    "frozen": (make_pipeline(FrozenEstimator(encoder().fit(X)), StandardScaler(), LinearSVC()), y),
    "ridge, chosen": (make_pipeline(encoder(), RidgeClassifierCV([0.1, 1.0])), y),
    "ridge, chosen by folds": (make_pipeline(encoder(), RidgeCV([1, 10], cv=3)), X[:, 0, 0]),
    "ridge of targets, chosen": (make_pipeline(encoder(), RidgeCV()), X[:, 0]),
    "ridge": (make_pipeline(encoder(), StandardScaler(with_mean=False), Ridge()), X[:, 0, 0]),
    "two targets": (make_pipeline(encoder(), LinearRegression()), X[:, 0]),
    "no intercept": (make_pipeline(encoder(), Ridge(fit_intercept=False)), X[:, 0, 0]),
    "frames between": (
        make_pipeline(encoder().set_output(transform="pandas"), StandardScaler(), LinearSVC()),
        y,
    ),
    "statistics": (make_pipeline(StatisticsTransformer(), StandardScaler(), LinearSVC()), y),
    "cross-prediction": (
        make_pipeline(
            CrossPredictionTransformer(num_kernels=84, embedding_dim=8, random_state=0), Ridge()
        ),
        X[:, 0, 0],
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_loaded_chain_has_the_same_bits(name, tmp_path):
    chain, target = CHAINS[name]
    fitted = clone(chain).fit(X, target)
    loaded = through(fitted, tmp_path)
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        assert hasattr(loaded, method) == hasattr(fitted, method)
        if hasattr(fitted, method):
            found, expected = getattr(loaded, method)(X), getattr(fitted, method)(X)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    if hasattr(fitted, "classes_"):
        np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    assert loaded.n_features_in_ == fitted.n_features_in_
    assert repr(clone(loaded)) == repr(clone(fitted))
    clone(loaded).fit(X, target)


def test_names_of_features_come_back(tmp_path):
    chain = make_pipeline(encoder().set_output(transform="pandas"), StandardScaler(), LinearSVC())
    loaded = through(chain.fit(X, y), tmp_path)
    np.testing.assert_array_equal(loaded[1].feature_names_in_, chain[0].get_feature_names_out())


def test_sampling_rate_and_channels_come_back(tmp_path):
    chain = make_pipeline(encoder(sampling_rate=64), LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="100 Hz, but RandomEncoderTransformer was fitted on 64"):
        through(chain, tmp_path)[0].transform(X, sampling_rate=100)


def test_channels_without_names_come_back(tmp_path):
    steps = WindowScaler(), ChannelWhitener(), BandpassFilter(4, 20, 64), Resampler(64, 32)
    for step in (*steps, SlidingWindows(16)):
        assert step.fit(X).channel_names_in_ is None
        assert through(step, tmp_path).channel_names_in_ is None


def test_a_transformer_and_a_step_alone(tmp_path):
    fitted = pulse(max_epochs=1).fit(X)
    np.testing.assert_array_equal(through(fitted, tmp_path / "a").transform(X), fitted.transform(X))
    scaler = StandardScaler().fit(X[:, 0])
    loaded = through(scaler, tmp_path / "b")
    np.testing.assert_array_equal(loaded.transform(X[:, 1]), scaler.transform(X[:, 1]))


def test_a_folder_is_replaced_and_the_same_again(tmp_path):
    chain = make_pipeline(encoder(), StandardScaler(), LinearSVC()).fit(X, y)
    save_pretrained(chain, tmp_path / "chain")
    first = {p: p.read_bytes() for p in (tmp_path / "chain").rglob("*") if p.is_file()}
    assert len(first) == 6
    save_pretrained(load_pretrained(tmp_path / "chain"), tmp_path / "chain")
    assert {p: p.read_bytes() for p in (tmp_path / "chain").rglob("*") if p.is_file()} == first
    card = tmp_path / "chain" / "step0" / "README.md"
    card.write_text(card.read_text(encoding="utf-8") + "BSD", encoding="utf-8")
    with pytest.raises(FileExistsError, match="was edited since it was written"):
        save_pretrained(chain, tmp_path / "chain")


def test_the_home_of_the_user(tmp_path, monkeypatch):
    """A folder that is named ~ is made nowhere."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    fitted = encoder().fit(X)
    for name, model in {"encoder": fitted, "chain": make_pipeline(fitted)}.items():
        save_pretrained(model, f"~/{name}")
        assert (tmp_path / name).is_dir()
        for folder in (f"~/{name}", Path("~", name)):
            np.testing.assert_array_equal(load_pretrained(folder).transform(X), fitted.transform(X))
    assert not list(Path.cwd().iterdir())


def test_the_card_names_the_steps(tmp_path):
    chain = make_pipeline(encoder(), StandardScaler(), LogisticRegression()).fit(X, y)
    save_pretrained(chain, tmp_path / "chain")
    card = (tmp_path / "chain" / "README.md").read_text(encoding="utf-8")
    assert "- standardscaler: StandardScaler" in card
    assert "- randomencodertransformer: in the folder `step0`" in card
    assert "classes ['active', 'asleep', 'calm']" in card


class Subclass(StandardScaler):
    """A class outside the list."""


@pytest.mark.parametrize(
    "step",
    [RandomForestClassifier(3), make_pipeline(FunctionTransformer(), LinearSVC()), Subclass()],
)
def test_an_unknown_step_is_refused_by_name(step, tmp_path):
    name = type(step[0] if hasattr(step, "steps") else step).__name__
    chain = make_pipeline(encoder(), step).fit(X, y)
    with pytest.raises(TypeError, match=rf"cannot hold a .*\.{name}: .*skops"):
        save_pretrained(chain, tmp_path / "chain")
    assert not list(tmp_path.iterdir())


def test_parameters_that_scikit_learn_gave_up(tmp_path):
    """A parameter that nobody set says "deprecated", which other versions refuse."""
    chain = make_pipeline(encoder(), LogisticRegression(C=0.5)).fit(X, y)
    with_penalty = chain[-1].get_params().get("penalty") == "deprecated"
    save_pretrained(chain, tmp_path / "chain")
    config = read_config(tmp_path / "chain")
    stored = config["chain"]["steps"][1][1]["parameters"]
    assert "deprecated" not in stored.values()
    stored |= {"multi_class": "deprecated"} | ({"penalty": "deprecated"} if with_penalty else {})
    write_config(tmp_path / "chain", config)  # as earlier versions wrote it
    loaded = load_pretrained(tmp_path / "chain")
    assert loaded[-1].get_params() == chain[-1].get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), chain.predict_proba(X))
    stored["multi_class"] = "ovr"
    write_config(tmp_path / "chain", config)
    if "multi_class" not in chain[-1].get_params():
        with pytest.raises(ValueError, match="'multi_class'.* install the version of scikit-learn"):
            load_pretrained(tmp_path / "chain")


def test_sparse_coefficients(tmp_path):
    chain = make_pipeline(encoder(), LogisticRegression()).fit(X, y)
    chain[-1].coef_[:, ::2] = 0.0
    chain[-1].sparsify()
    loaded = through(chain, tmp_path)
    np.testing.assert_allclose(loaded.predict_proba(X), chain.predict_proba(X), rtol=1e-6)


def test_several_labels_per_sample_are_refused(tmp_path):
    several = np.column_stack([np.arange(24) % 2, np.arange(24) % 3 == 0, np.arange(24) % 5 == 0])
    chain = make_pipeline(encoder(), RidgeClassifier()).fit(X, several.astype(int))
    with pytest.raises(TypeError, match="several labels per sample"):
        save_pretrained(chain, tmp_path / "chain")


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_dates_are_no_classes_of_a_file(tmp_path, unit):
    days = np.array(["2026-01-01", "2026-01-02"], dtype=f"M8[{unit}]")[np.arange(24) % 2]
    chain = make_pipeline(encoder(), LinearSVC()).fit(X, days)
    message = rf"LinearSVC has the attribute classes_, .*datetime64\[{unit}\]: fit it on text"
    with pytest.raises(TypeError, match=message):
        save_pretrained(chain, tmp_path / "chain")
    with pytest.raises(TypeError, match=message):
        export(chain, tmp_path / "chain.pt2", format="torch")
    assert not list(tmp_path.iterdir())


def test_what_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_pretrained(make_pipeline(encoder(), LinearSVC()), tmp_path / "chain")


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (Resampler(64, 32), {"to_rate": 16}),
        (Resampler(64, 32), {"from_rate": 32, "to_rate": 16}),
        (BandpassFilter(4, 20, 64), {"order": 2}),
        (WindowScaler(), {"with_mean": False}),
        (WindowScaler(per="window"), {"robust": True}),
        (ChannelWhitener(), {"shrinkage": 0.5}),
        (WindowScaler(), {"per": "window"}),
        (WindowScaler(per="window"), {"per": "channel"}),
    ],
)
def test_a_parameter_that_was_changed_after_fit(tmp_path, step, changes):
    chain = make_pipeline(step, encoder(), LinearSVC()).fit(X, y)
    before = step.get_params()
    step.set_params(**changes)
    name, value = next(iter(changes.items()))
    message = (
        f"^this {type(step).__name__} cannot be saved: it was fitted with {name}={before[name]!r},"
        f" and a file would hold {value!r}. Set the parameter back, or fit again.$"
    )
    for model in (chain, step):
        with pytest.raises(ValueError, match=message):
            save_pretrained(model, tmp_path / "chain")
    assert not list(tmp_path.iterdir())
    step.set_params(**before)
    save_pretrained(chain, tmp_path / "chain")
    loaded = load_pretrained(tmp_path / "chain")
    np.testing.assert_array_equal(loaded.predict(X), chain.predict(X))


def test_a_solution_that_is_no_number(tmp_path):
    chain = make_pipeline(encoder(), LinearSVC()).fit(X, y)
    chain[-1].coef_[:] = np.nan
    with pytest.raises(ValueError, match="cannot be saved: .*coef_' holds NaN"):
        save_pretrained(chain, tmp_path / "chain")


def put_in(folder, transformer, checksum):
    """Put another encoder into the folder of a chain, with or without the checksum of the chain."""
    shutil.rmtree(folder / "step0")
    transformer.save_pretrained(folder / "step0")
    if checksum:
        config = read_config(folder)
        node = config["chain"]["steps"][0][1]
        node["checksum"] = read_config(folder / "step0")["checksum"]
        write_config(folder, config)


def test_steps_that_do_not_fit_each_other(tmp_path):
    save_pretrained(make_pipeline(encoder(), LinearSVC()).fit(X, y), tmp_path / "chain")
    put_in(tmp_path / "chain", encoder(embedding_dim=4).fit(X), checksum=True)
    with pytest.raises(ValueError, match="LinearSVC takes 8 features, but 4 come before it"):
        load_pretrained(tmp_path / "chain")


def test_an_encoder_of_another_chain(tmp_path):
    """It would fit, and its embeddings would mean something else."""
    save_pretrained(make_pipeline(encoder(), LinearSVC()).fit(X, y), tmp_path / "chain")
    put_in(tmp_path / "chain", encoder(random_state=1).fit(X), checksum=False)
    with pytest.raises(ValueError, match="step0 is of another model: copy the whole folder again"):
        load_pretrained(tmp_path / "chain")


def test_a_chain_that_was_changed_is_refused(tmp_path):
    save_pretrained(make_pipeline(encoder(), LinearSVC()).fit(X, y), tmp_path / "chain")
    config = read_config(tmp_path / "chain")
    config["chain"]["steps"][1][1]["class"] = "os.system"
    write_config(tmp_path / "chain", config)
    with pytest.raises(ValueError, match="'os.system' is unknown; known are .*skops"):
        load_pretrained(tmp_path / "chain")


def test_a_chain_is_not_one_transformer(tmp_path):
    save_pretrained(make_pipeline(encoder(), LinearSVC()).fit(X, y), tmp_path / "chain")
    with pytest.raises(ValueError, match="holds a chain of steps.*sklearn_pulse.load_pretrained"):
        PulseTransformer.from_pretrained(tmp_path / "chain")


# --- the Hugging Face Hub, offline ---


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A module with the functions of huggingface_hub, whose repositories are folders here.

    Its value is a list: the name of each repository that was asked for, and whether privately.
    """
    repositories, asked = tmp_path / "hub", []

    def create_repo(repo_id, *, private=None, exist_ok=False):
        asked.append((repo_id, private))
        (repositories / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(*, repo_id, folder_path, delete_patterns):
        for path in [path for path in (repositories / repo_id).rglob("*") if path.is_file()]:
            name = str(path.relative_to(repositories / repo_id))
            if any(fnmatch.fnmatch(name, pattern) for pattern in delete_patterns):
                path.unlink()
        shutil.copytree(folder_path, repositories / repo_id, dirs_exist_ok=True)
        return f"https://huggingface.co/{repo_id}/commit/0"

    def snapshot_download(repo_id, *, revision=None, allow_patterns=None):
        if revision is not None or not (repositories / repo_id).is_dir():
            raise OSError("404 Client Error")
        cache = tmp_path / "cache" / repo_id  # links to files, as the cache of huggingface_hub
        for path in (repositories / repo_id).rglob("*"):
            if path.is_file() and any(path.match(pattern) for pattern in allow_patterns):
                link = cache / path.relative_to(repositories / repo_id)
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.exists():
                    link.symlink_to(path)
        return str(cache)

    module = types.SimpleNamespace(
        create_repo=create_repo, upload_folder=upload_folder, snapshot_download=snapshot_download
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return asked


def test_to_the_hub_and_back(hub):
    chain = make_pipeline(encoder(), StandardScaler(), LinearSVC()).fit(X, y)
    assert "lab/chain" in push_to_hub(chain, "lab/chain")
    loaded = load_pretrained("lab/chain")
    np.testing.assert_array_equal(loaded.decision_function(X), chain.decision_function(X))
    fitted = encoder().fit(X)
    fitted.push_to_hub("lab/encoder")
    restored = RandomEncoderTransformer.from_pretrained("lab/encoder")
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


def test_a_repository_is_private_where_that_is_asked_for(hub):
    fitted = encoder().fit(X)
    push_to_hub(fitted, "lab/a", private=True)
    push_to_hub(fitted, "lab/b")
    fitted.push_to_hub("lab/c", private=True)
    fitted.push_to_hub("lab/d")
    assert hub == [("lab/a", True), ("lab/b", None), ("lab/c", True), ("lab/d", None)]


def test_a_folder_goes_before_a_repository(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted = encoder().fit(X)
    fitted.save_pretrained("lab/encoder")
    restored = RandomEncoderTransformer.from_pretrained("lab/encoder")
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


def test_a_revision_of_what_is_no_repository_is_refused(hub, tmp_path, monkeypatch):
    """A folder of the repository's name would be loaded whatever its revision is."""
    monkeypatch.chdir(tmp_path)
    encoder().fit(X).save_pretrained("lab/encoder")
    for read in (load_pretrained, RandomEncoderTransformer.from_pretrained):
        with pytest.raises(ValueError, match="revision='v1', but lab/encoder is a folder, which"):
            read("lab/encoder", revision="v1")
        with pytest.raises(ValueError, match="eeg-174hz is a model that comes with the package, w"):
            read("eeg-174hz", revision="v1")


def test_encoders_of_an_earlier_chain_leave_the_repository(hub, tmp_path):
    fitted = encoder().fit(X)
    push_to_hub(make_pipeline(fitted, StandardScaler(), LinearSVC()).fit(X, y), "lab/chain")
    (tmp_path / "hub" / "lab" / "chain" / "LICENSE").write_text("BSD")
    fitted.push_to_hub("lab/chain")
    left = [path.name for path in (tmp_path / "hub" / "lab" / "chain").iterdir()]
    assert "step0" not in left or not any((tmp_path / "hub/lab/chain/step0").iterdir())
    assert {"LICENSE", "config.json", "model.safetensors"} <= set(left)


@pytest.mark.parametrize("read", [load_pretrained, PulseTransformer.from_pretrained])
def test_a_name_that_is_neither(hub, read):
    with pytest.raises(
        FileNotFoundError, match="there is no folder lab/none, and the Hugging Face Hub has no such"
    ):
        read("lab/none")
    encoder().fit(X).push_to_hub("lab/none")
    with pytest.raises(FileNotFoundError, match="404"):
        read("lab/none", revision="commit")
    for path in ("../none", "./none"):  # which no repository has as its name
        with pytest.raises(FileNotFoundError) as caught:
            read(path)
        assert "Hub" not in str(caught.value)


@pytest.mark.parametrize("read", [load_pretrained, RandomEncoderTransformer.from_pretrained])
def test_a_repository_without_a_model_and_a_damaged_one_are_named(hub, tmp_path, read):
    """The errors named folders of the cache, or a copy that was deleted by then."""
    (tmp_path / "hub" / "lab" / "empty").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="lab/empty of the Hugging Face Hub holds no model"):
        read("lab/empty")
    (tmp_path / "hub" / "lab" / "empty" / "README.md").write_text("# Another model")
    with pytest.raises(FileNotFoundError, match="lab/empty of the Hugging Face Hub holds no model"):
        read("lab/empty")
    encoder().fit(X).push_to_hub("lab/cut")
    os.truncate(tmp_path / "hub" / "lab" / "cut" / "model.safetensors", 100)
    with pytest.raises(ValueError, match="lab/cut of the .* lab/cut/model.safetensors is damaged"):
        read("lab/cut")


def test_an_error_of_the_connection_names_the_repository(hub, monkeypatch):
    class ProtocolError(Exception):
        """An error of httpx, which is no OSError."""

    def snapshot_download(*args, **kwargs):
        raise ProtocolError("peer closed connection")

    monkeypatch.setattr(sys.modules["huggingface_hub"], "snapshot_download", snapshot_download)
    with pytest.raises(FileNotFoundError, match="lab/encoder, .* or is out of reach.*peer closed"):
        load_pretrained("lab/encoder")


def test_the_weights_of_a_strangers_model_are_not_downloaded(hub, tmp_path):
    stranger = tmp_path / "hub" / "lab" / "bert"
    stranger.mkdir(parents=True)
    (stranger / "config.json").write_text('{"architectures": ["Bert"]}')
    (stranger / "model.safetensors").write_bytes(bytes(1000))
    with pytest.raises(ValueError, match="the repository lab/bert .* lab/bert/config.json"):
        load_pretrained("lab/bert")
    assert [path.name for path in (tmp_path / "cache").rglob("*.*")] == ["config.json"]


@pytest.mark.parametrize("revision", [5, ""])
@pytest.mark.parametrize("read", [load_pretrained, RandomEncoderTransformer.from_pretrained])
def test_a_revision_is_a_name(hub, read, revision):
    with pytest.raises(TypeError, match="revision must be the name of a branch, a tag or a commit"):
        read("lab/encoder", revision=revision)


def test_the_name_of_a_step_makes_no_heading_of_the_card(tmp_path):
    steps = [("a\n---\n# Licence\n\nMIT", encoder()), ("probe", LinearSVC())]
    save_pretrained(Pipeline(steps).fit(X, y), tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "# Licence" not in card.splitlines()
    assert "- a --- # Licence MIT: " in card


def test_other_files_in_the_cache_are_not_copied(hub, tmp_path):
    encoder().fit(X).push_to_hub("lab/encoder")
    (tmp_path / "cache" / "lab" / "encoder").mkdir(parents=True)
    (tmp_path / "cache" / "lab" / "encoder" / "huge.bin").symlink_to(tmp_path / "none")
    assert load_pretrained("lab/encoder").transform(X).shape[0] == len(X)


@pytest.mark.parametrize("read", [load_pretrained, PulseTransformer.from_pretrained])
def test_without_huggingface_hub(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(FileNotFoundError, match=r"no folder lab/none: .*sklearn-pulse\[hub\]"):
        read("lab/none")
    with pytest.raises(ImportError, match=r"sklearn-pulse\[hub\]"):
        push_to_hub(encoder().fit(X), "lab/none")
    with pytest.raises(ValueError, match="repo_id must be 'organisation/name'"):
        push_to_hub(encoder(), "none")  # not fitted: the name is read before anything is saved
