"""Bad input and bad parameters: each error names what is wrong and what to do."""

import contextlib
import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse._data._validation import check_windows
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import BandpassFilter, Resampler, WindowScaler
from sklearn_pulse.windows import SlidingWindows, random_windows, sliding_windows
from tests.helpers import SMALL_ENCODER, make_windows, small

X = make_windows()[0]


@pytest.fixture(scope="module")
def fitted():
    return small(PulseTransformer, max_epochs=1).fit(X)


def poisoned(value):
    bad = X.copy()
    bad[3, 4, 1] = value
    return bad


def empty_window():
    bad = X.copy()
    bad[3, :, 1] = np.nan  # no step has all its channels
    return bad


def multi_indexed():
    index = pd.MultiIndex.from_product([range(20), range(16)])
    return pd.DataFrame(X.reshape(320, 2), index=index)


def nested():
    return pd.DataFrame({c: [pd.Series(row) for row in X[:, :, c]] for c in range(2)})


def with_column(values):
    """A frame whose second column holds no numbers."""
    return pd.DataFrame({"x": np.arange(4.0), "when": values})


BAD_INPUT = {
    "times as text": (
        with_column(["2026-01-01 00:00:00", "2026-01-01 00:00:01"] * 2),
        TypeError,
        "the column 'when' of X holds '2026-01-01 00:00:00', .* make times the index",
    ),
    "dates as objects": (
        with_column([None, *[datetime.date(2026, 1, 1)] * 3]),
        TypeError,
        "the column 'when' of X holds datetime.date.* make times the index",
    ),
    "labels": (with_column(["rest"] * 4), TypeError, "holds 'rest', .* pass labels as y"),
    "infinity": (poisoned(np.inf), ValueError, "X contains infinity.*sample 3.*replace"),
    "too large": (X.astype(np.float64) * 1e300, ValueError, "too large for float32"),
    "no finite step": (
        empty_window(),
        ValueError,
        r"no finite time step in sample 3.*Drop.*\(s\) 1 ",
    ),
    "no samples": (X[:0], ValueError, r"0 sample\(s\).*minimum of 1"),
    "no steps": (X[:, :0], ValueError, "axis 1.*at least one time step"),
    "no channels": (X[:, :, :0], ValueError, "axis 2.*one channel"),
    "no windows": (np.empty((3, 0, 16, 2)), ValueError, "axis 1"),
    "no columns": (np.empty((12, 0)), ValueError, r"0 feature\(s\) \(shape=\(12, 0\)\)"),
    "objects": (np.full(X.shape, {}, dtype=object), TypeError, "X has dtype object.*number"),
    "words": (X.astype(str).astype(object) + "!", ValueError, "X holds '.*!', which"),
    "strings": (X.astype(str), TypeError, "X has dtype <U.*convert"),
    "dates": (np.zeros(X.shape, "datetime64[s]"), ValueError, "X holds times"),
    "complex": (X * 1j, ValueError, "Complex data not supported: X.*two channels"),
    "ragged": ([X[0].tolist(), X[1, :7].tolist()], ValueError, "X is ragged.*sliding_windows"),
    "1-D": (X[0, :, 0], ValueError, "X has 1 dimensions.*Reshape your data"),
    "5-D": (X[None, None], ValueError, "X has 5 dimensions.*bag"),
    "scalar": (3.0, ValueError, "X has 0 dimensions"),
    "MultiIndex": (multi_indexed(), TypeError, r"MultiIndex.*droplevel\(0\).*as_panel_transfor"),
    "nested frame": (nested(), TypeError, "cells hold series.*'df-list'.*as_panel_transformer"),
    "sparse": (sp.csr_matrix(X[:, :, 0]), TypeError, r"Sparse.*X.*toarray"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
@pytest.mark.parametrize(
    "estimator", [small(PulseTransformer), RandomEncoderTransformer(**SMALL_ENCODER)]
)
def test_bad_input_at_fit(name, estimator):
    bad, error, message = BAD_INPUT[name]
    with pytest.raises(error, match=message):
        estimator.fit(bad)


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_at_transform(name, fitted):
    bad, error, message = BAD_INPUT[name]
    with pytest.raises(error, match=message):
        fitted.transform(bad)


@pytest.mark.parametrize("layout", ["ntc", "nct", "bags", "lazy"])
def test_channels_that_a_recording_lacks_are_named(layout):
    lacking = np.zeros((4, 8, 5))
    lacking[2:, :, [1, 3]] = np.nan
    x = lacking.swapaxes(1, 2) if layout == "nct" else lacking
    if layout == "bags":
        x = lacking[:, None].repeat(3, 1)
    if layout == "lazy":
        x = sliding_windows(list(lacking), 8, lazy=True).X
    pulse = small(PulseTransformer).set_params(input_layout="nct" if layout == "nct" else "ntc")
    with pytest.raises(ValueError, match=r"Sample 2 has no finite value in channel\(s\) 1, 3 "):
        pulse.fit(x)


@pytest.mark.parametrize(
    "estimator",
    [
        small(PulseTransformer),
        StatisticsTransformer(),
        WindowScaler(),
        BandpassFilter(None, 2, sampling_rate=8),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_windows_of_recordings_are_not_read_transposed(estimator):
    square = sliding_windows(list(np.ones((4, 6, 2)) * [1, 2]), 2, lazy=True).X  # 2 by 2
    reads = estimator.set_params(input_layout="nct")
    with pytest.raises(ValueError, match="RecordingWindows, whose channels are last: fit with"):
        reads.fit(square)
    swapped = reads.fit(np.asarray(square).swapaxes(1, 2))  # the remedy
    with pytest.raises(ValueError, match=f"^{type(estimator).__name__} has input_layout='nct'"):
        swapped.transform(square)


def test_a_table_is_read_alike_in_both_layouts():
    table = X[:, :, 0]
    expected = StatisticsTransformer().fit_transform(table)
    ours = StatisticsTransformer(input_layout="nct").fit_transform(table)
    np.testing.assert_array_equal(ours, expected)


def test_scattered_gaps_name_no_channel():
    scattered = X.copy()
    scattered[3, ::2, 0], scattered[3, 1::2, 1] = np.nan, np.nan
    with pytest.raises(ValueError, match=r"Drop these samples\.$"):
        small(PulseTransformer).fit(scattered)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, object])
def test_masked_entries_are_missing(fitted, dtype):
    whole = (20 * X).round().astype(dtype)  # of a size that fit has seen, or nearly
    hidden = np.random.default_rng(0).random(X.shape) < 0.1
    masked = np.ma.masked_array(whole, mask=hidden)
    holes = np.where(hidden, np.nan, whole.astype(np.float64))
    np.testing.assert_array_equal(fitted.transform(masked), fitted.transform(holes))


def test_another_number_of_channels(fitted):
    with pytest.raises(ValueError, match="X has 3 channels, but PulseTransformer is expecting 2"):
        fitted.transform(np.zeros((4, 16, 3)))
    with pytest.raises(ValueError, match="X has 1 channels.*expecting 2"):
        fitted.transform(np.zeros((4, 16)))
    with pytest.raises(ValueError, match="X has 3 channels.*expecting 2"):
        small(PulseTransformer).fit(X, X_val=np.zeros((4, 16, 3)))


@pytest.mark.parametrize("layout", ["ntc", "nct"])
def test_one_window_without_the_axis_of_samples(layout):
    data = X if layout == "ntc" else X.swapaxes(1, 2)
    estimator = small(PulseTransformer, max_epochs=1, input_layout=layout).fit(data)
    with pytest.raises(ValueError, match=r"one window of 2 channels, pass X\[None\]"):
        estimator.transform(data[0])
    assert len(estimator.transform(data[0][None])) == 1


def test_another_number_of_columns():
    with pytest.raises(ValueError, match="X has 9 features, but PulseTransformer is expecting 16"):
        small(PulseTransformer, max_epochs=1).fit(X[:, :, 0]).transform(X[:, :9, 0])


@pytest.mark.parametrize("layout", ["ntc", "nct"])
def test_swapped_axes_at_transform(layout):
    data = X if layout == "ntc" else X.swapaxes(1, 2)
    estimator = small(PulseTransformer, max_epochs=1, input_layout=layout).fit(data)
    with pytest.raises(ValueError, match="looks transposed.*input_layout"):
        estimator.transform(data.swapaxes(1, 2))


@pytest.mark.parametrize(("layout", "other"), [("ntc", "nct"), ("nct", "ntc")])
def test_swapped_axes_at_fit_warn(layout, other):
    data = X.swapaxes(1, 2) if layout == "ntc" else X
    with pytest.warns(UserWarning, match=f"more channels.*set input_layout='{other}'"):
        small(PulseTransformer, max_epochs=1, input_layout=layout).fit(data)


def test_longer_windows_at_transform_warn():
    estimator = small(PulseTransformer, max_epochs=1).fit(X[:, :3])
    with pytest.warns(UserWarning, match="windows of 16 time steps, more than the 3 of fit"):
        estimator.transform(X)
    estimator.transform(X[:, :2])  # and no others


def test_windows_that_reach_no_new_weights_do_not_warn():
    """A convolution over 8 steps reads windows of 9 steps, and none of 8."""
    small(PulseTransformer, max_epochs=1).fit(X[:, :7]).transform(X[:, :8])
    estimator = small(PulseTransformer, max_epochs=1).fit(X[:, :8])
    with pytest.warns(UserWarning, match="windows of 9 time steps, more than the 8 of fit"):
        estimator.transform(X[:, :9])


def test_groups_of_another_length():
    with pytest.raises(ValueError, match=r"groups has shape \(3,\), but there are 20 samples"):
        small(PulseTransformer).fit(X, groups=[1, 2, 3])


def test_crops_longer_than_the_windows():
    with pytest.raises(ValueError, match="min_crop_length=64 .* windows of 16 .*fraction"):
        small(PulseTransformer, min_crop_length=64).fit(X)
    with pytest.raises(ValueError, match="min_crop_length=16 .* leave 15"):
        small(PulseTransformer, min_crop_length=16).fit(X)
    with pytest.raises(ValueError, match="crop_length=20 .* windows of 16"):
        small(PulseTransformer, crop="fixed", crop_length=20).fit(X)
    small(PulseTransformer, min_crop_length=15, max_epochs=1).fit(X)
    # A length that no crop reads may be any.
    small(PulseTransformer, n_crops=0, min_crop_length=64, max_epochs=1).fit(X)
    fixed = small(PulseTransformer, crop="fixed", crop_length=4, min_crop_length=64, max_epochs=1)
    fixed.fit(X)
    with pytest.raises(ValueError, match="^X_val: min_crop_length=15 .* windows of 15"):
        small(PulseTransformer, min_crop_length=15).fit(X, X_val=X[:, :15])


# --- parameters ---

SIZES = """embedding_dim encoder_hidden_dim encoder_depth time_varying_pool init_kernel_size
    init_dilation init_hidden_dim gru_num_layers gru_hidden_dim max_epochs batch_size
    validation_every min_crop_length crop_length"""
OPTIONS = """pooling observation crop pairing loss_reduction theta_dropout select bag_pooling
    precision input_layout"""
OUT_OF_RANGE = [
    (SIZES, 0, "an integer of at least 1, got 0"),
    ("num_threads", 0, "an integer from 1 to 1024, got 0"),
    ("n_crops time_varying_dim verbose", -1, "an integer of at least 0, got -1"),
    (OPTIONS, "unheard of", "one of '.*, got 'unheard of'"),
    ("lr", 0.0, r"a number in \(0, inf\), got 0.0"),
    ("gradient_clip_value", 0.0, r"a number in \[1\.17549e-38, 3\.40282e\+38\], got 0.0"),
    ("weight_decay", -1.0, r"a number in \[0, inf\), got -1.0"),
    ("dropout validation_fraction", 1.0, r"a number in \[0, 1\), got 1.0"),
    ("min_crop_length crop_length", 1.0, r"a number in \(0, 1\), got 1.0"),
    ("init_kernel_size", 4, "odd, got 4.*take 5"),
    ("random_state", -1, "an integer from 0 to 4294967295"),
    ("device", "gpu", "'auto', 'cpu', 'cuda', 'cuda:<number>' or 'mps', got 'gpu'"),
]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, value, message) for names, value, message in OUT_OF_RANGE for name in names.split()],
)
def test_parameters_out_of_range(name, value, message):
    with pytest.raises(ValueError, match=f"^{name} must be {message}"):
        small(PulseTransformer, **{name: value}).fit(X)


