"""Which blocks of features are taken, and what they read."""

import functools

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._preparation import Preparation
from sklearn_pulse._closed_form._sample import sample_of_people
from sklearn_pulse._data._windows import CheckedWindows
from sklearn_pulse.windows import sliding_windows
from tests.helpers import make_windows

from .hearts import hearts
from .literal import SMALL


def test_blocks_are_transformers():
    """The fitted blocks compute features on their own, of a table too."""
    X, _ = make_windows(12, 16)
    cross = CrossPredictionTransformer(**SMALL).fit(X[:, :, 0])
    for block in cross.blocks_.values():
        features = block.transform(X[:, :, 0])
        assert features.shape == (12, len(block.get_feature_names_out()))
        np.testing.assert_array_equal(features, block.transform(X[:, :, :1]))
        np.testing.assert_array_equal(features, clone(block).fit_transform(X[:, :, 0]))


def test_blocks_read_what_the_transformer_reads(tmp_path):
    """A block takes X channels first, and bags, as the transformer does, loaded ones too."""
    X, _ = make_windows(12, 16)
    bags = X.reshape(4, 3, *X.shape[1:])
    cross = CrossPredictionTransformer(**SMALL, input_layout="nct", bag_pooling="max")
    cross.fit(bags.swapaxes(2, 3)).save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    for fitted in (cross, loaded):
        for block in fitted.blocks_.values():
            features = block.transform(X.swapaxes(1, 2))
            pooled = features.reshape(4, 3, -1).max(1)
            np.testing.assert_array_equal(block.transform(bags.swapaxes(2, 3)), pooled)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "n_before"),
    [("quantiles", 0), ("hydra", 1), ("rhythm", 2), ("covariance", 3), ("envelopes", 4)],
)
def test_further_blocks(name, n_before, share, tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 50, 2)).astype(np.float32)
    groups = np.arange(6) // 3
    four = (0.1, 0.05, 0.6, 0.25)
    params = {"num_kernels": 84, "embedding_dim": 16, "random_state": 0}
    cross = CrossPredictionTransformer(block_weights=(*four, *n_before * [0.0], share), **params)
    cross.fit(X, groups=groups)
    assert (name in cross.blocks_) == (name in cross.predictability_["blocks"]) == (share > 0)
    assert len(cross.blocks_) == 4 + (share > 0)
    assert cross.whitening_ == 0  # which "auto" raises only under shares that it chose too
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))
    without = cross.set_params(block_weights=four).fit(X, groups=groups)
    assert (loaded.transform(X) == without.transform(X)).all() == (share == 0)


def hearts_or_noise(is_heart):
    X, groups = hearts()
    if not is_heart:
        X = np.random.default_rng(0).normal(size=X.shape).astype(np.float32)
    return X, groups


@functools.cache
def rhythm_alone(is_heart):
    """Return what the halves of windows say of the rhythm, whatever the views of a fit."""
    X, groups = hearts_or_noise(is_heart)
    params = SMALL | {"views": "halves", "block_weights": (0, 0, 0, 0, 0, 0, 1), "rho": 0.03}
    alone = CrossPredictionTransformer(**params).fit(X, groups=groups)
    return alone.predictability_["blocks"]["rhythm"]


@pytest.mark.parametrize("views", ["adjacent", "halves"])
@pytest.mark.parametrize("is_heart", [True, False])
def test_the_rhythm_is_taken_where_it_lasts(views, is_heart, tmp_path):
    X, groups = hearts_or_noise(is_heart)
    params = SMALL | {"views": views}
    known = groups if views == "adjacent" else None
    cross = CrossPredictionTransformer(**params).fit(X, groups=known)
    assert (rhythm_alone(is_heart) > 0.3) == is_heart
    assert ("rhythm" in cross.blocks_) == is_heart
    expected = [0.06, 0.03, 0.36, 0.15, 0.15, 0.25, 0, 0, 0]
    if is_heart:
        expected = [*(0.85 * np.array([0, 0.03, 0.32, 0.13, 0.3, 0.22])), 0.15, 0, 0]
    np.testing.assert_allclose(cross.block_weights_, expected)
    assert cross.whitening_ == (0.5 if is_heart else 0.0)
    used = {"block_weights": cross.block_weights_, "whitening": cross.whitening_}
    stated = CrossPredictionTransformer(**params | used)
    some = X[::12]  # one window of each person tells a difference too
    embedding = cross.transform(some)
    np.testing.assert_array_equal(stated.fit(X, groups=known).transform(some), embedding)
    for number, fitted in enumerate((cross, stated)):
        fitted.save_pretrained(tmp_path / str(number))
        loaded = CrossPredictionTransformer.from_pretrained(tmp_path / str(number))
        np.testing.assert_array_equal(loaded.transform(some), embedding)
        np.testing.assert_array_equal(loaded.block_weights_, cross.block_weights_)
        assert loaded.whitening_ == cross.whitening_
        assert loaded.nearest_ == cross.nearest_ == 0.0


