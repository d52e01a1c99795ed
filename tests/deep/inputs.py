"""Windows and parameters of every kind, and what an estimator may do with them."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.features import (
    AutocorrelationTransformer,
    HydraTransformer,
    RandomConvolutionTransformer,
    StatisticsTransformer,
)
from tests.helpers import accepted, small

CLASSES = (
    PulseTransformer,
    RandomEncoderTransformer,
    CrossPredictionTransformer,
    StatisticsTransformer,
    AutocorrelationTransformer,
    HydraTransformer,
    RandomConvolutionTransformer,
)
DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint16", "bool", ">f4", "<f8")
# Parameters, with values in their ranges, at the ends, and just outside.
VALUES = {
    "embedding_dim": (0, 1, 3, 2**31),
    "encoder_hidden_dim": (-1, 1, 2),
    "encoder_depth": (0, 1, 9),
    "n_crops": (0, 1, 5, -1),
    "min_crop_length": (1, 0.0, 0.99, 1.0, 7, 10**6),
    "time_varying_dim": (0, 2, -1),
    "time_varying_pool": (1, 3, 0, 1000),
    "init_kernel_size": (1, 2, 5, 99),
    "init_dilation": (1, 64, 0),
    "gru_num_layers": (1, 3, 0),
    "dropout": (0.0, 0.5, 1.0, -0.1),
    "batch_size": (1, 2, 10**6),
    "lr": (1e-8, 1e3, 0.0, float("nan")),
    "weight_decay": (0.0, 10.0, -1e-9),
    "gradient_clip_value": (None, 1e-6, 0.0),
    "validation_fraction": (0.0, 0.5, 1.0),
    "pooling": ("max", "mean", "sum"),
    "bag_pooling": ("max", "mean", None),
    "precision": ("float32", "bfloat16", "float16"),
    "num_kernels": (84, 100, 83),
    "num_groups": (2, 5, 1),
    "n_components": (1, 3, 0),
    "alpha": ("auto", 0.0, 1.0, 1.1),
    "channels": ("auto", "recorded", "whitened", "both"),
    "views": ("auto", "halves", "adjacent"),
    "rho": (1e-6, 1.0, -1.0),
    "random_state": (0, 2**32 - 1, -1),
}


@st.composite
def windows(draw):
    """Windows of 2 to 4 dimensions, of any dtype, scale, memory layout and missing steps."""
    n_axes = draw(st.sampled_from([2, 3, 3, 3, 4]))
    shape = [draw(st.integers(1, 6)), draw(st.integers(1, 24)), draw(st.integers(1, 5))]
    shape = [shape[0], draw(st.integers(1, 3)), *shape[1:]] if n_axes == 4 else shape[:n_axes]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    scale = 10.0 ** draw(st.integers(-30, 38) | st.integers(-2, 2))
    X = rng.standard_normal(shape) * scale
    kind = draw(st.sampled_from(["noise", "constant", "spike", "ramp"]))
    if kind == "constant":
        X[:] = scale
    elif kind == "spike":
        X[tuple(rng.integers(0, n) for n in shape)] = 1e38
    elif kind == "ramp":
        X = np.cumsum(np.full(shape, scale), axis=1)
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if dtype.kind == "f":
        missing = draw(st.sampled_from([0.0, 0.0, 0.2, 0.9]))
        X[rng.random(shape) < missing] = np.nan
        with np.errstate(over="ignore"):
            X = X.astype(dtype)
    else:
        X = np.clip(np.nan_to_num(X), -100 if dtype.kind == "i" else 0, 100).astype(dtype)
    order = draw(st.sampled_from(["C", "F", "reversed", "strided", "broadcast", "read-only"]))
    if order == "F":
        X = np.asfortranarray(X)
    elif order == "reversed":
        X = X[:, ::-1]
    elif order == "strided":
        X = np.repeat(X, 2, axis=1)[:, ::2]
    elif order == "broadcast":
        X = as_strided(X[:1], X.shape, (0, *X.strides[1:]), writeable=False)
    elif order == "read-only":
        X.flags.writeable = False
    return X


@st.composite
def estimators(draw):
    """An estimator of small sizes, with up to three parameters in or just outside their range."""
    cls = draw(st.sampled_from(CLASSES))
    params = {"max_epochs": 1}
    for name in draw(st.lists(st.sampled_from(sorted(accepted(cls, VALUES))), max_size=3)):
        params[name] = draw(st.sampled_from(VALUES[name]))
    if draw(st.integers(0, 4)) == 0:
        params["input_layout"] = "nct"
    return small(cls, **params)


def check(estimator, X):
    """Fit and transform; return "done" or the name of the error, which must explain itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        return _check(estimator, X)


def _check(estimator, X):
    before, given = X.copy(), estimator.get_params()
    try:
        embedding = estimator.fit_transform(X)
    except (ValueError, TypeError, FloatingPointError, MemoryError) as error:
        assert len(str(error).split()) > 6, repr(error)
        if any(name.endswith("_") for name in vars(estimator)):  # transform alone refused
            with pytest.raises(type(error), match=re.escape(str(error))):
                estimator.transform(X)
        return type(error).__name__
    finally:
        np.testing.assert_array_equal(X, before)
        assert repr(estimator.get_params()) == repr(given)
    assert embedding.dtype == np.float32
    assert len(embedding) == len(X) and embedding.ndim == 2
    assert np.isfinite(embedding).all()
    np.testing.assert_array_equal(estimator.transform(X), embedding)
    return "done"
