"""Classifiers and regressors on disk: labels, units, the probe and the encoder they start from."""

import shutil

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from sklearn_pulse import FineTuneClassifier, FineTuneRegressor, PulseTransformer
from sklearn_pulse.base import WindowEmbedder
from sklearn_pulse.baselines import PatchTSTTransformer, SupervisedClassifier
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows
from tests.persistence.helpers import change_weights, read_config, same_state, write_config

TINY = {"max_epochs": 1, "batch_size": 8, "lr": 1e-2, "num_threads": 1, "random_state": 0}
X, Y = make_windows(12, n_channels=3)
TARGETS = np.column_stack([60.0 + 20 * Y, np.arange(12)])
LABELS = {
    "text": np.array(["calm", "active"])[Y],
    "objects": np.array(["calm", "active"], dtype=object)[Y],
    "booleans": Y == 1,
    "three": np.arange(12) % 3,
    "one target": TARGETS[:, 0],
    "two targets": TARGETS,
    "a constant target": np.full(12, 70.0),
    "a target and a constant target": np.column_stack([TARGETS[:, 0], np.full(12, 70.0)]),
}


@pytest.fixture(scope="module")
def frozen():
    pulse = PulseTransformer(**SMALL_PULSE | {"max_epochs": 1, "input_layout": "nct"})
    return FrozenEstimator(pulse.fit(make_windows(12, 20, 2, seed=1)[0].swapaxes(1, 2)))


def outputs(estimator, windows):
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(estimator, name):
            yield getattr(estimator, name)(windows)


def types_of_learnt(estimator):
    return {name: type(value) for name, value in vars(estimator).items() if name.endswith("_")}


