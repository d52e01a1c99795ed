"""Contracts that every estimator and every objective keeps.

An estimator joins by being public; nothing is registered twice. The method that CONTRIBUTING.md
adds joins them, so that what is said there is true.
"""

import contextlib
import copy
import functools
import importlib.util
import inspect
import pickle
import threading
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sklearn_pulse
import sklearn_pulse.baselines
import sklearn_pulse.features
import tests.toy_method
from sklearn_pulse import (
    CrossPredictionTransformer,
    PulseTransformer,
    RandomEncoderTransformer,
)
from sklearn_pulse.base import (
    BaseEncoderTransformer,
    BaseSSLTransformer,
    BaseWindowRegressor,
    TrainedEmbedder,
    WindowEmbedder,
)
from sklearn_pulse.features import RandomConvolutionTransformer, StatisticsTransformer
from sklearn_pulse.features._base import BaseFeatureTransformer
from sklearn_pulse.windows import RecordingWindows
from tests.helpers import INPUT_FORMS, accepted, make_windows, memory_map, sklearn_suite, small
from tests.ranks import cases as distributed_cases


def public(base):
    """Return the public classes that derive from a base, and those of the toy method."""
    modules = (sklearn_pulse, sklearn_pulse.baselines, tests.toy_method)
    values = (getattr(module, name) for module in modules for name in dir(module))  # some are lazy
    found = {value for value in values if inspect.isclass(value) and issubclass(value, base)}
    found = {cls for cls in found if not cls.__name__.startswith("Base")}
    return sorted(found, key=lambda cls: cls.__name__)


CLASSES = public(BaseEncoderTransformer)
# Regressors embed too, and take any number of labels; tests of classifiers have their own copies.
EMBEDDERS = [*CLASSES, *public(BaseWindowRegressor)]
# Transformers that compute fixed features: the contract of the input holds for them too.
FEATURES = sorted(
    {
        value
        for module in (sklearn_pulse, sklearn_pulse.baselines, sklearn_pulse.features)
        for value in [getattr(module, name) for name in module.__all__]
        if inspect.isclass(value) and issubclass(value, BaseFeatureTransformer)
    },
    key=lambda cls: cls.__name__,
)
FIXED_LENGTH = [cls for cls in CLASSES if not cls().__sklearn_tags__().variable_length]
TRAINED = [cls for cls in CLASSES if issubclass(cls, BaseSSLTransformer)]
# Tried with several workers each time; workers start slowly, so the others are tried less often.
BESIDE_OTHERS = ("PulseTransformer", "REBARTransformer", "TS2VecTransformer")


# One block of nine takes two thirds of a fit; tests/closed_form fits all of them.
BRIEF = {"CrossPredictionTransformer": {"block_weights": (0.06, 0.03, 0.36, 0, *[0.1] * 5)}}


def brief(cls, **params):
    """Make a small estimator that is fitted in one epoch, on two batches of `WINDOWS`.

    What depends on the epoch is tried by `small`, which has two, of three batches.
    """
    short = {"max_epochs": 1, "attention_epochs": 1, "batch_size": 12}
    return small(cls, **short | BRIEF.get(cls.__name__, {}) | params)


def without_validation(cls):
    return brief(cls, **accepted(cls, {"validation_fraction": 0}))


def least(cls):
    """Fewest windows that a method can be fitted on."""
    return getattr(cls, "_min_batch_size", 1)


def takes_nan(cls):
    return cls().__sklearn_tags__().input_tags.allow_nan


