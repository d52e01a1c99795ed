"""Competing kernels of Hydra, against their definition and against aeon."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse._threads import threads
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import HydraTransformer
from tests.helpers import bridged, make_windows


def literal(x, observed, kernels, channels, dilation):
    """Both features of the kernels of one group on one window, step by step."""
    signal = x[:, channels].sum(1)
    won, lost = np.zeros(len(kernels)), np.zeros(len(kernels))
    for t in np.flatnonzero(observed):
        outputs = []
        for kernel in kernels:
            taps = [t + (place - 4) * dilation for place in range(9)]
            pairs = zip(kernel, taps, strict=True)
            inside = [(w, tap) for w, tap in pairs if 0 <= tap < len(x)]
            outputs.append(sum(w * signal[tap] for w, tap in inside))
        if max(outputs) - min(outputs) < 1e-5:
            continue  # all outputs are equal
        won[np.argmax(outputs)] += max(outputs)
        lost[np.argmin(outputs)] += 1
    number = max(observed.sum(), 1)
    return np.sqrt(np.maximum(won, 0) / number), np.sqrt(lost / number)


@pytest.mark.filterwarnings("ignore:X has more channels")
@pytest.mark.parametrize("n_timesteps", [1, 2, 8, 20, 50])
def test_features_literally(n_timesteps):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, n_timesteps, 5)).astype(np.float32)
    hydra = HydraTransformer(5, kernels_per_group=3, random_state=0).fit(X)
    X[1, (n_timesteps + 1) // 2 :] = np.nan
    X[2, 1::4] = np.nan
    X[3, n_timesteps // 3 :] = 10.0  # a stretch of one value
    features = iter(hydra.transform(X).T)
    observed = np.isfinite(X).all(2)
    for differenced, groups in enumerate(hydra.groups_):
        assert len(groups.kernels[0]) == 3 - differenced
        signals = []
        for x, seen in zip(map(bridged, X), observed, strict=True):
            if differenced:
                steps = seen[1:] & seen[:-1]
                x = np.diff(x, axis=0) * steps[:, None]
                seen = steps
            signals.append((x, seen))
        for dilation, kernels, channels in zip(*groups, strict=True):
            assert (channels.sum(1) == 2).all()
            expected = [
                [literal(x, seen, *own, dilation) for own in zip(kernels, channels, strict=True)]
                for x, seen in signals
            ]  # windows, groups, two counts, kernels
            for count in (0, 1):
                for group in range(len(kernels)):
                    for kernel in range(3):
                        values = [window[group][count][kernel] for window in expected]
                        np.testing.assert_allclose(next(features), values, rtol=1e-3, atol=1e-4)
    assert next(features, None) is None


@pytest.mark.parametrize("n_channels", [1, 6])
def test_counts_are_aeons(n_channels):
    """The same kernels and channels give aeon's counts, as shares of the time and rooted."""
    convolution = pytest.importorskip("aeon.transformations.collection.convolution_based")
    X = np.random.default_rng(0).normal(size=(10, 70, n_channels)).astype(np.float32)
    ours = HydraTransformer(6, kernels_per_group=4, random_state=0).fit(X)
    channels_first = np.ascontiguousarray(X.swapaxes(1, 2))
    with threads(torch.get_num_threads()), torch.random.fork_rng():  # aeon changes both
        theirs = convolution.HydraTransformer(n_kernels=4, n_groups=6, output_type="numpy")
        theirs.fit(channels_first)
        for level in range(4):
            for differenced, groups in enumerate(ours.groups_):
                kernels = torch.from_numpy(groups.kernels[level])
                theirs._hydra.W[level, differenced] = kernels.reshape(-1, 1, 9)
                chosen = [np.flatnonzero(own) for own in groups.channels[level]]
                theirs._hydra.idx[level][differenced] = torch.from_numpy(np.stack(chosen))
        counts = theirs.transform(channels_first).reshape(10, 4, 2, -1)  # levels, representations
    counts = np.concatenate(
        [counts[:, :, i].reshape(10, -1) / (70 - i) for i in (0, 1)], axis=1
    ).clip(0)
    np.testing.assert_allclose(np.square(ours.transform(X)), counts, atol=1e-6)