def round_trip(estimator, windows, folder):
    """Save, load by both doors, and compare what is computed."""
    estimator.save_pretrained(folder)
    for cls in (type(estimator), WindowEmbedder):
        restored = cls.from_pretrained(folder, device="cpu")
        assert type(restored) is type(estimator)
        assert same_state(restored, estimator)
        assert types_of_learnt(restored) == types_of_learnt(estimator)
        for mine, theirs in zip(
            outputs(restored, windows), outputs(estimator, windows), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
    return restored


@pytest.mark.parametrize("kind", LABELS)
def test_labels_and_units_come_back(kind, tmp_path):
    cls = FineTuneRegressor if "target" in kind else FineTuneClassifier
    fitted = cls(**SMALL_ENCODER | TINY).fit(X, LABELS[kind])
    restored = round_trip(fitted, X, tmp_path / "model")
    assert restored.history_[0]["train_loss"] == fitted.history_[0]["train_loss"]
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert f"estimator = {cls.__name__}.from_pretrained" in card
    assert "predicted = estimator.predict(X)  # (n_samples, n_timesteps, 3)" in card


@pytest.mark.parametrize("kind", ["text", "objects", "booleans", "three"])
@pytest.mark.parametrize("cls", [FineTuneClassifier, SupervisedClassifier])
def test_a_weight_for_each_label_comes_back(cls, kind, tmp_path):
    weights = dict(zip(np.unique(LABELS[kind]), (1.0, 3.0, 2.0), strict=False))
    fitted = cls(**SMALL_ENCODER | TINY, class_weight=weights).fit(X, LABELS[kind])
    restored = round_trip(fitted, X, tmp_path / "model")
    assert restored.class_weight == weights
    again = clone(restored).set_params(num_threads=1)  # which no file holds
    assert same_state(again.fit(X, LABELS[kind]), fitted)


def test_the_supervised_baseline_comes_back(tmp_path):
    round_trip(SupervisedClassifier(**SMALL_ENCODER | TINY).fit(X, Y), X, tmp_path / "model")


@pytest.mark.parametrize("cls", [FineTuneClassifier, FineTuneRegressor])
def test_the_pretrained_encoder_comes_back_too(cls, frozen, tmp_path):
    """So the loaded estimator can be fitted again, and ends where the first one did."""
    windows = X.swapaxes(1, 2)
    fitted = cls(frozen, **TINY, freeze_epochs=1).fit(windows, Y)
    restored = round_trip(fitted, windows, tmp_path / "model")
    assert isinstance(restored.pretrained, FrozenEstimator)
    assert same_state(restored.pretrained.estimator, frozen.estimator)
    assert restored.input_layout_ == "nct"
    again = clone(restored).set_params(num_threads=1).fit(windows, Y)
    assert same_state(again, fitted)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "pretrained=a fitted PulseTransformer" in card
    assert "(n_samples, 3, n_timesteps)" in card


def test_a_folder_as_the_encoder(frozen, tmp_path):
    """Of the encoder that it starts from, and of an estimator that was fine-tuned before."""
    frozen.estimator.save_pretrained(tmp_path / "pulse")
    windows = X.swapaxes(1, 2)
    first = FineTuneClassifier(tmp_path / "pulse", **TINY).fit(windows, Y)
    round_trip(first, windows, tmp_path / "first")
    shutil.rmtree(tmp_path / "pulse")
    second = FineTuneRegressor(tmp_path / "first", **TINY).fit(windows, TARGETS)
    restored = round_trip(second, windows, tmp_path / "second")
    inner = restored.pretrained.estimator
    assert (type(inner), type(inner.pretrained.estimator)) == (FineTuneClassifier, PulseTransformer)


@pytest.mark.parametrize("labels", ["text", "three"])
def test_the_probe_comes_back(labels, tmp_path):
    fitted = FineTuneClassifier(**SMALL_ENCODER | TINY, score_with="probe")
    restored = round_trip(fitted.fit(X, LABELS[labels]), X, tmp_path / "model")
    restored.set_params(score_with="head")
    fitted.set_params(score_with="head")
    np.testing.assert_array_equal(restored.predict_proba(X), fitted.predict_proba(X))


def test_an_encoder_of_one_length_comes_back(tmp_path):
    small = {"embedding_dim": 8, "encoder_depth": 1, "n_heads": 2, "max_epochs": 1}
    patches = PatchTSTTransformer(**small, random_state=0, num_threads=1).fit(X)
    fitted = FineTuneClassifier(FrozenEstimator(patches), **TINY).fit(X, Y)
    restored = round_trip(fitted, X, tmp_path / "model")
    with pytest.raises(ValueError, match="takes no other length"):
        restored.predict(X[:, :9])


# --- wrong files ---


@pytest.fixture(scope="module")
def saved(frozen, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    windows = X.swapaxes(1, 2)
    classifier = FineTuneClassifier(frozen, **TINY, score_with="probe")
    classifier.fit(windows, LABELS["text"]).save_pretrained(home / "classifier")
    FineTuneRegressor(frozen, **TINY).fit(windows, TARGETS).save_pretrained(home / "regressor")
    return home


def changed(config, path, value):
    *parents, last = path.split("/")
    for name in parents:
        config = config[name]
    config[last] = value


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("classifier", "parameters/pretrained", "/etc", "no parameter 'pretrained' that a file"),
        ("classifier", "held/encoder", {}, "holds no transformer as 'encoder'"),
        ("classifier", "held", [], "wrong type"),
        ("classifier", "held/pretrained", [], "no model"),
        ("classifier", "held/pretrained", 1, "'pretrained' is 1, of the wrong type"),
        ("classifier", "held/pretrained/class", "TableOfFeatures", "'TableOfFeatures' is unknown"),
        ("classifier", "held/pretrained/class", "ChannelStatistics", "is unknown"),
        ("classifier", "held/pretrained/parameters/embedding_dim", 10**6, "embedding_dim|shape"),
        ("classifier", "held/pretrained/parameters/pooling", "sum", "pooling must be"),
        ("classifier", "fitted/classes_", {"array": ["a", "a"], "dtype": "U"}, "in order, each"),
        ("classifier", "fitted/classes_", {"array": ["a", 3], "dtype": "O"}, "labels of one kind"),
        ("classifier", "fitted/classes_", {"array": [[], []], "dtype": "O"}, "classes_ must"),
        ("classifier", "fitted/classes_", "ab", "classes_ must be an array"),
        ("classifier", "fitted/classes_", {"array": ["a"], "dtype": "U"}, "two labels or more"),
        ("classifier", "fitted/classes_", {"array": [1, 2, 3], "dtype": "<i8"}, "shape"),
        ("classifier", "fitted/input_layout_", "tnc", "input_layout_ must be one of"),
        ("classifier", "fitted/probe_", 1, "may not set the attribute 'probe_'"),
        ("regressor", "fitted/target_mean_", 1.0, "target_mean_ and target_scale_"),
        ("regressor", "fitted/target_mean_", None, "target_mean_ and target_scale_"),
        (
            "regressor",
            "fitted/target_scale_",
            {"array": [-1.0, 1.0], "dtype": "<f8"},
            "a scale is not negative",
        ),
        (
            "regressor",
            "fitted/target_mean_",
            {"array": [{"float": "nan"}, 1.0], "dtype": "<f8"},
            "must be finite numbers",
        ),
    ],
)
def test_wrong_configurations(saved, tmp_path, kind, path, value, message):
    folder = shutil.copytree(saved / kind, tmp_path / "model")
    config = read_config(folder)
    changed(config, path, value)
    write_config(folder, config)
    with pytest.raises(ValueError, match=message) as caught:
        WindowEmbedder.from_pretrained(folder)
    assert str(folder) in str(caught.value)


def without(name):
    return lambda weights: {key: value for key, value in weights.items() if key != name}


def replaced(name, value):
    return lambda weights: weights | {name: value}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("probe.coef"), "lacks 'probe.coef'"),
        (replaced("probe.coef", torch.ones(2, 8, dtype=torch.float64)), "'probe.coef' is float64"),
        (replaced("probe.scale", torch.zeros(8, dtype=torch.float64)), "a scale that is not posi"),
        (replaced("probe.mean", torch.full((8,), torch.nan, dtype=torch.float64)), "NaN or inf"),
        (replaced("probe.more", torch.zeros(1)), "no weights named 'probe.more'"),
        (without("pretrained/encoder.input.weight"), "lacks 'encoder.input.weight'"),
        (replaced("pretrained/more", torch.zeros(1)), "no weights named 'more'"),
        (replaced("other/more", torch.zeros(1)), "no weights named 'other/more'"),
    ],
)
def test_wrong_weights(saved, tmp_path, change, message):
    folder = shutil.copytree(saved / "classifier", tmp_path / "model")
    change_weights(folder, change)
    with pytest.raises(ValueError, match=message) as caught:
        FineTuneClassifier.from_pretrained(folder)
    assert str(folder) in str(caught.value)


def test_another_encoder_set_after_the_fit_is_refused(frozen, tmp_path):
    fitted = FineTuneClassifier(frozen, **TINY).fit(X.swapaxes(1, 2), Y)
    fitted.set_params(pretrained=None, **SMALL_ENCODER)
    with pytest.raises(ValueError, match="cannot be saved"):
        fitted.save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model").exists()