def data(estimator, X):
    """Return what `fit` needs: windows, and labels for a method whose tags require them.

    The first eight samples have one label, the next eight another.
    """
    required = estimator.__sklearn_tags__().target_tags.required
    return (X, np.arange(len(X)) // 8 % 2) if required else (X,)


def fit(estimator, X, **params):
    if "X_val" in params:
        params |= dict(zip(("X_val", "y_val"), data(estimator, params["X_val"]), strict=False))
    return estimator.fit(*data(estimator, X), **params)


def fit_transform(estimator, X):
    return estimator.fit_transform(*data(estimator, X))


WINDOWS = make_windows()[0]


@functools.cache
def first_fit(cls, **params):
    """Return a small estimator fitted on `WINDOWS`, once in a process. Nobody may change it."""
    return fit(brief(cls, **params), WINDOWS)


@functools.cache
def first_embedding(cls):
    """Return what it makes of the same windows; another fit is compared with it."""
    embedding = first_fit(cls).transform(WINDOWS)
    embedding.flags.writeable = False
    return embedding


def fitted(cls, **params):
    """Return a shallow copy of the first fit, for a test that sets parameters after `fit`."""
    return copy.copy(first_fit(cls, **params))


def fresh_states():
    """Return one small estimator of each class, without a fixed seed (the suite sets it).

    A batch holds nearly all of the suite's samples, and an epoch is enough for its questions, as
    is one layer: each batch costs time. PULSE alone has a validation part.
    """
    settings = {"batch_size": 64, "max_epochs": 1, "attention_epochs": 1, "random_state": None}
    one = {"encoder_depth": 1, "gru_num_layers": 1, "validation_fraction": 0}
    found = [small(cls, **settings, **accepted(cls, one)) for cls in CLASSES]
    for estimator in found:
        if type(estimator) is PulseTransformer:
            estimator.set_params(validation_fraction=0.15)
    return found


each = pytest.mark.parametrize("cls", EMBEDDERS, ids=lambda cls: cls.__name__)
each_encoder = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
without_sktime = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("numba", "sktime")),
    reason="needs sktime and numba",
)
needs = {"MiniRocketTransformer": without_sktime}  # what a class needs beside the dependencies
each_input = pytest.mark.parametrize(
    "cls",
    [*EMBEDDERS, *(pytest.param(cls, marks=needs.get(cls.__name__, ())) for cls in FEATURES)],
    ids=lambda cls: cls.__name__,
)
each_with_gaps = pytest.mark.parametrize(
    "cls",
    [*EMBEDDERS, *filter(takes_nan, FEATURES)],
    ids=lambda cls: cls.__name__,
)
each_fixed = pytest.mark.parametrize("cls", FIXED_LENGTH, ids=lambda cls: cls.__name__)
each_variable = pytest.mark.parametrize(
    "cls", [cls for cls in EMBEDDERS if cls not in FIXED_LENGTH], ids=lambda cls: cls.__name__
)
each_trained = pytest.mark.parametrize("cls", TRAINED, ids=lambda cls: cls.__name__)
# The suite fits windows of one step, and tables wider than long; both rightly warn.
suite_warnings = pytest.mark.filterwarnings(
    "ignore:X has windows of one time step",
    "ignore:No window of X has an observed time step in both halves",
    "ignore:X has more channels",
)


# --- scikit-learn's own suite, without an exception ---


@suite_warnings
@sklearn_suite(fresh_states(), forms=PulseTransformer)
def test_sklearn_suite(estimator, check):
    check(estimator)


# All blocks take forty seconds; each of the others has a suite of its own.
FEW_BLOCKS = {"CrossPredictionTransformer": {"block_weights": (0.06, 0.03, 0.36, 0)}}


@suite_warnings
@sklearn_suite(
    [
        small(cls, random_state=None, **FEW_BLOCKS.get(cls.__name__, {}))
        for cls in FEATURES
        if cls.__name__ not in needs
    ],
    forms=StatisticsTransformer,
)
def test_sklearn_suite_of_features(estimator, check):
    check(estimator)


@pytest.mark.slow
@suite_warnings
@sklearn_suite([small(CrossPredictionTransformer, random_state=None)])
def test_sklearn_suite_of_all_blocks(estimator, check):
    check(estimator)


@pytest.mark.slow
@suite_warnings
@sklearn_suite([PulseTransformer(max_epochs=1, num_threads=1)])
def test_sklearn_suite_at_default_widths(estimator, check):
    check(estimator)


@pytest.mark.slow
@suite_warnings
@sklearn_suite([PulseTransformer()])
def test_sklearn_suite_at_defaults(estimator, check):
    check(estimator)


# --- the same promises for 3-D data, which the suite does not make ---


@pytest.fixture(scope="module")
def windows():
    return WINDOWS


@each_input
def test_transform_needs_a_fit(cls, windows):
    with pytest.raises(NotFittedError):
        brief(cls).transform(windows)


@each_input
def test_fit_returns_self_and_changes_no_parameter(cls, windows):
    estimator = brief(cls)
    before = copy.deepcopy(estimator.get_params())
    assert fit(estimator, windows) is estimator
    assert estimator.get_params() == before
    assert not [
        name
        for name in vars(estimator)
        if name not in before and name[-1] != "_" and name[0] != "_"
    ]


@each_input
def test_fit_transform_is_fit_then_transform(cls, windows):
    together = fit_transform(brief(cls), windows)
    np.testing.assert_array_equal(together, first_embedding(cls))
    assert together.shape == (len(windows), len(first_fit(cls).get_feature_names_out()))
    assert together.dtype == np.float32