@pytest.mark.parametrize("device", ["tpu:0", "meta", "cuda:x", 10**30])
def test_unknown_device(device):
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu'.*pass .* device='auto'"):
        small(PulseTransformer, device=device).fit(X)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_asked_for_and_absent():
    with pytest.raises(ValueError, match="device='cuda'.*no CUDA device.*'auto'"):
        small(PulseTransformer, device="cuda").fit(X)


@pytest.mark.parametrize("unseeded", [None, np.random])
def test_checkpoints_need_a_seed(unseeded, tmp_path):
    with pytest.raises(ValueError, match="checkpoint_dir needs a random_state.*random_state=0"):
        small(PulseTransformer, checkpoint_dir=tmp_path, random_state=unseeded).fit(X)


def test_verbose_and_callbacks():
    with pytest.raises(TypeError, match="verbose must be an integer"):
        small(PulseTransformer, verbose="yes").fit(X)
    with pytest.raises(TypeError, match="callbacks must be a list"):
        small(PulseTransformer, callbacks="progress").fit(X)
    small(PulseTransformer, verbose=False, callbacks=(), max_epochs=1).fit(X)


def test_warm_start_with_other_sizes():
    estimator = small(PulseTransformer, warm_start=True, max_epochs=1).fit(X)
    with pytest.raises(ValueError, match="warm_start=True starts from the weights of the last fit"):
        estimator.set_params(embedding_dim=4).fit(X)


