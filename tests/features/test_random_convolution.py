"""Random convolutions of MiniRocket and MultiRocket."""

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from torch.overrides import TorchFunctionMode

from sklearn_pulse._threads import threads
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import (
    ConvolutionBank,
    RandomConvolutionTransformer,
    _convolutions,
    _random_convolution,
)
from tests.helpers import bridged, make_windows, sklearn_suite

POOLINGS = ("ppv", "mean", "position", "stretch")


@pytest.mark.filterwarnings("ignore:X has more channels")  # tables of the suite wider than long
@sklearn_suite([RandomConvolutionTransformer(84, poolings=POOLINGS, difference=True)])
def test_sklearn_suite(estimator, check):
    check(estimator)


def bank_of(sktimes, n_channels):
    """Convolutions of a fitted transformer of sktime."""
    *combinations, dilations, n_biases, biases = sktimes.parameters
    n_pairs = 84 * len(dilations)
    sizes, members = combinations or (np.ones(n_pairs, int), np.zeros(n_pairs, int))
    channels = np.zeros((n_pairs, n_channels), dtype=bool)
    for row, chosen in zip(channels, np.split(members, np.cumsum(sizes)[:-1]), strict=True):
        row[chosen] = True
    thresholds = np.split(biases, 84 * np.cumsum(n_biases)[:-1])
    return ConvolutionBank(
        dilations,
        [part.reshape(84, -1) for part in thresholds],
        list(channels.reshape(-1, 84, n_channels)),
    )


@pytest.mark.parametrize("n_timesteps", [9, 24, 150])
@pytest.mark.parametrize("n_channels", [1, 6])
def test_minirocket_is_sktimes(n_channels, n_timesteps):
    """Windows of whole numbers, so that no sum is rounded and no threshold missed by rounding."""
    pytest.importorskip("numba")
    pytest.importorskip("sktime")
    from sktime.transformations.rocket import MiniRocket, MiniRocketMultivariate

    X = np.random.default_rng(0).integers(-50, 50, (30, n_timesteps, n_channels))
    X = X.astype(np.float32)
    channels_first = np.ascontiguousarray(X.swapaxes(1, 2))
    state = np.random.get_state()
    cls = MiniRocket if n_channels == 1 else MiniRocketMultivariate
    with threads(torch.get_num_threads()):  # numba changes it
        theirs = cls(2000, n_jobs=1, random_state=0).fit(channels_first[:10])
    np.random.set_state(state)
    ours = RandomConvolutionTransformer(2000, random_state=0).fit(X[:10])
    np.testing.assert_array_equal(ours.banks_[0].dilations, theirs.parameters[-3])
    assert [b.shape[1] for b in ours.banks_[0].biases] == theirs.parameters[-2].tolist()
    ours.banks_ = (bank_of(theirs, n_channels),)
    expected = theirs.transform(channels_first).to_numpy()
    np.testing.assert_allclose(ours.transform(X), expected, atol=1e-6)


def literal(x, observed, bank, level, kernel, bias, n_timesteps_fitted):
    """Four poolings of one kernel and bias, step by step."""
    places = [(i, j, k) for i in range(9) for j in range(i + 1, 9) for k in range(j + 1, 9)]
    weights = [2.0 if place in places[kernel] else -1.0 for place in range(9)]
    dilation = bank.dilations[level]
    padded = n_timesteps_fitted < 9 or (level + kernel) % 2 == 0
    signal = x[:, bank.channels[level][kernel]].sum(1)
    outputs = []
    for t in range(len(x)):
        taps = [t + (place - 4) * dilation for place in range(9)]
        inside = [0 <= tap < len(x) for tap in taps]
        if (padded and observed[t]) or (all(inside) and observed[taps].all()):
            pairs = zip(weights, taps, inside, strict=True)
            outputs.append(sum(w * signal[tap] for w, tap, known in pairs if known))
    positive = [i for i, output in enumerate(outputs) if output > bias]
    if not outputs:
        return [0.0, 0.0, 0.0, 0.0]
    if not positive:
        return [0.0, 0.0, -1.0, 0.0]
    return [
        len(positive) / len(outputs),
        np.mean([outputs[i] - bias for i in positive]),
        np.mean(positive) / len(outputs),
        None if not observed.all() else longest(positive) / len(outputs),
    ]


def longest(positive):
    best = run = 1
    for before, after in zip(positive[:-1], positive[1:], strict=True):
        run = run + 1 if after == before + 1 else 1
        best = max(best, run)
    return best