@each
def test_same_seed_same_bits_and_another_seed_others(cls, windows):
    first = first_embedding(cls)
    np.testing.assert_array_equal(fit_transform(brief(cls), windows), first)
    assert not np.array_equal(first, fit_transform(brief(cls, random_state=1), windows))


@each_input
def test_global_random_state_neither_matters_nor_moves(cls, windows):
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        before = torch.get_rng_state(), np.random.get_state()[1].copy()
        results.append(fit_transform(brief(cls), windows))
        assert torch.equal(before[0], torch.get_rng_state())
        np.testing.assert_array_equal(before[1], np.random.get_state()[1])
    np.testing.assert_array_equal(*results)


@contextlib.contextmanager
def double_by_default():
    torch.set_default_dtype(torch.float64)
    try:
        yield
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def meta_by_default():
    torch.set_default_device("meta")
    try:
        yield
        assert torch.empty(0).device.type == "meta"
    finally:
        torch.set_default_device(None)


@each_input
def test_what_the_caller_has_set_in_torch_changes_nothing(cls, windows, tmp_path):
    def results(estimator):
        yield estimator.transform(windows)
        if hasattr(estimator, "predict_proba"):
            yield estimator.predict_proba(windows)
        if cls.__name__ != "MiniRocketTransformer":
            estimator.save_pretrained(tmp_path / "model")
            yield cls.from_pretrained(tmp_path / "model").transform(windows)

    expected = list(results(first_fit(cls)))
    autocast = functools.partial(torch.autocast, "cpu", torch.bfloat16)
    for states in (
        [double_by_default, torch.inference_mode],
        [meta_by_default, torch.no_grad, autocast],  # float32, which autocast rounds
    ):
        with contextlib.ExitStack() as stack:
            for state in states:
                stack.enter_context(state())
            found = list(results(fit(brief(cls), windows)))
        np.testing.assert_equal(found, expected)


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, marks=() if cls.__name__ in BESIDE_OTHERS else pytest.mark.slow)
        for cls in CLASSES
    ],
    ids=lambda cls: cls.__name__,
)
@pytest.mark.xdist_group("workers")  # which joblib starts once in a process, and keeps
def test_two_workers_give_the_bits_of_one(cls, windows):
    estimators = [small(cls, random_state=i) for i in range(2)]
    jobs = [joblib.delayed(e.fit_transform)(*data(e, windows)) for e in estimators]
    alone = joblib.Parallel(n_jobs=1)(jobs)
    for backend in ("loky", "threading"):
        beside = joblib.Parallel(n_jobs=2, backend=backend)(jobs)
        np.testing.assert_array_equal(alone, beside)


@each
def test_threads_are_left_as_they_were(cls, windows):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        # Fewer threads than before: more of them than cores would wait for one another.
        fit_transform(brief(cls, num_threads=before), windows)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


@each_input
@pytest.mark.parametrize("name", ["bag_pooling", "input_layout"])
def test_what_is_read_after_fit_is_checked_then(cls, name, windows):
    estimator = fitted(cls).set_params(**{name: "wrong"})
    with pytest.raises(ValueError, match=f"{name} must be"):
        estimator.transform(windows)


@each_input
def test_a_row_does_not_depend_on_the_others(cls):
    complete = make_windows(300, 20)[0]
    order = np.random.default_rng(0).permutation(300)
    for params in ({}, {"pooling": "mean"}) if "pooling" in cls().get_params() else ({},):
        estimator = fit(brief(cls, **params), complete[:20])
        embedding = estimator.transform(complete)
        np.testing.assert_array_equal(estimator.transform(complete[order]), embedding[order])
        np.testing.assert_array_equal(estimator.transform(complete[[7]])[0], embedding[7])
        if estimator.__sklearn_tags__().input_tags.allow_nan:
            X = complete.copy()
            X[8, 3:] = np.nan
            others = np.delete(estimator.transform(X), 8, 0)
            np.testing.assert_array_equal(others, np.delete(embedding, 8, 0))


@each
def test_an_embedding_has_the_same_bits_with_any_number_of_threads(cls):
    X = np.random.default_rng(0).normal(size=(100, 256, 2)).astype(np.float32)
    estimator = fit(brief(cls), X[:6])
    expected = estimator.set_params(num_threads=1).transform(X)
    for num_threads in (2, 3):
        embedding = estimator.set_params(num_threads=num_threads).transform(X)
        np.testing.assert_array_equal(embedding, expected)
        np.testing.assert_array_equal(estimator.transform(X[:3]), expected[:3])


