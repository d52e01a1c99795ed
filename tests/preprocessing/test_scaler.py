"""WindowScaler against its formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_pulse import PulseTransformer
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler, _quantiles, _source
from sklearn_pulse.windows import LazyWindows
from tests.helpers import small
from tests.preprocessing.data import as_lazy, make_gaps, quick, windows

GROUPS = np.array(["b", "a", "b", "a", "c", "c"])


def slow_statistics(values, robust):
    """Centre and scale of the observed values, by numpy."""
    values = values[~np.isnan(values)]
    if not len(values):
        return 0.0, 1.0
    if not robust:
        return values.mean(), values.std() if np.ptp(values) else 1.0
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return median, (high - low) / 1.3489795 if high > low else 1.0


def slow_scale(X, names, robust):
    """Scale the windows of each name by the statistics of all of them."""
    result = np.empty(X.shape)
    for name in np.unique(names):
        for c in range(X.shape[2]):
            center, scale = slow_statistics(X[names == name, :, c].ravel(), robust)
            result[names == name, :, c] = (X[names == name, :, c] - center) / scale
    return result


def names_of(per, n):
    return {"channel": np.zeros(n), "window": np.arange(n), "recording": GROUPS[:n]}[per]


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("per", ["channel", "window", "recording"])
@quick
@given(X=windows)
@pytest.mark.filterwarnings("ignore:X has more channels:UserWarning")
def test_equals_the_formula(per, robust, X):
    X = np.round(X, 3)  # rounding in the formula's variance must not look like spread
    scaler = WindowScaler(per=per, robust=robust)
    scaled = scaler.fit_transform(X, groups=GROUPS[: len(X)])
    expected = slow_scale(X, names_of(per, len(X)), robust)
    np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("robust", [False, True])
def test_blocks_do_not_change_the_statistics(robust, monkeypatch):
    X = make_gaps()
    whole = WindowScaler(robust=robust).fit(X)
    by_recording = WindowScaler(per="recording", robust=robust).fit_transform(X, groups=GROUPS)
    monkeypatch.setattr(_source, "_BLOCK_VALUES", 7)  # less than one window
    lazy = as_lazy(X)
    for given_as in (X, list(X), lazy, X.reshape(2, 3, 40, 2)):
        scaler = WindowScaler(robust=robust).fit(given_as)
        rtol = 1e-6 if given_as is lazy else 1e-12  # lazy windows are float32
        np.testing.assert_allclose(scaler.center_, whole.center_, rtol=rtol)
        np.testing.assert_allclose(scaler.scale_, whole.scale_, rtol=rtol)
    pieces = WindowScaler(per="recording", robust=robust).fit_transform(X, groups=GROUPS)
    np.testing.assert_allclose(pieces, by_recording, rtol=1e-6)


@pytest.mark.parametrize("per", ["channel", "window", "recording"])
@pytest.mark.parametrize("robust", [False, True])
def test_large_offsets_lose_no_precision(per, robust):
    noise = np.random.default_rng(0).normal(size=(6, 5000, 2))
    options = {"groups": np.zeros(6)}
    expected = WindowScaler(per=per, robust=robust).fit_transform(noise, **options)
    scaled = WindowScaler(per=per, robust=robust).fit_transform(noise + 1e6, **options)
    np.testing.assert_allclose(scaled, expected, atol=1e-8 + 1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("per", ["channel", "window", "recording"])
@pytest.mark.parametrize("level", [0.0, 0.1, 1e6 / 3, -1e-30])
def test_constant_channels_become_zero(per, robust, level):
    X = np.full((3, 1000, 2), level)
    X[:, :, 1] = np.arange(1000)
    scaled = WindowScaler(per=per, robust=robust).fit_transform(X, groups=[0, 0, 1])
    assert not scaled[:, :, 0].any()
    assert np.isfinite(scaled).all()


def test_rounding_is_no_spread():
    X = np.tile([0.1, 0.1 + 2e-17, np.nextafter(0.1, 1)], (2, 4))
    assert WindowScaler().fit(X).scale_ == 1


@pytest.mark.parametrize("per", ["channel", "window", "recording"])
def test_mean_and_deviation_can_be_left_out(per):
    X = make_gaps()
    both = slow_scale(X, names_of(per, 6), False)

    def fit(**options):
        return WindowScaler(per=per, **options).fit_transform(X, groups=GROUPS)

    np.testing.assert_array_equal(fit(with_mean=False, with_std=False), X.astype(np.float32))
    scales = fit(with_mean=False) / fit(with_mean=False, with_std=False)
    np.testing.assert_allclose(fit(with_std=False) * scales, both, rtol=1e-4, atol=1e-5)


def test_statistics_are_those_of_fit():
    X = make_gaps()
    scaler = WindowScaler().fit(X[:3])
    center, scale = zip(*(slow_statistics(X[:3, :, c].ravel(), False) for c in (0, 1)), strict=True)
    np.testing.assert_allclose(scaler.transform(X), (X - center) / scale, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scaler.center_, center)
    np.testing.assert_allclose(scaler.scale_, scale)


@pytest.mark.parametrize("robust", [False, True])
def test_inverse(robust):
    X = make_gaps()
    scaler = WindowScaler(robust=robust).fit(X)
    for given_as in (X, list(X), as_lazy(X), X.reshape(3, 2, 40, 2)):
        back = np.asarray(scaler.inverse_transform(scaler.transform(given_as))).reshape(X.shape)
        np.testing.assert_allclose(back, X, rtol=1e-5, atol=1e-5)
    lossy = WindowScaler(per="window").fit(X)
    assert not hasattr(WindowScaler(per="window"), "inverse_transform")
    for per in ("window", "channel"):  # which acts from the next fit on
        with pytest.raises(AttributeError) as caught:
            lossy.set_params(per=per).inverse_transform(X)
        assert "per='window' keeps no statistics to undo" in str(caught.value.__cause__)
    scaler.set_params(per="window")
    back = scaler.inverse_transform(scaler.transform(X))
    np.testing.assert_allclose(back, X, rtol=1e-5, atol=1e-5)
    assert scaler.fit(X).center_ is None


@pytest.mark.parametrize("robust", [False, True])
def test_bags_lists_and_lazy_windows_know_their_recordings(robust):
    X = make_gaps()
    scaler = WindowScaler(per="recording", robust=robust)
    pairs = scaler.fit_transform(X, groups=np.arange(6) // 2)
    bags = scaler.fit_transform(X.reshape(3, 2, 40, 2))
    np.testing.assert_array_equal(bags.reshape(X.shape), pairs)
    lazy = scaler.fit_transform(as_lazy(X))
    np.testing.assert_allclose(np.asarray(lazy), pairs, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(lazy[[5, 2]][1:], lazy.take([2]))
    recordings = [X[0], X[1, :-3]]
    one = scaler.fit_transform(recordings)
    for x, y in zip(
        one, WindowScaler(per="window", robust=robust).fit_transform(recordings), strict=True
    ):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_bags_and_lazy_windows_know_better_than_groups():
    X = make_gaps()
    scaler = WindowScaler(per="recording")
    for given_as in (X.reshape(3, 2, 40, 2), as_lazy(X)):
        expected = scaler.fit_transform(given_as)
        wrong = np.zeros(len(given_as))  # all of one recording
        np.testing.assert_array_equal(scaler.fit_transform(given_as, groups=wrong), expected)


@pytest.mark.parametrize("per", ["channel", "window", "recording"])
def test_lazy_windows_learn_their_recordings_from_groups_that_are_used(per):
    X = make_gaps()

    class Unplaced(LazyWindows):
        shape = X.shape

        def take(self, indices):
            return X[indices].astype(np.float32)

    scaled = WindowScaler(per=per).fit_transform(Unplaced(), groups=GROUPS)
    expected = WindowScaler(per=per).fit_transform(X.astype(np.float32), groups=GROUPS)
    np.testing.assert_array_equal(scaled, expected)
    assert (scaled.recording is not None) == (per == "recording")


@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("n_shorter", [0, 3])
def test_groups_join_the_arrays_of_a_list(n_channels, n_shorter):
    X = np.random.default_rng(0).normal(size=(6, 40, n_channels))
    X[1, 40 - n_shorter :] = np.nan  # what the list lacks
    arrays = [*X[:1], X[1, : 40 - n_shorter], *X[2:]]
    arrays = [x[:, 0] for x in arrays] if n_channels == 1 else arrays
    result = WindowScaler(per="recording").fit_transform(arrays, groups=GROUPS)
    for x, y in zip(result, slow_scale(X, GROUPS, robust=False), strict=True):
        np.testing.assert_allclose(x.reshape(len(x), -1), y[: len(x)], rtol=1e-5, atol=1e-6)


def test_recordings_must_be_known():
    X = make_gaps()
    scaler = WindowScaler(per="recording").fit(X)
    with pytest.raises(ValueError, match=r"needs the recording of each window.*groups=.*bags"):
        scaler.transform(X)
    with pytest.raises(ValueError, match="groups has shape"):
        scaler.transform(X, groups=[0, 1])


def test_groups_are_routed_through_a_pipeline():
    X, y = np.delete(make_gaps(7), [2, 4], axis=0), [0, 1, 0, 1, 0]
    with config_context(enable_metadata_routing=True):
        scaler = WindowScaler(per="recording").set_transform_request(groups=True)
        pipe = make_pipeline(scaler, StatisticsTransformer(), LogisticRegression())
        predicted = pipe.fit(X, y, groups=[0, 0, 1, 1, 2]).predict(X, groups=[0, 0, 1, 1, 2])
    assert predicted.shape == (5,)
    alone = scaler.fit_transform(X, groups=[0, 0, 1, 1, 2])
    np.testing.assert_array_equal(clone(pipe[1]).fit_transform(alone), pipe[1].transform(alone))


@pytest.mark.parametrize(
    ("container", "name"),
    [
        (np.asarray, r"X\[4\]"),
        (list, r"X\[4\]"),
        (as_lazy, r"X\[4\]"),
        (lambda X: X.reshape(3, 2, *X.shape[1:]), r"X\[2\]"),  # the bag
    ],
    ids=["array", "list", "lazy", "bags"],
)
def test_results_beyond_float32_are_named(container, name):
    X = np.random.default_rng(0).normal(size=(6, 8, 2))
    scaler = WindowScaler().fit(container(1e-5 * X))
    X[4] *= 1e37
    with pytest.raises(ValueError, match=f"{name} lead to results too large for float32: replace"):
        np.asarray(scaler.transform(container(X))[:])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"per": "patient"}, ValueError, "per must be one of 'channel', 'window', 'recording'"),
        ({"with_mean": 1}, TypeError, "with_mean must be True or False"),
        ({"with_std": None}, TypeError, "with_std must be True or False"),
        ({"robust": "yes"}, TypeError, "robust must be True or False"),
    ],
)
def test_parameters_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        WindowScaler(**options).fit(make_gaps())


def test_a_memory_map_is_not_loaded(tmp_path):
    np.save(tmp_path / "X.npy", make_gaps(60))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    sizes = [x.size for x in _source.ArrayWindows(mapped, "ntc").pieces()]
    assert sum(sizes) == mapped.size
    long = np.lib.stride_tricks.as_strided(mapped, (1, 2**26, 2), (0, 0, 8), writeable=False)
    first = next(_source.ArrayWindows(long, "ntc").pieces())
    assert first.size <= 2**20


@pytest.mark.parametrize("small", [0, 100])
def test_quartiles_have_the_same_bits_however_they_are_found(small, monkeypatch):
    X = make_gaps(30).round(1)
    X[7, :, 1] = np.where(np.arange(40) % 2, -0.0, 0.0)
    recordings = [x[: 11 + i] for i, x in enumerate(X)]
    for per in ("channel", "recording"):
        scaler = WindowScaler(per=per, robust=True)
        with monkeypatch.context() as patch:
            sorted_values = scaler.fit_transform(recordings)
            patch.setattr(_quantiles, "_SMALL", small)  # so that digits are counted
            counted = scaler.fit_transform(recordings)
        for x, expected in zip(counted, sorted_values, strict=True):
            assert x.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("robust", "small", "n_passes"), [(False, 0, 1), (True, 0, 5), (True, 2**19, 1)]
)
def test_a_long_lazy_window_is_read_once_per_pass(robust, small, n_passes, monkeypatch):
    monkeypatch.setattr(_source, "_BLOCK_VALUES", 7)  # less than one window
    monkeypatch.setattr(_quantiles, "_SMALL", small)
    n_reads = []

    class Counting(LazyWindows):
        shape = (2, 40, 2)

        def take(self, indices):
            n_reads.extend(indices)
            return np.ones((len(indices), 40, 2), dtype=np.float32)

    WindowScaler(robust=robust).fit(Counting())
    assert sorted(n_reads) == [0] * n_passes + [1] * n_passes


def test_a_spread_that_float32_cannot_tell_is_none():
    X = np.array([[[-1.0], [-1.7e-91], [0.0], [0.0], [0.0]]])
    scaler = WindowScaler(robust=True).fit(X)
    assert scaler.scale_.tolist() == [1.0]
    np.testing.assert_array_equal(scaler.transform(X)[0, :, 0], [-1, 0, 0, 0, 0])


def test_groups_that_are_not_needed_may_be_those_of_other_windows():
    """A pipeline passes groups of X to the steps that X_val goes through, too."""
    X = np.random.default_rng(0).normal(size=(6, 8, 2))
    scaler = WindowScaler().fit(X)
    scaled = scaler.transform(X[:2], groups=np.arange(9))
    np.testing.assert_array_equal(scaled, scaler.transform(X[:2]))
    scaler = WindowScaler(per="recording").fit(X)
    with pytest.raises(ValueError, match="groups has shape"):
        scaler.transform(X[:2], groups=np.arange(9))
    for knowing in (as_lazy(X[:2]), X[:2, None]):
        scaled = scaler.transform(knowing, groups=np.arange(9))
        np.testing.assert_array_equal(scaled, scaler.transform(knowing))


def test_a_pipeline_passes_validation_windows_that_know_their_recordings():
    X = np.random.default_rng(0).normal(size=(6, 40, 2))
    pulse = small(PulseTransformer, max_epochs=1)
    with config_context(enable_metadata_routing=True):
        pulse.set_fit_request(X_val=True)
        steps = [("scale", WindowScaler(per="recording")), ("pulse", pulse)]
        pipe = Pipeline(steps, transform_input=["X_val"])
        pipe.fit(as_lazy(X), X_val=as_lazy(X[:2]), groups=np.arange(6) // 2)
    assert np.isfinite(pipe["pulse"].history_[-1]["valid_loss"])
