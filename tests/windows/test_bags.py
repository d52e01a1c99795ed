"""The transformer SlidingWindows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone

import sklearn_pulse
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.windows import SlidingWindows, sliding_windows
from tests.helpers import sklearn_suite
from tests.windows.helpers import quick


@sklearn_suite([SlidingWindows(length=2, stride=1)])  # the default pads the suite's few steps
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_masked_entries_are_missing():
    X = np.random.default_rng(0).normal(size=(3, 20, 2))
    mask = np.zeros(X.shape, dtype=bool)
    mask[1, 4:9], mask[2, 15:] = True, True
    masked = np.ma.masked_array(np.where(mask, 1e4, X), mask)
    expected = sliding_windows(np.where(mask, np.nan, X), 5).X
    bags = [SlidingWindows(5).fit_transform(given) for given in (masked, list(masked))]
    found = [*(bag.reshape(expected.shape) for bag in bags), sliding_windows(masked, 5).X]
    for windows in (*found, sliding_windows(list(masked), 5).X):
        np.testing.assert_array_equal(windows, expected)
    nested = [[[np.ma.masked_array(channel) for channel in window.T] for window in masked]][0]
    found = StatisticsTransformer(input_layout="nct").fit_transform(nested)
    filled = np.where(mask, np.nan, X)
    np.testing.assert_array_equal(found, StatisticsTransformer().fit_transform(filled))
    bags = StatisticsTransformer().fit_transform([list(masked), tuple(masked)])
    expected = StatisticsTransformer().fit_transform(np.array([filled] * 2))
    np.testing.assert_array_equal(bags, expected)


def slow_bag(series, length, stride):
    """Build the bag one window at a time."""
    per_series = []
    for x in series:
        starts = [s for s in range(0, len(x), stride) if s + length <= len(x)] or [0]
        windows = []
        for s in starts:
            window = np.full((length, x.shape[1]), np.nan, np.float32)
            piece = x[s : s + length]
            window[: len(piece)] = piece
            windows.append(window)
        per_series.append(windows)
    most = max(len(windows) for windows in per_series)
    missing = np.full((length, series[0].shape[1]), np.nan, np.float32)
    return np.array([windows + [missing] * (most - len(windows)) for windows in per_series])


@quick
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    n_channels=st.integers(1, 3),
    length=st.integers(1, 8),
    stride=st.one_of(st.none(), st.integers(1, 10)),
    layout=st.sampled_from(["ntc", "nct"]),
)
@pytest.mark.filterwarnings("ignore:X has more channels:UserWarning")
def test_bags_equal_loop(lengths, n_channels, length, stride, layout):
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(n, n_channels)) for n in lengths]
    window = SlidingWindows(length, stride, layout)
    given_as = [x.T for x in series] if layout == "nct" else series
    bag = window.fit_transform(given_as)
    assert bag.dtype == np.float32
    np.testing.assert_array_equal(bag, slow_bag(series, length, stride or length))
    equal = np.stack([series[0]] * 2)
    expected = slow_bag(list(equal), length, stride or length)
    X = np.moveaxis(equal, 2, 1) if layout == "nct" else equal
    np.testing.assert_array_equal(window.transform(X), expected)
    if n_channels == 1:
        table = SlidingWindows(length, stride).fit_transform(equal[:, :, 0])
        np.testing.assert_array_equal(table, expected)


def test_bag_is_a_read_only_view_of_float32_input():
    X = np.zeros((3, 50, 2), np.float32)
    for given_as, layout in [(X, "ntc"), (np.zeros((3, 2, 50), np.float32), "nct")]:
        bag = SlidingWindows(10, 1, layout).fit_transform(given_as)
        assert bag.shape == (3, 41, 10, 2)
        assert np.shares_memory(bag, given_as)
        assert not bag.flags.writeable
    table = X[:, :, 0].copy()
    assert np.shares_memory(SlidingWindows(10, 1).fit_transform(table), table)


def test_a_list_of_equal_series_is_copied_once():
    X = np.random.default_rng(0).normal(size=(3, 50, 2))
    window = SlidingWindows(10, 1)
    expected = window.fit_transform(X)
    for given_as in (list(X), list(X.astype(np.float32))):
        bag = window.fit_transform(given_as)
        np.testing.assert_array_equal(bag, expected)
        assert bag.strides == expected.strides  # the windows share their steps
        assert not bag.flags.writeable


@pytest.mark.parametrize("make", [np.asarray, pd.Series])
def test_univariate_lists_of_equal_length(make):
    x = np.random.default_rng(0).normal(size=60).astype(np.float32)
    window = SlidingWindows(10).fit([make(x[:40]), make(x[20:])])
    assert (window.n_features_in_, window.n_channels_in_) == (1, 1)
    for series in ([x[:30], x[30:]], [x]):
        bag = window.transform([make(each) for each in series])
        np.testing.assert_array_equal(bag, window.transform(np.stack(series)[:, :, np.newaxis]))
    table = SlidingWindows(10).fit([x.tolist()])
    assert table.n_features_in_ == 60


def test_univariate_lists_of_unequal_length():
    bag = SlidingWindows(2).fit_transform([[1.0, 2.0, 3.0], [4.0]])
    assert bag.shape == (2, 1, 2, 1)
    np.testing.assert_array_equal(bag[:, 0, :, 0], [[1, 2], [4, np.nan]])


def test_fitted_attributes_and_feature_names():
    frame = pd.DataFrame(np.zeros((3, 6)), columns=list("abcdef"))
    window = SlidingWindows(2).fit(frame)
    assert (window.n_features_in_, window.n_channels_in_) == (6, 1)
    assert window.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names should match"):
        window.transform(frame[list("fedcba")])
    window.fit(np.zeros((3, 6, 2)))
    assert (window.n_features_in_, window.n_channels_in_) == (2, 2)
    assert not hasattr(window, "feature_names_in_")
    nct = SlidingWindows(2, input_layout="nct").fit([np.zeros((2, 6)), np.zeros((2, 9))])
    assert (nct.n_features_in_, nct.n_channels_in_) == (2, 2)


def test_number_of_time_steps_may_change_in_three_d_input_only():
    window = SlidingWindows(4).fit(np.zeros((2, 20, 3)))
    assert window.transform(np.zeros((2, 9, 3))).shape == (2, 2, 4, 3)
    table = SlidingWindows(4).fit(np.zeros((2, 20)))
    with pytest.raises(ValueError, match="X has 9 features"):
        table.transform(np.zeros((2, 9)))
    assert table.transform(np.zeros((2, 9, 1))).shape == (2, 2, 4, 1)
    univariate = SlidingWindows(4).fit(np.zeros((2, 20, 1)))
    assert univariate.transform(np.zeros((2, 9))).shape == (2, 2, 4, 1)


def test_another_number_of_channels_is_refused():
    window = SlidingWindows(4).fit(np.zeros((2, 20, 3)))
    for X in (np.zeros((2, 20, 2)), [np.zeros((20, 2)), np.zeros((9, 2))]):
        with pytest.raises(ValueError, match="X has 2 channels, but SlidingWindows is expecting 3"):
            window.transform(X)
    with pytest.raises(ValueError, match="X has 1 channels"):
        window.transform(np.zeros((2, 20)))
    with pytest.raises(ValueError, match="looks transposed"):
        window.transform(np.zeros((2, 3, 20)))


def test_more_channels_than_steps_warns():
    with pytest.warns(UserWarning, match="X has more channels .* set input_layout") as record:
        SlidingWindows(4).fit(np.zeros((2, 3, 20)))
    assert record[0].filename == __file__
    SlidingWindows(4, input_layout="nct").fit(np.zeros((2, 3, 20)))


@pytest.mark.parametrize(
    "make", [lambda x: x[:, :, 0], lambda x: x, list, lambda x: np.asfortranarray(x)]
)
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_infinity_is_refused_and_nan_is_not(make, value):
    X = np.zeros((2, 10, 2))
    X[1, 4, 0] = np.nan
    bag = SlidingWindows(5).fit_transform(make(X))
    assert np.isnan(bag).sum() == 1
    X[0, 3, 0] = value
    with pytest.raises(ValueError, match="infinity or a value too large"):
        SlidingWindows(5).fit(make(X))
    with pytest.raises(ValueError, match="infinity or a value too large"):
        SlidingWindows(5).fit(np.zeros((2, 10, 2))).transform(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3, 4, 5)), "X has 4 dimensions, SlidingWindows takes 2 .* 3"),
        (np.zeros((2, 0, 3)), "0 entries on axis 1"),
        (np.zeros((2, 5, 0)), "0 entries on axis 2"),
        (np.zeros((0, 5, 2)), "0 sample"),
        (np.zeros(5), "Reshape your data"),
        ([np.zeros((5, 2)), np.zeros((4, 3))], r"X\[1\] has 4 steps and 3 channels"),
        ([np.zeros((5, 2)), np.zeros(4)], r"X\[1\] has 4 steps and 1 channels"),
        ([np.zeros((5, 0))], r"X\[0\] has 5 steps and 0 channels"),
        ([np.zeros((5, 2)), np.zeros((0, 2))], r"X\[1\] has 0 steps"),
        ([np.zeros((5, 2)), np.full((4, 2), np.inf)], r"X\[1\] contains infinity.*by NaN if the"),
        (
            np.where(np.arange(3)[:, None, None] < 2, np.zeros((5, 2)), 1e39),
            r"Input X\[2\] contains infinity or a value too large for float32: replace it, by NaN",
        ),
        (np.array([[["a"]]], dtype=object), "holds 'a', which is no number"),
        ([], "0 sample"),
    ],
)
def test_unusable_series(X, message):
    with pytest.raises(ValueError, match=message):
        SlidingWindows(2).fit(X)


def test_values_beyond_float32_are_refused_where_scikit_learn_assumes_finite_values():
    X = np.zeros((2, 5, 2))
    X[1, 3, 0] = 1e39  # finite, and an infinity in float32
    with config_context(assume_finite=True):
        with pytest.raises(ValueError, match=r"X\[1\] contains .* a value too large for float32"):
            SlidingWindows(2).fit(X)


def test_panels_of_pandas_are_refused():
    index = pd.MultiIndex.from_product([range(2), range(5)])
    panel = pd.DataFrame({"a": np.zeros(10)}, index=index)
    nested = pd.DataFrame({"a": [pd.Series([1.0, 2.0]), pd.Series([3.0, 4.0])]})
    for X in (panel, nested, [panel, panel]):
        with pytest.raises(TypeError, match="is a frame .* read as a table.*as_panel_transformer"):
            SlidingWindows(2).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "length must be an integer of at least 1, got 0 .*time steps of a window"),
        ({"stride": 0}, "stride must be an integer of at least 1"),
        ({"input_layout": "tnc"}, "input_layout must be one of 'ntc', 'nct'"),
    ],
)
def test_parameters_are_checked_in_fit(options, message):
    window = SlidingWindows(**options)
    with pytest.raises(ValueError, match=message):
        window.fit(np.zeros((2, 5)))
    assert clone(window).get_params() == window.get_params()


def test_set_output_is_not_available():
    assert not hasattr(SlidingWindows(), "set_output")


def test_no_torch_is_imported():
    # a package without the initialisation that imports the estimators, which need torch
    folder = str(Path(sklearn_pulse.__file__).parent)
    code = (
        "import sys, types\n"
        "package = sys.modules['sklearn_pulse'] = types.ModuleType('sklearn_pulse')\n"
        f"package.__path__ = [{folder!r}]\n"
        "import sklearn_pulse.windows\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("length", [10**14, 2**70])
def test_windows_beyond_memory_are_named(length):
    with pytest.raises((MemoryError, ValueError), match="length"):
        SlidingWindows(length=length).fit_transform(np.zeros((2, 20, 1)))


def test_a_refused_refit_leaves_the_first():
    sliding = SlidingWindows(length=5).fit(np.zeros((4, 20, 2)))
    before = dict(vars(sliding))
    infinite = np.zeros((4, 20, 3))
    infinite[-1, -1, -1] = np.inf
    with pytest.raises(ValueError, match="infinity|infinite"):
        sliding.fit(infinite)
    assert vars(sliding) == before
    assert sliding.transform(np.ones((1, 20, 2))).shape == (1, 4, 5, 2)


@pytest.mark.filterwarnings("error")
def test_infinities_of_both_signs_are_an_error_without_a_warning():
    X = np.zeros((2, 20, 1))
    X[1, 3:5, 0] = 1e300, -np.inf
    with pytest.raises(ValueError, match=r"Input X\[1\] contains infinity"):
        SlidingWindows(length=8).fit(X)