def test_threads_change_neither_shapes_nor_threads_of_what_is_computed():
    """Bits differ by both only at some sizes, on some processors."""
    X = np.random.default_rng(0).normal(size=(100, 128, 2)).astype(np.float32)
    estimator = small(RandomEncoderTransformer).fit(X)
    computed = set()

    def note(module, inputs, output):
        computed.add((tuple(inputs[0].shape), torch.get_num_threads()))

    estimator.encoder_.input.register_forward_hook(note)
    for num_threads in (1, 2, 3):
        estimator.set_params(num_threads=num_threads)
        for windows in (X, X[:3]):
            estimator.transform(windows)
    assert len(computed) == 1
    assert computed.pop()[1] == 1


@pytest.mark.parametrize(("num_threads", "by_the_caller"), [(1, True), (3, False)])
def test_as_many_threads_compute_as_were_asked_for(num_threads, by_the_caller):
    X = np.random.default_rng(0).normal(size=(100, 128, 2))
    estimator = small(RandomEncoderTransformer, num_threads=num_threads).fit(X)
    computing = set()
    estimator.encoder_.input.register_forward_hook(lambda *_: computing.add(threading.get_ident()))
    estimator.transform(X)
    assert (threading.get_ident() in computing) == by_the_caller


@each
@pytest.mark.parametrize(
    ("n_timesteps", "n_channels", "widths"),
    [(33, 5, {}), (50, 6, {"encoder_hidden_dim": 6}), (33, 2, {"embedding_dim": 7})],
)
def test_a_row_of_odd_widths_does_not_depend_on_its_place(cls, n_timesteps, n_channels, widths):
    if "n_heads" in cls().get_params() and "embedding_dim" in widths:
        widths = {"embedding_dim": 12}  # a multiple of the heads
    X = np.random.default_rng(0).normal(size=(200, n_timesteps, n_channels)).astype(np.float32)
    estimator = fit(brief(cls, **widths), X[:6])
    embedding = estimator.transform(X)
    for row in (3, 57, 101, 199):
        np.testing.assert_array_equal(estimator.transform(X[[row]])[0], embedding[row])


@each_input
def test_clone_and_pickle(cls, windows):
    estimator, embedding = first_fit(cls), first_embedding(cls)
    np.testing.assert_array_equal(fit_transform(clone(estimator), windows), embedding)
    restored = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(restored.transform(windows), embedding)
    np.testing.assert_array_equal(fit(restored, windows).transform(windows), embedding)


@each_input
@pytest.mark.filterwarnings("error", "ignore:You are using .torch.load:FutureWarning")  # torch 2.4
def test_arrays_that_may_not_be_written_are_as_good(cls, windows, tmp_path):
    # joblib passes a fitted estimator to its processes with its large arrays as memory maps.
    estimator = first_fit(cls)
    joblib.dump(estimator, tmp_path / "fitted")
    mapped = joblib.load(tmp_path / "fitted", mmap_mode="r")
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else PyTorch warns once in a process, perhaps in another test
    try:
        np.testing.assert_array_equal(mapped.transform(windows), estimator.transform(windows))
        if cls.__name__ != "MiniRocketTransformer":  # which no folder holds
            mapped.save_pretrained(tmp_path / "model")
    finally:
        torch.set_warn_always(before)


@pytest.mark.parametrize(
    "cls",
    [*EMBEDDERS, *(cls for cls in FEATURES if cls.__name__ != "MiniRocketTransformer")],
    ids=lambda cls: cls.__name__,
)
def test_saved_and_loaded(cls, windows, tmp_path):
    estimator = first_fit(cls)
    estimator.save_pretrained(tmp_path / "model")
    base = WindowEmbedder if cls in EMBEDDERS else BaseFeatureTransformer
    restored = base.from_pretrained(tmp_path / "model")
    assert type(restored) is cls
    local = {"num_threads"} & set(estimator.get_params())  # a file sets nothing of the machine
    expected = estimator.get_params() | dict.fromkeys(local)
    assert restored.get_params() == expected
    np.testing.assert_array_equal(restored.transform(windows), estimator.transform(windows))


