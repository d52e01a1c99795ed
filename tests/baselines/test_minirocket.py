"""MiniRocket through sktime."""

import builtins
import importlib.util
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse.baselines import MiniRocketTransformer
from sklearn_pulse.evaluation import make_linear_probe
from tests.helpers import make_windows, sklearn_suite

pytestmark = pytest.mark.xdist_group("minirocket")  # numba compiles once in a process
INSTALLED = all(importlib.util.find_spec(name) for name in ("numba", "sktime"))


@pytest.mark.skipif(not INSTALLED, reason="needs sktime and numba")
@pytest.mark.filterwarnings("ignore:X has more channels")  # tables of the suite wider than long
@sklearn_suite([MiniRocketTransformer(num_kernels=84)])
def test_sklearn_suite(estimator, check):
    check(estimator)


@pytest.fixture
def sktime():
    pytest.importorskip("numba")
    return pytest.importorskip("sktime")


def test_fits_side_by_side_have_the_bits_of_one_alone(sktime):
    X = make_windows(30, 24)[0]
    estimators = [MiniRocketTransformer(random_state=seed, num_kernels=84) for seed in range(4)]
    expected = [clone(estimator).fit_transform(X) for estimator in estimators]
    state = np.random.get_state()[1].copy()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change places in the midst of a fit
    try:
        with ThreadPoolExecutor(4) as pool:
            fits = [pool.submit(clone(model).fit, X) for _ in range(10) for model in estimators]
            found = [fit.result().transform(X) for fit in fits]
    finally:
        sys.setswitchinterval(interval)
    np.testing.assert_array_equal(found, expected * 10)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


@pytest.mark.parametrize("n_channels", [1, 3])
def test_minirocket_is_sktimes(sktime, n_channels):
    from sktime.transformations.rocket import MiniRocket, MiniRocketMultivariate

    X, y = make_windows(30, 24, n_channels)
    ours = MiniRocketTransformer(random_state=0, num_kernels=200)
    state = np.random.get_state()[1].copy()
    features = ours.fit(X).transform(X)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    assert features.shape == (30, 168) and features.dtype == np.float32
    cls = MiniRocket if n_channels == 1 else MiniRocketMultivariate
    assert type(ours.rocket_) is cls
    theirs = cls(200, n_jobs=1, random_state=ours.rocket_.random_state)
    kept = np.random.get_state()
    expected = theirs.fit_transform(np.ascontiguousarray(X.swapaxes(1, 2))).to_numpy()
    np.random.set_state(kept)
    np.testing.assert_array_equal(features, expected)
    np.testing.assert_array_equal(clone(ours).fit_transform(X), features)
    other = MiniRocketTransformer(random_state=1, num_kernels=200).fit_transform(X)
    assert not np.array_equal(other, features)
    np.testing.assert_array_equal(ours.transform(X[4:7]), features[4:7])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).transform(X), features)
    assert ours.get_feature_names_out()[0] == "minirockettransformer0"
    assert len(ours.get_feature_names_out()) == 168
    if n_channels == 1:
        np.testing.assert_array_equal(clone(ours).fit_transform(X[..., 0]), features)
    pipeline = make_pipeline(ours, make_linear_probe())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9


def test_short_windows_are_filled_up_by_their_last_value(sktime):
    X, _ = make_windows(6, 4, 2)
    short = MiniRocketTransformer(random_state=0, num_kernels=84)
    long = clone(short).fit_transform(np.pad(X, [(0, 0), (0, 5), (0, 0)], mode="edge"))
    np.testing.assert_array_equal(short.fit_transform(X), long)


def test_missing_values_are_refused(sktime):
    X, _ = make_windows(12, 16, 2)
    rocket = MiniRocketTransformer(random_state=0, num_kernels=84).fit(X)
    holes = X.copy()
    holes[3, 4, 1] = np.nan
    for call in (rocket.fit, rocket.transform):
        with pytest.raises(ValueError, match="X contains NaN.*knows no missing values: drop"):
            call(holes)
    holes[3] = np.nan
    with pytest.raises(ValueError, match="no finite time step in sample 3"):
        rocket.transform(holes)
    bags, padded = X.reshape(4, 3, 16, 2), X.reshape(4, 3, 16, 2).copy()
    padded[1, 1:] = np.nan
    features = rocket.transform(padded)
    np.testing.assert_array_equal(features[[0, 2, 3]], rocket.transform(bags)[[0, 2, 3]])
    np.testing.assert_array_equal(features[1], rocket.transform(X[3:4])[0])
    clone(rocket).fit(padded)


def test_minirocket_bad_input(sktime):
    X, _ = make_windows(6, 16, 2)
    rocket = MiniRocketTransformer(random_state=0, num_kernels=84).fit(X)
    with pytest.raises(ValueError, match="fitted on windows of 16 and takes no other length"):
        rocket.transform(X[:, :12])
    with pytest.raises(ValueError, match="num_kernels must be an integer of at least 84"):
        MiniRocketTransformer(num_kernels=83).fit(X)


@pytest.mark.parametrize("missing", ["sktime", "numba"])
def test_minirocket_names_the_extra(monkeypatch, missing):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"sktime and numba: pip install 'sklearn-pulse\[bench"):
        MiniRocketTransformer().fit(make_windows(6, 16, 2)[0])
