"""What MiniRocket, MultiRocket and Hydra have in common."""

import importlib

import numpy as np
import pytest
import torch

from sklearn_pulse.features import HydraTransformer, RandomConvolutionTransformer
from sklearn_pulse.features._convolution_base import represent
from tests.helpers import bridged, make_windows

KINDS = {
    "multirocket": RandomConvolutionTransformer(
        420,
        poolings=("ppv", "mean", "position", "stretch"),
        difference=True,
        random_state=0,
    ),
    "hydra": HydraTransformer(16, random_state=0),
}

POOLS = {RandomConvolutionTransformer: "pool_outputs", HydraTransformer: "_counts"}


@pytest.fixture(params=KINDS)
def params(request):
    """Class and parameters of a transformer."""
    kind = KINDS[request.param]
    return type(kind), kind.get_params()


@pytest.fixture
def make(params):
    """Return a function of changed parameters that returns an unfitted transformer."""
    cls, fixed = params
    return lambda **changes: cls(**(fixed | changes))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_timesteps", [1, 3, 9, 33, 200])
def test_rows_do_not_depend_on_one_another(make, n_timesteps, missing):
    rng = np.random.default_rng(0)
    shape = (150, n_timesteps, min(n_timesteps, 3))  # many blocks of 200 steps
    X = rng.normal(size=shape).astype(np.float32)
    if missing and n_timesteps > 1:
        X[rng.random(X.shape[:2]) < 0.1] = np.nan
        X[:, 0] = 1.0
    fitted = make().fit(X)
    whole = fitted.transform(X)
    for rows in (slice(0, 1), slice(149, None), slice(None, None, -40), slice(17, 40)):
        np.testing.assert_array_equal(fitted.transform(X[rows]), whole[rows])


def test_zeros_that_fill_up_a_block_are_not_pooled(make, monkeypatch):
    """They would cost as much as the windows of a whole block."""
    X, _ = make_windows(4, 60, 2)
    fitted = make().fit(X)
    module = importlib.import_module(type(fitted).__module__)
    seen, pool = [], getattr(module, POOLS[type(fitted)])

    def watched(outputs, *others):
        seen.append(outputs.shape[-2])
        return pool(outputs, *others)

    monkeypatch.setattr(module, pool.__name__, watched)
    fitted.transform(X[:3])
    assert set(seen) == {3}


@pytest.mark.parametrize("n_timesteps", [1, 2, 40])
def test_padding_with_missing_steps_changes_nothing(make, n_timesteps):
    X, _ = make_windows(5, n_timesteps, 1)
    fitted = make().fit(X)
    padded = np.concatenate([X, np.full((5, 23, 1), np.nan, np.float32)], axis=1)
    np.testing.assert_allclose(fitted.transform(padded), fitted.transform(X), atol=1e-5)


def test_missing_steps_lie_on_straight_lines_between_observed_ones():
    X, _ = make_windows(6, 30, 2)
    observed = np.random.default_rng(0).random((6, 30)) < 0.5
    observed[0], observed[1, 3:], observed[2] = True, False, np.arange(30) == 7
    signal, _ = represent(torch.tensor(X * observed[..., None]), torch.tensor(observed), False)
    X[~observed] = np.nan
    np.testing.assert_allclose(signal.mT, np.stack([*map(bridged, X)]), atol=1e-6)


@pytest.mark.parametrize("offset", [0, 1000])
def test_a_few_missing_steps_change_little_whatever_the_offset(make, offset):
    X, _ = make_windows(20, 60, 2)
    X += offset
    fitted = make().fit(X)
    complete = fitted.transform(X)
    X[:, 5::13] = np.nan
    change = np.abs(fitted.transform(X) - complete)
    spread = complete.std(0)
    assert np.median(change[:, spread > 0] / spread[spread > 0]) < 0.65


def test_the_seed_decides(make):
    X, _ = make_windows(6, 20, 2)
    features = [make(random_state=seed).fit_transform(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(features[1], features[0])
    assert not np.array_equal(features[2], features[0])


@pytest.mark.parametrize(("n_windows", "n_timesteps"), [(700, 20), (100, 300)])
def test_threads_change_no_bit(make, n_windows, n_timesteps):
    """Blocks of windows are computed side by side, each by one thread."""
    X = np.random.default_rng(0).normal(size=(n_windows, n_timesteps, 2)).astype(np.float32)
    X[5, 3:9] = np.nan
    before = torch.get_num_threads()
    features = [make(num_threads=number).fit_transform(X) for number in (1, 3)]
    assert make().fit(X)._block_size(n_timesteps, torch.device("cpu")) < n_windows / 2
    np.testing.assert_array_equal(features[1], features[0])
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("n_windows", [1, 700])
def test_a_block_has_one_thread_also_where_it_is_alone(make, monkeypatch, n_windows):
    """Threads within short operations wait for each other where other work shares the cores."""
    X = np.random.default_rng(0).normal(size=(700, 20, 2)).astype(np.float32)
    features, seen = make(num_threads=2).fit(X), []
    convolutions = type(features)._convolutions

    def watched(self, *arguments):
        seen.append(torch.get_num_threads())
        return convolutions(self, *arguments)

    monkeypatch.setattr(type(features), "_convolutions", watched)
    features.transform(X[:n_windows])
    assert set(seen) == {1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_threads": 0}, "num_threads must be an integer from 1 to 1024"),
        ({"random_state": -1}, "random_state must be"),
        ({"device": "no"}, "device"),
    ],
)
def test_parameters(make, changes, message):
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(ValueError, match=message):
        make(**changes).fit(X)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.usefixtures("whole_float32")
def test_a_gpu_gives_the_same_features(make):
    X, _ = make_windows(30, 64, 3)
    cpu, gpu = (make(device=device).fit(X) for device in ("cpu", "cuda"))
    # Rounding moves few outputs across a threshold, or exchanges few winners, each at one step.
    close = np.isclose(gpu.transform(X), cpu.transform(X), rtol=1e-3, atol=1e-4)
    assert close.mean() > 0.999


@pytest.mark.parametrize("transformer", KINDS.values(), ids=KINDS.keys())
def test_the_default_dtype_of_torch_bridges_no_gap(transformer):
    X = np.random.default_rng(0).normal(size=(8, 60, 2)).astype(np.float32)
    X[3, 5:9], X[4, 20:43] = np.nan, np.nan
    expected = transformer.fit_transform(X)
    for dtype in (torch.bfloat16, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            found = transformer.transform(X)
        finally:
            torch.set_default_dtype(torch.float32)
        np.testing.assert_array_equal(found, expected)
