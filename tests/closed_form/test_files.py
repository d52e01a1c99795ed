"""Cross-prediction that is stored."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from tests.helpers import make_windows

from .literal import (
    SMALL,
)


def test_pickle_and_seed():
    X, _ = make_windows(30, 32)
    cross = CrossPredictionTransformer(**SMALL).fit(X)
    embedding = cross.transform(X)
    np.testing.assert_array_equal(clone(cross).fit_transform(X), embedding)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cross)).transform(X), embedding)
    other = clone(cross).set_params(random_state=1).fit_transform(X)
    assert not np.array_equal(other, embedding)
    assert cross.set_output(transform="pandas").transform(X).shape == (30, 16)


def test_saved_and_loaded(tmp_path):
    X, _ = make_windows(30, 40)
    X[3, 5:9] = np.nan
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=np.arange(30) // 10)
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))
    assert loaded.get_params() == cross.get_params()
    assert (loaded.kappa_, loaded.alpha_, loaded.n_pairs_) == (
        *(cross.kappa_, cross.alpha_),
        cross.n_pairs_,
    )
    assert loaded.predictability_["blocks"] == cross.predictability_["blocks"]
    for name, block in cross.blocks_.items():
        twin = loaded.blocks_[name]
        assert twin.get_params() == block.get_params()
        np.testing.assert_array_equal(twin.transform(X), block.transform(X))
    loaded.save_pretrained(tmp_path / "again")
    files = [tmp_path / name / "model.safetensors" for name in ("model", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(ValueError, match="fitted with num_kernels=84, and a file would hold 168"):
        cross.set_params(num_kernels=168).save_pretrained(tmp_path / "other")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("map", lambda w: w[:, :-1]),
        ("components", lambda w: w[:-1]),
        ("scale", lambda w: w * np.nan),
        ("mean", None),
        ("minirocket.banks.0.0.biases", lambda w: w[:-1]),
        ("multirocket.banks.1.0.channels", None),
        ("further", lambda w: np.zeros(1)),
    ],
)
def test_files_of_other_weights_are_refused(tmp_path, monkeypatch, name, change):
    X, _ = make_windows(12, 16)
    cross = CrossPredictionTransformer(**SMALL).fit(X)
    weights = {key: value.numpy() for key, value in cross._weights().items()}
    changed = change(weights.get(name)) if change else None
    weights = {key: value for key, value in weights.items() if key != name}
    if changed is not None:
        weights[name] = np.ascontiguousarray(changed)
    monkeypatch.setattr(
        cross, "_weights", lambda: {key: torch.from_numpy(w) for key, w in weights.items()}
    )
    with pytest.raises(ValueError, match="cannot be saved: .*" + name.split(".", 1)[-1]):
        cross.save_pretrained(tmp_path / "model")


class Halves(CrossPredictionTransformer):
    """A user's class, with few parameters of its own."""

    def __init__(self, rho=0.01):
        super().__init__(views="halves", rho=rho, **SMALL)


def test_a_subclass_with_other_parameters_is_saved(tmp_path):
    X, _ = make_windows(6, 16)
    halves = clone(Halves(0.02)).fit(X)
    halves.save_pretrained(tmp_path / "model")
    loaded = Halves.from_pretrained(tmp_path / "model")
    assert loaded.rho == 0.02
    np.testing.assert_array_equal(loaded.transform(X), halves.transform(X))


@pytest.mark.filterwarnings("ignore:All windows of X have the same features:UserWarning")
@pytest.mark.parametrize("n_windows", [6, 80])  # fewer than the 22 columns, and more
def test_a_fit_to_windows_of_the_same_features_can_be_saved(n_windows, tmp_path):
    X = np.ones((n_windows, 48, 2))
    cross = CrossPredictionTransformer(**SMALL | {"block_weights": (1, 0, 0, 0)})
    cross.fit(X, groups=np.arange(n_windows) // 2).save_pretrained(tmp_path)
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))