def test_parameters_are_checked_at_fit_not_before():
    wrong = PulseTransformer(embedding_dim=-1).set_params(lr="no")
    assert (wrong.get_params()["embedding_dim"], wrong.lr) == (-1, "no")
    with pytest.raises(ValueError, match="embedding_dim"):
        wrong.fit(X)


@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(0, 3), min_size=0, max_size=6),
    dtype=st.sampled_from(["f4", "i8", "?", "c8", "U1", "O", "M8[s]"]),
)
def test_whatever_the_shape_and_dtype_the_error_is_ours(shape, dtype):
    """Anything that is not accepted is a TypeError or ValueError that names X or the array."""
    estimator = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0)
    data = np.zeros(shape, dtype)
    try:
        with pytest.warns(UserWarning) if _is_wide(data) else contextlib.nullcontext():
            estimator.fit(data)
    except (TypeError, ValueError) as error:
        assert "X" in str(error) or "array" in str(error)
    else:
        assert data.ndim in (2, 3, 4)
        assert data.size
        assert data.dtype.kind in "fi?bO"


def _is_wide(data):
    legal = data.ndim in (3, 4) and data.size and data.dtype.kind in "fibO"
    return legal and data.shape[-1] > data.shape[-2]


# --- inputs that stay where they are ---