@pytest.mark.parametrize("real", [np.float64, Fraction])
@each_input
def test_numbers_of_every_kind_are_as_good_as_those_of_python(cls, real, windows):
    params = brief(cls).get_params()
    grid = {
        name: real(value) if isinstance(value, float) else np.int64(value)
        for name, value in params.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    np.testing.assert_array_equal(fit_transform(brief(cls, **grid), windows), first_embedding(cls))


@each
def test_set_output_and_feature_names(cls, windows):
    estimator = fitted(cls)
    names = [f"{cls.__name__.lower()}{i}" for i in range(estimator.transform(windows).shape[1])]
    assert estimator.get_feature_names_out().tolist() == names
    frame = estimator.set_output(transform="pandas").transform(windows)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == names
    assert estimator.set_output(transform="polars").transform(windows).columns == names


@each_input
def test_fitted_attributes_tell_the_shape_of_the_data(cls, windows):
    estimator = first_fit(cls)
    assert (estimator.n_timesteps_in_, estimator.n_channels_in_) == (16, 2)
    assert estimator.n_features_in_ == 2
    if cls in EMBEDDERS:
        assert estimator.encoder_ is estimator.net_.module_.encoder
    table = fit(brief(cls), windows[:, :, 0])
    assert (table.n_features_in_, table.n_timesteps_in_, table.n_channels_in_) == (16, 16, 1)


@each
def test_parameters_set_after_fit_wait_for_the_next(cls, windows):
    estimator, embedding = fitted(cls), first_embedding(cls)
    estimator.set_params(**accepted(cls, {"embedding_dim": 4, "encoder_depth": 2}))
    np.testing.assert_array_equal(estimator.transform(windows), embedding)
    assert fit_transform(estimator, windows).shape[1] < embedding.shape[1]


@each_input
def test_refit_on_other_data_forgets_the_first(cls, windows):
    frame = pd.DataFrame(windows[:, :, 0]).rename(columns=str)
    estimator = fit(brief(cls), frame)
    assert estimator.feature_names_in_.tolist() == list(map(str, range(16)))
    fit(estimator, windows)
    assert not hasattr(estimator, "feature_names_in_")
    np.testing.assert_array_equal(estimator.transform(windows), first_embedding(cls))


@each_input
def test_a_refused_refit_leaves_the_first(cls, windows):
    estimator, embedding = fitted(cls), first_embedding(cls)
    before = dict(vars(estimator))
    other = np.repeat(windows[:, :, :1], 3, axis=2)
    other[-1, 0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fit(estimator, other)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(estimator.transform(windows), embedding)


@each_input
def test_a_parameter_of_a_wrong_kind_is_named(cls, windows):
    for name in brief(cls).get_params():
        with pytest.raises(TypeError, match=rf"\b{name} must be"):
            fit(brief(cls).set_params(**{name: object()}), windows)


# --- every legal form of the input ---


def check_forms(cls, windows, *inputs):
    before = windows.copy()
    for X in inputs:
        np.testing.assert_array_equal(fit_transform(brief(cls), X), first_embedding(cls))
    np.testing.assert_array_equal(windows, before)


@pytest.mark.parametrize("form", INPUT_FORMS)
def test_every_form_of_the_input_gives_the_same_bits(form, windows, tmp_path):
    """One class stands for all: the base converts the input."""
    check_forms(PulseTransformer, windows, INPUT_FORMS[form](windows, tmp_path))


@each_input
def test_no_class_reads_the_input_before_it_is_converted(cls, windows, tmp_path):
    """A list has no attributes of an array; a read-only map of float64 needs every conversion."""
    reordered = np.asfortranarray(windows, dtype=np.float64)
    check_forms(cls, windows, windows.tolist(), memory_map(reordered, tmp_path))


@each_input
def test_channels_first_give_the_bits_of_channels_last(cls, windows):
    swapped = windows.swapaxes(1, 2)
    estimator = fit(brief(cls, input_layout="nct"), swapped)
    np.testing.assert_array_equal(estimator.transform(swapped), first_embedding(cls))


@each_input
@pytest.mark.filterwarnings("ignore:All windows of X have the same features")
@pytest.mark.filterwarnings("ignore:X has at most two windows of each recording")
@pytest.mark.parametrize(
    "shape", [(1, 16, 2), (5, 2, 2), (5, 16, 1), (5, 16), (1, 2), (3, 2, 16, 2)]
)
def test_small_data_of_every_rank_are_embedded(cls, shape):
    X = np.random.default_rng(0).normal(size=shape)
    if shape[0] < least(cls):
        with pytest.raises(ValueError, match="n_samples=1 is too few"):
            fit(brief(cls), X)
        return
    estimator = brief(cls)
    embedding = fit_transform(estimator, X)
    assert embedding.shape == (shape[0], len(estimator.get_feature_names_out()))
    assert np.isfinite(embedding).all()


@each_input
def test_windows_of_one_step_are_embedded_and_warned_of_where_nothing_is_learnt(cls):
    estimator = brief(cls)
    X = np.random.default_rng(0).normal(size=(5, 1, 1))
    if cls in (*TRAINED, CrossPredictionTransformer):
        with pytest.warns(UserWarning, match="one time step|both halves"):
            fit(estimator, X)
    else:
        fit(estimator, X)
    assert np.isfinite(estimator.transform(X)).all()


@pytest.mark.parametrize(
    ("cls", "channels_first"),
    [*((cls, False) for cls in TRAINED), (PulseTransformer, True)],  # the base knows the layout
)
def test_windows_that_miss_all_but_one_step_are_warned_of(cls, channels_first, windows):
    X = np.full_like(windows, np.nan)
    step = np.arange(len(X)) % 16
    X[np.arange(len(X)), step] = windows[np.arange(len(X)), step]
    layout = "nct" if channels_first else "ntc"
    arrange = np.swapaxes if channels_first else lambda X, *axes: X
    estimator = brief(cls, input_layout=layout)
    with pytest.warns(UserWarning, match="X has windows of one .* that is not missing: .* less"):
        fit(estimator, arrange(X, 1, 2))
    some = X.copy()
    some[-4:] = windows[-4:]
    fit(estimator, arrange(some, 1, 2))
    with pytest.raises(ValueError, match="X_val has windows of one .* that is not missing"):
        fit(estimator, arrange(windows, 1, 2), X_val=arrange(X[:8], 1, 2))


@each_input
@pytest.mark.filterwarnings("ignore:All windows of X have the same features")
def test_constant_channels_have_finite_embeddings(cls, windows):
    X = windows.copy()
    X[:, :, 1] = 3.0
    assert np.isfinite(fit_transform(brief(cls), X)).all()
    assert np.isfinite(fit_transform(brief(cls), np.zeros_like(X))).all()


@each_variable
def test_shorter_windows_are_windows_that_lack_their_last_steps(cls, windows):
    estimator = first_fit(cls)
    unknown = windows.copy()
    unknown[:, 9:] = np.nan
    shorter = estimator.transform(windows[:, :9])
    np.testing.assert_allclose(shorter, estimator.transform(unknown), atol=1e-6)


@each_fixed
def test_another_length_is_refused_where_it_cannot_be(cls, windows):
    with pytest.raises(ValueError, match="windows of 9 time steps.* fitted on windows of 16"):
        first_fit(cls).transform(windows[:, :9])


@each_trained
def test_validation_windows_that_are_refused(cls, windows):
    """An error about X_val names it; few or short windows are no reason to skip validation."""
    spike = windows[:8].copy()
    spike[1, 3, 0] = np.inf
    refused = [
        (spike, "X_val: Input X contains infinity"),
        (windows[:8, :, :1], "X_val: X has 1 channels"),
    ]
    if cls not in FIXED_LENGTH and getattr(brief(cls), "backbone", None) != "cnn":
        refused.append((windows[:8, :1], "X_val has windows of one time step"))
    if least(cls) > 1:
        refused.append((windows[:1], "n_samples=1 of X_val is too few"))
    for X_val, message in refused:
        with pytest.raises(ValueError, match=message):
            fit(brief(cls), windows, X_val=X_val)


@each_trained
@pytest.mark.parametrize("length", [9, 20])
def test_validation_on_windows_of_another_length(cls, length, windows):
    """Refused where the loss is that of one length, and never read in part."""
    estimator = brief(cls)
    X_val = make_windows(6, length)[0]
    if cls in FIXED_LENGTH or getattr(estimator, "backbone", None) == "cnn":
        with pytest.raises(ValueError, match=f"X_val has windows of {length} time steps, X of 16"):
            fit(estimator, windows, X_val=X_val)
        return
    whole = fit(estimator, windows, X_val=X_val).history_[-1]["valid_loss"]
    assert np.isfinite(whole)
    if length > 16:
        first = fit(clone(estimator), windows, X_val=X_val[:, :16]).history_[-1]["valid_loss"]
        assert whole != first


@each_with_gaps
@pytest.mark.filterwarnings("ignore:No window of X has an observed time step in both halves")
@pytest.mark.filterwarnings("ignore:X has windows of one .* that is not missing:UserWarning")
@pytest.mark.filterwarnings("ignore:The scale of X is extreme:UserWarning")
@pytest.mark.filterwarnings("ignore:Channel . of X is")
@pytest.mark.filterwarnings("ignore:float32 does not hold the variation:UserWarning")
@pytest.mark.filterwarnings("ignore:All windows of X have the same features")
@settings(max_examples=4, deadline=None)
@given(
    X=st.tuples(st.integers(1, 4), st.integers(2, 6)).flatmap(
        lambda shape: arrays(
            np.float64, (*shape, 2), elements=st.floats(-1e3, 1e3) | st.just(np.nan)
        )
    )
)
def test_any_finite_values_and_any_missing_steps(cls, X):
    X[:, 0] = np.nan_to_num(X[:, 0])  # one observed step at least
    X = np.concatenate([X] * least(cls))
    assert np.isfinite(fit_transform(brief(cls), X)).all()


@pytest.mark.parametrize("shape", [(1, 5), (1, 5, 1), (3, 1), (1, 1, 5, 2)])
def test_axes_of_length_one_may_be_reversed(shape):
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    estimator = RandomConvolutionTransformer(num_kernels=84, random_state=0)
    expected = estimator.fit_transform(X)
    for axis, size in enumerate(shape):
        if size == 1:
            np.testing.assert_array_equal(estimator.transform(np.flip(X, axis)), expected)


@each_input
@pytest.mark.filterwarnings("ignore:X has at most two windows of each recording")
def test_lazy_windows_are_windows(cls, windows):
    recording, start = np.divmod(np.arange(20), 2)
    lazy = RecordingWindows(windows.reshape(10, 32, 2), recording, 16 * start, length=16)
    np.testing.assert_array_equal(first_fit(cls).transform(lazy), first_embedding(cls))
    assert fit(without_validation(cls), lazy).n_timesteps_in_ == 16


@each_input
def test_a_spike_gives_finite_numbers_or_an_error_that_names_its_sample(cls, windows):
    estimator = first_fit(cls)
    spiked = windows.copy()
    for spike in (1e10, 1e20, 1e25, 3e38):
        spiked[3, 4, 1] = spike
        try:
            assert np.isfinite(estimator.transform(spiked)).all()
        except ValueError as error:
            assert "not finite in 1 sample(s) (3); the first reaches" in str(error)
            assert "replace outliers by NaN" in str(error)
            assert hasattr(estimator, "lr") or "smaller lr" not in str(error)
            assert spike > 1e10
    spiked[3, 4, 1] = np.nan
    if takes_nan(cls):
        assert np.isfinite(estimator.transform(spiked)).all()


@each_input
def test_windows_that_are_refused(cls, windows):
    estimator = first_fit(cls)
    infinite = windows.copy()
    infinite[3, 4, 1] = np.inf
    by = "by NaN" if takes_nan(cls) else "for example by interpolation, or drop the sample"
    for X, message in [
        (infinite, f"Input X contains infinity.*sample 3.*replace it, {by}"),
        (windows[..., :1], "X has 1 channels.* expecting 2 channels"),
        (windows.swapaxes(1, 2), "X looks transposed"),
        (windows[:, :0], "at least one time step and one channel"),
        (windows[None, None], "5 dimensions"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimator.transform(X)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        fit(brief(cls), infinite)


# --- missing values ---


@each_variable
@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_padding_with_missing_steps_changes_nothing(cls, windows, pooling):
    short = windows[:, :8]
    estimator = fit(brief(cls, pooling=pooling), short)
    for n_before in (0, 1, 2):
        if n_before == 1 and cls.__name__ == "SimMTMTransformer":  # whose "cnn" has strides
            estimator = fit(brief(cls, pooling=pooling, backbone="dilated"), short)
        padded = np.full_like(windows, np.nan)
        padded[:, n_before : n_before + 8] = short
        warns = pytest.warns(UserWarning, match="never trained")
        with warns if issubclass(cls, TrainedEmbedder) else contextlib.nullcontext():
            embedding = estimator.transform(padded)
        np.testing.assert_allclose(embedding, estimator.transform(short), atol=1e-6)


@each_with_gaps
def test_a_step_is_missing_if_any_channel_is(cls, windows):
    estimator = first_fit(cls)
    partly, wholly = windows.copy(), windows.copy()
    partly[:, 5, 1] = np.nan
    wholly[:, 5] = np.nan
    np.testing.assert_array_equal(estimator.transform(partly), estimator.transform(wholly))
    assert not np.allclose(estimator.transform(partly), estimator.transform(windows))


@each_with_gaps
def test_fit_with_missing_steps(cls, windows):
    X = windows.copy()
    X[::2, 10:] = np.nan
    X[1::3, 4] = np.nan
    before = X.copy()
    embedding = fit_transform(brief(cls), X)
    assert np.isfinite(embedding).all()
    np.testing.assert_array_equal(X, before)


@each_trained
def test_bfloat16_changes_no_more_than_the_rounding(cls, windows):
    X = windows.copy()
    X[::2, 10:] = np.nan
    X[1::3, 4] = np.nan
    rounded, exact = (
        fit(brief(cls, precision=precision), X) for precision in ("bfloat16", "float32")
    )
    first, second = (estimator.history_[0]["train_loss"] for estimator in (rounded, exact))
    assert first != second
    assert first == pytest.approx(second, rel=0.02)
    embedding = rounded.transform(X)
    assert embedding.dtype == np.float32
    np.testing.assert_allclose(embedding, exact.transform(X), rtol=0, atol=0.05)


# --- bags ---


@each_input
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_bag_is_pooled_over_its_windows(cls, windows, pooling):
    bags = windows.reshape(5, 4, 16, 2)
    estimator = fitted(cls).set_params(bag_pooling=pooling)
    rows = estimator.transform(windows).reshape(5, 4, -1).astype(np.float64)
    np.testing.assert_allclose(
        estimator.transform(bags), getattr(np, pooling)(rows, axis=1), rtol=1e-6
    )


@each_input
def test_windows_that_pad_a_bag_do_not_count(cls, windows):
    bags = windows.reshape(5, 4, 16, 2).copy()
    bags[2, 1:] = np.nan
    estimator = fit(brief(cls), bags)
    embedding = estimator.transform(bags)
    np.testing.assert_array_equal(embedding[2], estimator.transform(bags[2, 0][None])[0])


@each_encoder
def test_fit_on_bags_sees_every_window(cls, windows):
    estimator = without_validation(cls)
    recordings = {"groups": np.arange(20) // 4} if cls in TRAINED else {}
    y = np.arange(5) % 2  # ignored where no label is needed
    flat = without_validation(cls).fit(windows, np.repeat(y, 4), **recordings)
    bags = estimator.fit(windows.reshape(5, 4, 16, 2), y)
    np.testing.assert_array_equal(bags.transform(windows), flat.transform(windows))


# --- objectives ---


def objective_of(cls):
    return copy.deepcopy(first_fit(cls).net_.module_)


@each_trained
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_objective_contract(cls, windows, batch):
    """A finite scalar, a gradient that reaches the encoder, and an untouched input."""
    objective = objective_of(cls)
    # A method that needs negatives is never given fewer: the iterator merges a last batch of one.
    x = torch.from_numpy(windows[: max(batch, least(cls))])
    before = x.clone()
    loss = objective.train()(x=x)
    assert loss.shape == ()
    assert torch.isfinite(loss)
    objective.zero_grad()
    loss.backward()
    assert torch.equal(x, before)
    assert any(p.grad is not None and p.grad.any() for p in objective.encoder.parameters())


@each_trained
def test_a_batch_is_divided_among_processes_or_the_reason_is_given(cls):
    """tests/test_distributed.py divides the batches of those that can be divided."""
    objective = small(cls)._objective_class
    reason = objective.indivisible
    if reason is None:
        assert objective in {type(case) for _, case, _ in distributed_cases()}
        return
    assert reason
    if "distributed" not in cls().get_params():
        return
    with pytest.raises(ValueError, match=f"{cls.__name__} cannot train in .* since {reason}: set"):
        small(cls, distributed=True).fit(np.zeros((4, 16, 2)))


def test_every_self_supervised_method_of_the_package_can_be_asked_to_divide_batches():
    ours = [cls for cls in TRAINED if cls.__module__.startswith("sklearn_pulse.")]
    without = [cls.__name__ for cls in ours if "distributed" not in cls().get_params()]
    assert without == ["PulseOracleTransformer"]  # it learns from labels


@each_trained
def test_same_seed_same_loss(cls, windows):
    x = torch.from_numpy(windows)
    losses = []
    for seed in (3, 3, 4):
        objective = objective_of(cls).train()
        with objective.seeded(seed):
            losses.append([objective(x=x).item() for _ in range(2)])
    assert losses[0] == losses[1] != losses[2]
    assert losses[0][0] != losses[0][1]


@each_trained
def test_a_batch_of_one_learns_or_is_refused(cls, windows):
    estimator = brief(cls, batch_size=1)
    if least(cls) > 1:
        with pytest.raises(ValueError, match="batch_size=1 leaves a window alone.*to 2 or more"):
            fit(estimator, windows)
        return
    few = windows[:6]  # an update for each
    learnt = fit_transform(estimator.set_params(lr=1e-2, weight_decay=0.0), few)
    still = brief(cls, batch_size=1, lr=1e-12, weight_decay=0.0)
    assert not np.allclose(learnt, fit_transform(still, few), atol=1e-4)