@pytest.mark.parametrize("views", ["auto", "halves"])
def test_statistics_have_most_of_several_channels_of_recordings(views, tmp_path):
    """Windows of recordings may start anywhere, trials without recordings may not."""
    X = np.random.default_rng(0).normal(size=(40, 64, 2)).astype(np.float32)
    params = SMALL | {"num_kernels": 84, "views": views}
    cross = CrossPredictionTransformer(**params).fit(X, groups=np.arange(40) // 10)
    of_recordings, usual = (
        (0.6, 0.01, 0.15, 0.065, 0.065, 0.11),
        (0.06, 0.03, 0.36, 0.15, 0.15, 0.25),
    )
    six = np.array(of_recordings if views == "auto" else usual)
    np.testing.assert_allclose(cross.block_weights_, [*(0.85 * six), 0, 0.15, 0])
    np.testing.assert_allclose(cross.block_weights_.sum(), 1)
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X[:6]), cross.transform(X[:6]))
    without = CrossPredictionTransformer(**params).fit(X)
    np.testing.assert_allclose(without.block_weights_[0], 0.85 * 0.06)  # no recordings are known


def swells(states_change, n_people=8, n_windows=40, n_timesteps=160):
    """Noise whose power swells slowly or fast, in turn or in recordings of their own."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(n_people), n_windows)
    is_fast = np.arange(n_people * n_windows) // 5 % 2 if states_change else person % 2
    period = np.where(is_fast == 1, 40.0, 120.0)[:, None]
    phase = 2 * np.pi * (np.arange(n_timesteps) / period + rng.random((len(person), 1)))
    X = (1.2 + np.sin(phase)) * rng.normal(size=phase.shape)
    return X[..., None].astype(np.float32), person


@pytest.mark.parametrize("views", ["auto", "halves"])
@pytest.mark.parametrize("states_change", [True, False])
def test_envelopes_of_one_channel_are_taken_where_states_change(states_change, views, tmp_path):
    X, person = swells(states_change)
    params = SMALL | {"num_kernels": 84, "views": views}
    cross = CrossPredictionTransformer(**params).fit(X, groups=person)
    assert ("envelopes" in cross.blocks_) == states_change and "covariance" not in cross.blocks_
    six = np.array([0.06, 0.03, 0.36, 0.15, 0.15, 0.25])
    expected = [*(0.85 * six), 0, 0, 0.15] if states_change else [*six, 0, 0, 0]
    np.testing.assert_allclose(cross.block_weights_, expected)
    alone = CrossPredictionTransformer(**params, block_weights=(0,) * 8 + (1,))
    assert (alone.fit(X, groups=person).kappa_ > 0.5) == states_change
    if views == "halves":  # whether they change cannot be told of recordings that are not known
        assert "envelopes" not in CrossPredictionTransformer(**params).fit(X).blocks_
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X[:6]), cross.transform(X[:6]))


def test_the_choice_of_envelopes_reads_whole_recordings_of_a_sample(monkeypatch):
    """Of a random sample of windows, hardly any would be adjacent."""
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 100)
    X, person = swells(True)
    sizes, fit = [], Preparation.adjacent

    def spy(self, run, windows, index, paired):
        sizes.append(sorted(np.unique(person[index], return_counts=True)[1].tolist()))
        return fit(self, run, windows, index, paired)

    monkeypatch.setattr(Preparation, "adjacent", spy)
    params = SMALL | {"num_kernels": 84}
    cross = CrossPredictionTransformer(**params).fit(X, groups=person)
    assert sizes == [[20, 40, 40], [40] * 8] and "envelopes" in cross.blocks_
    sizes.clear()
    person = np.zeros_like(person)
    CrossPredictionTransformer(**params, views="adjacent").fit(X)
    assert sizes == [[100], [320]]
    # The recordings that are drawn may have no adjacent windows.
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 3)
    sizes.clear()
    cross = CrossPredictionTransformer(**params).fit(X[:22], groups=[*range(21), 20])
    assert len(sizes) == 1 and cross.n_pairs_ == 1 and "envelopes" not in cross.blocks_


@pytest.mark.parametrize("kappa", [0.49, 0.51])
def test_envelopes_are_taken_if_kappa_is_above_one_half(kappa, monkeypatch):
    X, person = swells(True, n_people=2, n_windows=10)
    monkeypatch.setattr("sklearn_pulse._closed_form._choice.kappa_of", lambda prepared: kappa)
    cross = CrossPredictionTransformer(**SMALL | {"num_kernels": 84}).fit(X, groups=person)
    assert ("envelopes" in cross.blocks_) == (kappa > 0.5)


@pytest.mark.parametrize("sizes", [[310, 10], [10, 310], [40] * 8, [30]])
def test_recordings_are_drawn_until_they_fill_a_sample(sizes, monkeypatch):
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 100)
    recording = np.repeat(np.arange(len(sizes)), sizes)
    drawn = set()
    for seed in range(6):
        places = sample_of_people(recording, seed)
        assert len(places) == min(100, len(recording)) and (np.diff(places) > 0).all()
        drawn.add(tuple(np.unique(recording[places])))
    assert len(sizes) < 8 or len(drawn) > 1


@pytest.mark.parametrize("views", ["adjacent", "halves"])
@pytest.mark.parametrize("share", [0.15, 1000])
def test_a_rhythm_that_does_not_vary_leaves_its_share_to_the_others(views, share):
    """One smooth beat in each window has no interval."""
    rng = np.random.default_rng(0)
    place, width, height = rng.uniform([28, 8, 0.5], [36, 16, 2], size=(40, 3)).T[..., None]
    X = (height * np.exp(-((np.arange(64) - place) ** 2) / width))[..., None]
    weights = (0.1, 0.05, 0.6, 0.25, 0, 0, share)
    params = {"num_kernels": 84, "embedding_dim": 100, "random_state": 0, "views": views}
    cross = CrossPredictionTransformer(block_weights=weights, **params)
    Z = cross.fit(X, groups=np.arange(40) // 10).transform(X)
    assert np.isnan(cross.predictability_["blocks"]["rhythm"])
    assert Z.var(0).mean() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("n_channels", "rho"), [(1, 1.0), (4, 1.5e-4)])
def test_the_choice_of_the_rhythm_depends_on_no_number_of_windows_and_no_ridge(n_channels, rho):
    X, groups = hearts()
    rng = np.random.default_rng(0)
    X = X + 0.02 * rng.normal(size=(*X.shape[:2], n_channels)).astype(np.float32)
    few = np.sort(rng.permutation(len(X))[:30])
    params = SMALL | {"rho": rho}
    assert "rhythm" in CrossPredictionTransformer(**params).fit(X[few], groups=groups[few]).blocks_
    noise = rng.normal(size=X.shape).astype(np.float32)
    for index in (few, slice(None)):
        fitted = CrossPredictionTransformer(**params).fit(noise[index], groups=groups[index])
        assert "rhythm" not in fitted.blocks_


@pytest.mark.parametrize(("views", "n_passes"), [("adjacent", 2), ("halves", 3), ("auto", 2)])
@pytest.mark.parametrize("bags", [False, True])
def test_the_choice_of_blocks_needs_no_further_pass(views, n_passes, bags, monkeypatch):
    """Windows are read to be checked, to find gaps in halves or overlap, and for the moments."""
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 20)
    X, groups = make_windows(600)[0], np.arange(600) // 30
    X = X.reshape(20, 30, *X.shape[1:]) if bags else X
    read, take = [], CheckedWindows.take

    def spy(self, index):
        read.append(len(index))
        return take(self, index)

    monkeypatch.setattr(CheckedWindows, "take", spy)
    cross = CrossPredictionTransformer(**SMALL, views=views)
    cross.fit(X, groups=None if bags else groups)
    n_of_sample = sum(n for n in read if n == 20)
    n_of_kernels = 3 * 84 * (3 if views == "halves" else 1)  # three banks of each view
    n_of_scale = 256 * (3 if views == "halves" else 1)  # of the channels, in each view
    n_of_overlap = 64  # pairs that are compared
    assert sum(read) - n_of_sample == n_passes * 600 + n_of_kernels + n_of_scale + n_of_overlap
    assert n_of_sample <= 20 * 12


@pytest.mark.parametrize("n_timesteps", [40, 200])
@pytest.mark.parametrize("overlap", [0, 2, 4])
def test_overlap_is_no_rhythm(n_timesteps, overlap):
    noise = list(np.random.default_rng(0).normal(size=(6, 6000, 1)))
    stride = n_timesteps // max(1, overlap)
    w = sliding_windows(noise, n_timesteps, stride)
    cross = CrossPredictionTransformer(**SMALL).fit(w.X[:750], groups=w.recording[:750])
    assert "rhythm" not in cross.blocks_


@pytest.mark.parametrize(("num_kernels", "sizes"), [(84, (84, 84, 2)), (1000, (1000, 125, 6))])
def test_all_convolutions_grow_with_the_number_of_kernels(num_kernels, sizes):
    X = np.random.default_rng(0).normal(size=(6, 50, 1))
    blocks = CrossPredictionTransformer(num_kernels=num_kernels, n_components=4).fit(X).blocks_
    assert (
        blocks["minirocket"].num_kernels,
        blocks["multirocket"].num_kernels,
        blocks["hydra"].num_groups,
    ) == sizes


def test_a_handful_of_windows_has_no_rhythm():
    for n in (2, 3, 4, 9):
        X = np.random.default_rng(n).normal(size=(n, 256, 1))
        assert "rhythm" not in CrossPredictionTransformer(**SMALL).fit(X).blocks_