@pytest.mark.parametrize("n_timesteps", [2, 8, 9, 20, 50])
def test_features_literally(n_timesteps):
    rng = np.random.default_rng(0)
    X = rng.integers(-50, 50, (4, n_timesteps, 2)).astype(np.float32)
    rocket = RandomConvolutionTransformer(
        168, poolings=POOLINGS, difference=True, random_state=0
    ).fit(X)
    X[1, n_timesteps // 2 :] = np.nan
    X[2, 1::4] = np.nan
    features = np.split(rocket.transform(X), 8, axis=1)
    observed = np.isfinite(X).all(2)
    for differenced, bank in enumerate(rocket.banks_):
        own = features[4 * differenced :][:4]
        for i in range(4):
            x, seen = bridged(X[i]), observed[i]
            if differenced:
                seen = seen[1:] & seen[:-1]
                x = np.diff(x, axis=0) * seen[:, None]
            column = 0
            for level, biases in enumerate(bank.biases):
                for kernel in range(84):
                    for bias in biases[kernel]:
                        expected = literal(
                            x, seen, bank, level, kernel, bias, n_timesteps - differenced
                        )
                        for part, value in zip(own, expected, strict=True):
                            if value is not None:
                                assert math.isclose(
                                    part[i, column], value, rel_tol=1e-5, abs_tol=1e-6
                                )
                        column += 1


@pytest.mark.parametrize("holes", [False, True])
def test_biases_are_quantiles_of_outputs(holes):
    """A kernel's share of positive outputs, over the one window of fit, is 1 minus the quantile."""
    X = np.random.default_rng(0).normal(size=(1, 2000, 1))
    if holes:
        X[0, 200:600] = np.nan
        X[0, ::3] = np.nan
    rocket = RandomConvolutionTransformer(84 * 20, random_state=0).fit(X)
    shares = rocket.transform(X)[0]
    quantiles = np.arange(1, 84 * 20 + 1) * (np.sqrt(5) + 1) / 2 % 1
    padded = np.concatenate(
        [
            np.repeat((np.arange(84) + level) % 2 == 0, biases.shape[1])
            for level, biases in enumerate(rocket.banks_[0].biases)
        ]
    )
    np.testing.assert_allclose(shares[padded], 1 - quantiles[padded], atol=2e-3)


@pytest.mark.parametrize("n_values", [1, 2, 30])
def test_quantiles_of_rows_are_those_of_numpy(n_values):
    rng = np.random.default_rng(0)
    rows, shares = rng.normal(size=(5, n_values)).astype(np.float32), rng.random((5, 7))
    rows[1, n_values // 2 :] = np.nan  # of which the count is told
    rows[2] = np.nan
    counts = np.isfinite(rows).sum(1)
    rows[3, 0] = np.nan  # an output that overflows, which counts
    found = _random_convolution._row_quantiles(rows, counts, shares)
    for own, row, count, shares_of_row in zip(found, rows, counts, shares, strict=True):
        expected = np.quantile(np.sort(row)[:count], shares_of_row) if count else np.zeros(7)
        np.testing.assert_allclose(own, expected, rtol=1e-6, atol=1e-7)
    assert np.isnan(found[3]).all()


class ThreadsOfConvolutions(TorchFunctionMode):
    """Note how many threads torch has when it convolves windows."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.unfold:
            self.found.append(torch.get_num_threads())
        return function(*args, **(kwargs or {}))


def test_the_windows_of_the_biases_are_convolved_by_one_thread():
    """The products are small: threads would wait for one another."""
    X = make_windows(90, 128)[0]
    alone = RandomConvolutionTransformer(168, num_threads=1, random_state=0).fit(X)
    with ThreadsOfConvolutions() as noted:
        shared = RandomConvolutionTransformer(168, num_threads=2, random_state=0).fit(X)
    assert set(noted.found) == {1}  # and something was convolved
    for expected, biases in zip(alone.banks_[0].biases, shared.banks_[0].biases, strict=True):
        np.testing.assert_array_equal(biases, expected)


def test_each_window_is_convolved_by_its_own_kernel_in_pieces_too(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    x, weight = torch.randn(7, 3, 20, generator=rng), torch.randn(7, 27, generator=rng)
    whole = _convolutions.convolve_each(x, weight, 2)
    of_all = _convolutions.convolve(x, weight, 2)  # each kernel over each window
    torch.testing.assert_close(whole, of_all.diagonal().T)
    monkeypatch.setattr(_convolutions, "_MOST_TAPS", 2 * 9 * 3 * 20)  # those of two windows
    torch.testing.assert_close(_convolutions.convolve_each(x, weight, 2), whole)


def test_rounding_decides_no_feature_beside_silent_windows():
    rng = np.random.default_rng(0)
    X = np.zeros((100, 128, 1))
    for row in X[60:]:
        first, last = np.sort(rng.integers(10, 118, 2))
        row[first:last] = rng.normal() + 1
        row[last:] = rng.normal()
    one, other = (
        RandomConvolutionTransformer(1000, random_state=0).fit_transform(X * unit)
        for unit in (1.0, 1e-3)
    )
    assert np.mean(np.abs(one - other) > 0.05) < 1e-3


@pytest.mark.parametrize("unit", [0.1, 1e-3, 1 / 7])
def test_rounding_does_not_decide_whether_outputs_are_positive(unit):
    """On the grid of a recorder many outputs equal a quantile of outputs."""
    counts = np.random.default_rng(0).normal(size=(60, 64, 2)).cumsum(1).round()
    counts[::7] = 0.0
    counts[3::7] = 4.0
    rocket = RandomConvolutionTransformer(
        336, poolings=("ppv", "position", "stretch"), difference=True, random_state=0
    )
    features = rocket.fit_transform(counts)
    in_unit = clone(rocket).fit_transform(counts * unit)
    # Rounding still decides about a few outputs that lie a little above their quantile.
    assert np.mean(np.abs(in_unit - features) > 1e-5) < 1e-3


def test_windows_shorter_than_the_kernels_are_refused():
    X, _ = make_windows(6, 40, 2)
    rocket = RandomConvolutionTransformer(840, random_state=0).fit(X)
    assert rocket.banks_[0].dilations[-1] == 4
    assert rocket.transform(X[:, :33]).shape == rocket.transform(X).shape
    with pytest.raises(ValueError, match="of 32 time steps, but the kernels of fit span 33"):
        rocket.transform(X[:, :32])


def test_features_are_named_by_class_and_number():
    X, _ = make_windows(6, 20, 2)
    first = RandomConvolutionTransformer(84, random_state=0).fit(X)
    assert first.get_feature_names_out()[-1] == "randomconvolutiontransformer83"
    assert first.set_output(transform="pandas").transform(X).shape == (6, 84)


def test_poolings_keep_their_order():
    X, _ = make_windows(6, 20, 2)
    whole = RandomConvolutionTransformer(84, poolings=POOLINGS, random_state=0).fit_transform(X)
    two = RandomConvolutionTransformer(84, poolings=["stretch", "ppv"], random_state=0)
    expected = np.hstack([whole[:, 252:], whole[:, :84]])
    np.testing.assert_array_equal(two.fit_transform(X), expected)


def test_probe_on_convolutions():
    X, y = make_windows(60, 64)
    pipeline = make_pipeline(RandomConvolutionTransformer(840, random_state=0), make_linear_probe())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.95


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"num_kernels": 83}, "num_kernels must be an integer of at least 84"),
        ({"poolings": ()}, "poolings must name one pooling or more"),
        ({"poolings": ("ppv", "ppv")}, "each only once"),
        ({"poolings": ("max",)}, "each of poolings must be"),
    ],
)
def test_parameters(params, message):
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(ValueError, match=message):
        RandomConvolutionTransformer(**params).fit(X)


def test_a_list_is_no_name_of_a_pooling():
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(TypeError, match="each of poolings must be one of"):
        RandomConvolutionTransformer(poolings=[["ppv"]]).fit(X)


def test_a_loud_channel_leaves_biases_of_the_others_alone():
    X = np.random.default_rng(0).normal(size=(20, 64, 2)).astype(np.float32)
    loud = X * np.array([1, 1e6], np.float32)
    banks = [RandomConvolutionTransformer(252, random_state=0).fit(x).banks_[0] for x in (X, loud)]
    n_compared = 0
    for biases, biases_of_loud, channels in zip(
        banks[0].biases, banks[1].biases, banks[0].channels, strict=True
    ):
        only_first = channels[:, 0] & ~channels[:, 1]
        n_compared += int(only_first.sum())
        np.testing.assert_allclose(
            biases[only_first], biases_of_loud[only_first], rtol=1e-4, atol=1e-4
        )
    assert n_compared
