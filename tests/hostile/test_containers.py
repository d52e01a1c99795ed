"""Windows with missing steps are the same windows in every container, whoever reads them."""

import functools
import inspect

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline

import sklearn_pulse
from sklearn_pulse import (
    FineTuneClassifier,
    PulseTransformer,
    baselines,
    evaluation,
    features,
    inspection,
    model_selection,
    plotting,
    preprocessing,
)
from sklearn_pulse.base import BaseEncoderTransformer, WindowEmbedder
from sklearn_pulse.features._base import BaseFeatureTransformer
from sklearn_pulse.windows import SlidingWindows
from tests.helpers import SMALL_PULSE, make_windows, small

_X, _y = make_windows(24)
_X[3, 5:9] = np.nan
_X[4:6, 2, 1] = np.nan
_X[7, 12:] = np.nan
_GROUPS = np.arange(24) // 4
_FILL = 999  # what a file may hold beneath a mask


def _masked(X):
    return np.ma.masked_array(np.where(np.isnan(X), _FILL, X), np.isnan(X))


def _objects(X):
    objects = np.empty(len(X), dtype=object)
    objects[:] = list(X)
    return objects


def _frames(X, layout):
    rows = X.swapaxes(1, 2) if layout == "nct" else X
    return [pd.DataFrame(x, columns=["bvp", "eda"]) for x in rows]


_CONTAINERS = {
    "masked array": lambda X, layout: _masked(X),
    "list of masked arrays": lambda X, layout: list(_masked(X)),
    "objects that are masked arrays": lambda X, layout: _objects(_masked(X)),
    "list of tensors": lambda X, layout: [torch.tensor(x).requires_grad_() for x in X],
    "list of frames": _frames,
    "objects that are frames": lambda X, layout: _objects(_frames(X, layout)),
}

each_container = pytest.mark.parametrize("container", _CONTAINERS)
each_layout = pytest.mark.parametrize("layout", ["ntc", "nct"])


def _windows(layout):
    return _X if layout == "ntc" else np.ascontiguousarray(_X.swapaxes(1, 2))


def _assert_same(got, expected):
    """Compare results, which may be dictionaries and sequences of results."""
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        for name in expected:
            _assert_same(got[name], expected[name])
    elif isinstance(expected, list | tuple):
        for own, other in zip(got, expected, strict=True):
            _assert_same(own, other)
    else:
        np.testing.assert_array_equal(got, expected)


class _Models:
    """Fitted models of one layout."""

    def __init__(self, layout):
        X = _windows(layout)
        self.pulse = PulseTransformer(**SMALL_PULSE, input_layout=layout).fit(X)
        frozen = FrozenEstimator(self.pulse)
        self.probe = make_pipeline(frozen, LogisticRegression(max_iter=1000)).fit(X, _y)
        self.clusters = make_pipeline(frozen, KMeans(2, random_state=0, n_init=1)).fit(X)


@functools.cache
def _models(layout):
    return _Models(layout)


@functools.cache
def _read_from_an_array(reader, layout):
    return _READERS[reader](_models(layout), _windows(layout))


@functools.cache
def _fitted_on_an_array(layout):
    """Return what two networks make of the windows after a fit on them."""
    return _fitted_outputs(_windows(layout), layout)


def _fitted_outputs(held, layout):
    X = _windows(layout)
    pulse = PulseTransformer(**SMALL_PULSE | {"max_epochs": 1}, input_layout=layout)
    tuned = FineTuneClassifier(max_epochs=1, random_state=0, input_layout=layout, num_threads=1)
    tuned.fit(held, _y, X_val=held, y_val=_y)
    return pulse.fit(held, X_val=held).transform(X), tuned.predict_proba(held)


def _splits(cv):
    return lambda models, X: list(cv.split(X, _y, _GROUPS))


def _drift(models, X):
    drift = evaluation.drift_scores(models.pulse, X[:12], X[12:], random_state=0)
    return drift.embedding, drift.scores


def _drawn_drift(models, X):
    drawn = plotting.DriftDisplay.from_estimator(models.pulse, X[:12], X[12:], random_state=0)
    return drawn.embedding, drawn.scores


def _label_efficiency(models, X):
    display = plotting.LabelEfficiencyDisplay.from_estimators(
        {"PULSE": models.pulse}, X, _y, cv=2, fractions=(0.5, 1.0), n_draws=1
    )
    return display.scores


def _drawn_windows(models, X):
    drawn = [
        plotting.ReconstructionDisplay.from_estimator(models.pulse, X, sample=i) for i in (3, 7)
    ]
    return [(display.signal, display.predictions) for display in drawn]