def test_a_constant_stretch_is_decided_by_no_rounding():
    """Where all outputs are zero, no kernel wins or loses, whatever the level."""
    hydra = HydraTransformer(8, random_state=0).fit(np.zeros((1, 100, 1)))
    X = np.zeros((2, 100, 1), np.float32)
    X[1, 20:70] = 0.1
    zero, step = hydra.transform(X)
    assert not zero.any()
    assert step.max() < 1
    widest = hydra.groups_[0].dilations[-1] * 8
    assert np.square(step[: hydra.groups_[0].kernels[..., 0].size * 2]).max() <= 2 * widest / 100


def test_channels_that_cancel_each_other_are_decided_by_no_rounding():
    """Of two leads that are each other turned over, every output is zero, in every unit."""
    x = np.random.default_rng(0).normal(size=(4, 100, 1)).astype(np.float32)
    X = np.concatenate([x, -x], axis=2)
    for unit in (1.0, 1e-3, 1e6):
        features = HydraTransformer(8, random_state=0).fit(unit * X).transform(unit * X)
        np.testing.assert_array_equal(features, 0.0)


def test_a_small_channel_beside_a_large_one_is_decided():
    x = np.random.default_rng(0).normal(size=(4, 100, 4)) * [1e-3, 1e-3, 1e6, 1e6]
    hydra = HydraTransformer(8, random_state=0).fit(x)
    lost = np.square(hydra.transform(x)[:, ~hydra._spread_has_unit]).reshape(4, -1, 8).sum(2)
    np.testing.assert_allclose(lost, 1.0, rtol=1e-5)  # at each step a kernel of the group loses


def test_windows_shorter_than_the_kernels_are_refused():
    X, _ = make_windows(6, 40, 2)
    hydra = HydraTransformer(8, random_state=0).fit(X)
    np.testing.assert_array_equal(hydra.groups_[0].dilations, [1, 2, 4])
    longer = np.concatenate([X, X], axis=1)
    assert hydra.transform(longer).shape == hydra.transform(X[:, :34]).shape
    with pytest.raises(ValueError, match="of 33 time steps, but the kernels of fit span 34"):
        hydra.transform(X[:, :33])


def test_kernels_are_of_mean_zero_and_read_eight_channels():
    X, _ = make_windows(4, 40, 30)
    groups = HydraTransformer(9, random_state=0).fit(X).groups_
    assert [part.kernels.shape for part in groups] == [(3, 5, 8, 9), (3, 4, 8, 9)]
    for part in groups:
        np.testing.assert_allclose(part.kernels.sum(-1), 0, atol=1e-6)
        np.testing.assert_allclose(np.abs(part.kernels).sum(-1), 1, rtol=1e-6)
        assert (part.channels.sum(-1) == 8).all()


def test_names_and_file(tmp_path):
    X, _ = make_windows(6, 20, 2)
    first = HydraTransformer(3, random_state=0).fit(X)
    assert first.get_feature_names_out()[-1] == "hydratransformer95"
    first.save_pretrained(tmp_path / "model")
    loaded = HydraTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), first.transform(X))


@pytest.mark.parametrize("params", [{"num_groups": 0}, {"kernels_per_group": "two"}])
def test_parameters_that_are_set_after_fit_do_not_matter(params):
    X, _ = make_windows(6, 20, 2)
    hydra = HydraTransformer(3, random_state=0).fit(X)
    features = hydra.transform(X)
    np.testing.assert_array_equal(hydra.set_params(**params).transform(X), features)


def test_probe_on_counts():
    X, y = make_windows(60, 64)
    pipeline = make_pipeline(HydraTransformer(16, random_state=0), make_linear_probe())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"num_groups": 1}, "num_groups must be an integer of at least 2"),
        ({"kernels_per_group": 1}, "kernels_per_group must be an integer of at least 2"),
    ],
)
def test_parameters(params, message):
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(ValueError, match=message):
        HydraTransformer(**params).fit(X)


def test_groups_read_two_channels_of_three():
    X = np.random.default_rng(0).normal(size=(5, 64, 3)).astype(np.float32)
    hydra = HydraTransformer(4, random_state=0).fit(X)
    assert all((group.channels.sum(-1) == 2).all() for group in hydra.groups_)