def test_lazy_windows_are_gathered_batch_by_batch():
    rng = np.random.default_rng(0)
    recordings = [rng.normal(size=(200, 2)).astype(np.float32) for _ in range(3)]
    cut = {"length": 16, "stride": 8, "random_state": 0}
    lazy, groups = (random_windows(recordings, lazy=True, **cut)[key] for key in ("X", "groups"))
    whole = random_windows(recordings, **cut).X

    class Unreadable(type(lazy)):
        def __array__(self, *args, **kwargs):
            raise AssertionError("the windows were read as a whole")

    lazy.__class__ = Unreadable
    np.testing.assert_array_equal(
        small(PulseTransformer).fit(lazy, groups=groups).transform(lazy),
        small(PulseTransformer).fit(whole, groups=groups).transform(whole),
    )


def test_overlapping_windows_without_groups_warn():
    recordings = [np.random.default_rng(0).normal(size=(200, 2))]
    overlapping = sliding_windows(recordings, 16, 8, lazy=True)
    with pytest.warns(UserWarning, match="so close together.*pass groups"):
        small(PulseTransformer, max_epochs=1).fit(overlapping.X)
    apart = sliding_windows(recordings, 16, 16, lazy=True)
    small(PulseTransformer, max_epochs=1).fit(apart.X)
    small(PulseTransformer, max_epochs=1).fit(overlapping.X, X_val=apart.X)
    small(PulseTransformer, max_epochs=1, validation_fraction=0).fit(overlapping.X)


def test_memory_maps_are_read_a_few_windows_at_a_time(tmp_path, monkeypatch):
    path = tmp_path / "X.npy"
    np.save(path, X)

    class Watched(np.memmap):
        largest = 0

        def __getitem__(self, index):
            rows = super().__getitem__(index)
            Watched.largest = max(Watched.largest, len(rows))
            return rows

    monkeypatch.setattr("sklearn_pulse._data._windows._BLOCK_ELEMENTS", 3 * X[0].size)
    small(PulseTransformer, batch_size=4).fit(np.load(path, mmap_mode="r").view(Watched))
    assert Watched.largest == 4