# What reads windows, by its public name.
_READERS = {
    "clustering_scores": lambda m, X: evaluation.clustering_scores(m.clusters, X, _y),
    "drift_scores": _drift,
    "probe_scores": lambda m, X: evaluation.probe_scores(m.probe, X, _y),
    "reconstruction_scores": lambda m, X: evaluation.reconstruction_scores(m.pulse, X),
    "channel_importance": lambda m, X: inspection.channel_importance(
        m.probe, X, _y, scoring="neg_log_loss", n_repeats=2, random_state=0
    ),
    "DriftDisplay": _drawn_drift,
    "EmbeddingDisplay": lambda m, X: (
        plotting.EmbeddingDisplay.from_estimator(m.pulse, X).coordinates
    ),
    "LabelEfficiencyDisplay": _label_efficiency,
    "ReconstructionDisplay": _drawn_windows,
    "GroupHoldout": _splits(model_selection.GroupHoldout(random_state=0)),
    "LabelFractionSplit": _splits(
        model_selection.LabelFractionSplit(0.5, cv=GroupKFold(2), random_state=0)
    ),
    "LabeledTestSplit": _splits(model_selection.LabeledTestSplit(GroupKFold(2))),
}


def _takes_windows(value):
    """Return whether a function, or a method of a class, has an argument X."""
    uses = [value]
    if inspect.isclass(value):
        uses = [use for name, use in vars(value).items() if not name.startswith("_")]
    functions = [inspect.unwrap(getattr(use, "__func__", use)) for use in uses]
    return any(
        name.startswith("X")
        for function in functions
        if inspect.isfunction(function)
        for name in inspect.signature(function).parameters
    )


def test_every_reader_is_tried():
    rooms = (evaluation, inspection, model_selection, plotting)
    public = {name: getattr(room, name) for room in rooms for name in room.__all__}
    found = {name for name, value in public.items() if _takes_windows(value)}
    # Embeddings of any kind are the X of this classifier, and it passes them on.
    assert found - {"LabeledSubsetClassifier"} == {*_READERS}


@pytest.fixture
def agg():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    __import__("matplotlib.pyplot").pyplot.close("all")


@pytest.mark.parametrize(
    ("container", "layout"),
    # What reads windows passes the layout on; each kind of container is one of these two.
    [*((name, "ntc") for name in _CONTAINERS), ("masked array", "nct"), ("list of frames", "nct")],
)
@pytest.mark.parametrize("reader", _READERS)
def test_a_reader_gives_the_same_result(reader, container, layout, agg):
    held = _CONTAINERS[container](_windows(layout), layout)
    result = _READERS[reader](_models(layout), held)
    _assert_same(result, _read_from_an_array(reader, layout))


@each_layout
@each_container
def test_windows_are_reconstructed_and_scored_alike(container, layout):
    X, pulse = _windows(layout), _models(layout).pulse
    held = _CONTAINERS[container](X, layout)
    for method in (pulse.transform, pulse.reconstruct, pulse.score_samples):
        np.testing.assert_array_equal(method(held), method(X))


def _estimators():
    """Yield every public class that turns windows into rows or windows."""
    rooms = (sklearn_pulse, baselines, features, preprocessing)
    kinds = (BaseEncoderTransformer, WindowEmbedder, BaseFeatureTransformer)
    public = {name: getattr(room, name) for room in rooms for name in room.__all__}
    for name, value in sorted(public.items()):
        is_class = inspect.isclass(value) and not name.startswith("Base")
        if is_class and (issubclass(value, kinds) or name in preprocessing.__all__):
            yield value


def _made(cls, layout):
    if cls is preprocessing.Resampler:
        return cls(64, 32, input_layout=layout)
    if cls is preprocessing.BandpassFilter:
        return cls(None, 20, 64, input_layout=layout)
    return small(cls, max_epochs=1, input_layout=layout)


def _as_array(result, layout):
    """Return the result of a step as an array; frames have a column per channel."""
    is_frames = layout == "nct" and hasattr(result[0], "columns")
    return np.asarray([x.to_numpy().T for x in result] if is_frames else result)


@each_layout
@pytest.mark.parametrize("cls", [*_estimators(), SlidingWindows], ids=lambda cls: cls.__name__)
def test_an_estimator_transforms_them_alike(cls, layout):
    if cls.__name__ == "MiniRocketTransformer":
        pytest.importorskip("numba")
    X = _windows(layout)
    estimator = _made(cls, layout)
    knows_gaps = estimator.__sklearn_tags__().input_tags.allow_nan
    fitted = estimator.fit(X if knows_gaps else np.nan_to_num(X), _y)
    expected = fitted.transform(X) if knows_gaps else None
    for name, contain in _CONTAINERS.items():
        held = contain(X, layout)
        if knows_gaps:
            got = _as_array(fitted.transform(held), layout)
            np.testing.assert_array_equal(got, expected, name)
        else:
            with pytest.raises(ValueError, match="X contains NaN"):
                fitted.transform(held)


@each_container
@each_layout
def test_an_estimator_is_fitted_on_them_alike(container, layout):
    """Few classes stand for all: their bases convert the input."""
    X = _windows(layout)
    held = _CONTAINERS[container](X, layout)
    _assert_same(_fitted_outputs(held, layout), _fitted_on_an_array(layout))
    for step in (preprocessing.WindowScaler(), features.StatisticsTransformer()):
        step.set_params(input_layout=layout)
        np.testing.assert_array_equal(step.fit(held).transform(X), step.fit(X).transform(X))