@pytest.mark.parametrize(
    ("shape", "warns"),
    [
        ((5000, 6), True),
        ((1400, 14), True),
        ((1000, 1), True),
        ((999, 6), False),
        ((1399, 14), False),  # few rows per column
        ((20_000, 15), False),  # as long as windows of univariate data sets are
        ((5000, 6, 1), False),  # windows, said explicitly
        ((5000, 140), False),  # heart beats
    ],
)
def test_a_recording_is_not_taken_for_a_table_of_windows(shape, warns):
    windows = np.random.default_rng(0).normal(size=shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_windows(PulseTransformer(), windows, reset=True)
    messages = [str(warning.message) for warning in caught]
    expected = f"X has the shape {shape[:2]} and is read as {shape[0]} univariate windows"
    assert [message.startswith(expected) for message in messages] == [True] * warns


@pytest.mark.parametrize(
    "step", [WindowScaler(), Resampler(100, 50), BandpassFilter(None, 20, 100), SlidingWindows(4)]
)
def test_a_step_warns_of_a_recording_too(step):
    """Its remedy is a list, since a recording is filtered and resampled before it is cut."""
    recording = np.random.default_rng(0).normal(size=(5000, 6))
    with pytest.warns(UserWarning, match=r"one recording of 6 channels, pass \[X\]\."):
        step.fit_transform(recording)


@pytest.mark.parametrize("as_index", [pd.Index, lambda times: times.astype(str)])
@pytest.mark.parametrize("estimator", [Resampler(100, 50), StatisticsTransformer()])
def test_a_short_recording_is_known_by_its_times(estimator, as_index):
    """A step would otherwise mix the channels without a word."""
    times = pd.date_range("2026", periods=50, freq="10ms")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), as_index(times))
    with pytest.warns(UserWarning, match=r"one recording of 3 channels"):
        estimator.fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(frame.reset_index(drop=True))


def test_a_fit_warns_of_a_recording_and_transform_does_not():
    table = np.random.default_rng(0).normal(size=(1000, 2))
    with pytest.warns(UserWarning, match=r"sliding_windows\(\[X\], length\)"):
        statistics = StatisticsTransformer().fit(table)
    statistics.transform(table)


@pytest.mark.parametrize("layout", ["ntc", "nct"])
@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda x: x + 1e8, "subtract the mean .*WindowScaler as a step before"),
        (lambda x: x + 1e7, "subtract the mean"),  # a third of the variation is rounding
        (lambda x: np.rint(1e3 * x).astype(np.int64) + 10**11, "subtract the mean"),
        (lambda x: 1e-50 * x, "multiply X in float64"),
    ],
)
@pytest.mark.parametrize("estimator", [StatisticsTransformer(), RandomEncoderTransformer()])
def test_variation_that_float32_does_not_hold(estimator, make, remedy, layout):
    """Of the second channel; the first is a plain one."""
    X = make_windows(12, 30, 2)[0].astype(np.float64)
    changed = make(X[..., 1])
    X = np.stack([np.rint(100 * X[..., 0]).astype(changed.dtype), changed], axis=-1)
    X = X.swapaxes(1, 2) if layout == "nct" else X
    message = f"does not hold the variation of X in 1 of 2 channels: channel 1 .*{remedy}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.set_params(input_layout=layout).fit(X)
    ours = [w for w in caught if "does not hold" in str(w.message)]
    assert len(ours) == 1 and ours[0].filename == __file__
    with pytest.raises(UserWarning, match=message):
        raise ours[0].message


def test_the_remedy_for_lost_variation_keeps_it():
    X = make_windows(12, 30, 2)[0].astype(np.float64)
    scaled = WindowScaler().fit_transform(X + 1e8)
    np.testing.assert_allclose(scaled, WindowScaler().fit_transform(X), atol=1e-6)


@pytest.mark.parametrize(
    "X",
    [
        np.full((4, 30, 2), 1e9 + 0.3),  # nothing varies
        1e6 + make_windows(12, 30, 2)[0].astype(np.float64),  # 2 % of the variation are rounding
        1e-20 * make_windows(12, 30, 2)[0].astype(np.float64),
        (1e8 + make_windows(12, 30, 2)[0].astype(np.float64)).astype(np.float32),  # it was lost
        np.where(np.arange(30)[:, None] % 7, make_windows(12, 30, 2)[0], np.nan).astype(float),
    ],
)
def test_variation_that_float32_holds(X):
    StatisticsTransformer().fit(X)
