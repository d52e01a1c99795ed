"""Steps that a chain in a folder may have, and what each of them has learnt.

A class that is not listed here is neither written nor read. Its name in a file is compared with
these names and never imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import LabelBinarizer

from .._persistence import encode

PIPELINE = "sklearn.pipeline.Pipeline"
FROZEN = "sklearn.frozen.FrozenEstimator"
LABELED = "sklearn_pulse.evaluation.LabeledSubsetClassifier"

# Parameters of a machine, not of a model, which no file may set.
LOCAL = ("memory", "n_jobs", "verbose")

# What scikit-learn gives a deprecated parameter that nobody set. Other versions refuse it.
UNSET = "deprecated"


class Held(NamedTuple):
    """What a fitted attribute holds: kinds of dtype, shapes by the names of their axes."""

    kinds: str
    shapes: tuple[str, ...]
    may_be_none: bool = False
    is_needed: bool = True


class Step(NamedTuple):
    """A class of steps: the arrays it learns, and the facts beside them."""

    arrays: Mapping[str, Held] = {}
    facts: tuple[str, ...] = ("n_features_in_",)
    is_classifier: bool = False
    checks: tuple[str, ...] = ("_validate_params",)  # methods that refuse wrong parameters


def _held(*shapes: str, kinds: str = "f", none: bool = False, needed: bool = True) -> Held:
    return Held(kinds, shapes, none, needed)


_COUNT = _held("", kinds="iu", needed=False)
_COUNTS = _held("", "any", kinds="iu", none=True, needed=False)
_CLASSIFIER = Step(
    {"coef_": _held("r n"), "intercept_": _held("r", ""), "n_iter_": _COUNTS},
    is_classifier=True,
)
_RIDGE_CLASSIFIER = {**_CLASSIFIER.arrays, "coef_": _held("r n", "n")}
_REGRESSOR = {"coef_": _held("n", "t n"), "intercept_": _held("", "t")}
_OURS = ("_check_params", "_derive")
_CHOSEN = {name: _held("", "any", kinds="iuf", needed=False) for name in ("alpha_", "best_score_")}
# Facts that a step may lack, each with the fact that is its length.
NAMES = {"feature_names_in_": "n_features_in_", "channel_names_in_": "n_channels_in_"}
_WINDOWS = ("n_features_in_", "n_channels_in_", "_fitted_on_table")

STEPS: Mapping[str, Step] = {
    "sklearn.preprocessing.StandardScaler": Step(
        {
            "mean_": _held("n", none=True),
            "var_": _held("n", none=True),
            "scale_": _held("n", none=True),
            "n_samples_seen_": _held("", "n", kinds="iuf", needed=False),
        }
    ),
    "sklearn.preprocessing.MinMaxScaler": Step(
        {
            **dict.fromkeys(
                ("min_", "scale_", "data_min_", "data_max_", "data_range_"), _held("n")
            ),
            "n_samples_seen_": _COUNT,
        }
    ),
    "sklearn.preprocessing.RobustScaler": Step(
        {"center_": _held("n", none=True), "scale_": _held("n", none=True)}
    ),
    "sklearn.decomposition.PCA": Step(
        {
            "components_": _held("k n"),
            "mean_": _held("n"),
            "explained_variance_": _held("k"),
            "explained_variance_ratio_": _held("k"),
            "singular_values_": _held("k"),
            "noise_variance_": _held("", needed=False),
            "n_components_": _COUNT,
            "n_samples_": _COUNT,
        }
    ),
    "sklearn.linear_model.LogisticRegression": _CLASSIFIER,
    "sklearn.svm.LinearSVC": _CLASSIFIER,
    "sklearn.linear_model.RidgeClassifier": Step(_RIDGE_CLASSIFIER, is_classifier=True),
    "sklearn.linear_model.RidgeClassifierCV": Step(
        {**_RIDGE_CLASSIFIER, **_CHOSEN}, is_classifier=True
    ),
    "sklearn.linear_model.SGDClassifier": Step(
        {**_CLASSIFIER.arrays, "t_": _held("", kinds="iuf", needed=False)}, is_classifier=True
    ),
    "sklearn.linear_model.LinearRegression": Step(_REGRESSOR),
    "sklearn.linear_model.Ridge": Step({**_REGRESSOR, "n_iter_": _COUNTS}),
    "sklearn.linear_model.RidgeCV": Step({**_REGRESSOR, **_CHOSEN}),
    "sklearn_pulse.preprocessing.WindowScaler": Step(
        {"center_": _held("c", none=True), "scale_": _held("c", none=True)}, _WINDOWS, checks=_OURS
    ),
    "sklearn_pulse.preprocessing.ChannelWhitener": Step(
        {
            "center_": _held("c"),
            "correlation_": _held("c c", needed=False),
            "whitening_": _held("c c"),
        },
        _WINDOWS,
        checks=_OURS,
    ),
    "sklearn_pulse.preprocessing.BandpassFilter": Step(facts=_WINDOWS, checks=_OURS),
    "sklearn_pulse.preprocessing.Resampler": Step(facts=_WINDOWS, checks=_OURS),
    "sklearn_pulse.windows.SlidingWindows": Step(facts=_WINDOWS, checks=("_check_params",)),
}


def class_of(name: str) -> type[Any]:
    """Return the class that a listed name stands for."""
    module, _, cls = name.rpartition(".")
    return getattr(importlib.import_module(module), cls)


def name_of(step: Any) -> str | None:
    """Return the listed name of a step's class; None for any other class, subclasses included."""
    for name in (*STEPS, PIPELINE, FROZEN, LABELED):
        if type(step).__name__ == name.rpartition(".")[2] and type(step) is class_of(name):
            return name
    return None


def computing_steps(model: Any) -> list[Any]:
    """Return the steps of a chain one after the other, those inside other steps included.

    Parameters
    ----------
    model : estimator, "passthrough" or None
        The chain.

    Returns
    -------
    list of estimator
        The steps that compute something themselves.
    """
    if model is None or isinstance(model, str):
        return []
    if hasattr(model, "steps"):
        return [part for _, step in model.steps for part in computing_steps(step)]
    # Any other step with an estimator in it, such as a threshold, computes something beside it.
    wrapper = name_of(model)
    if wrapper == FROZEN:
        return computing_steps(model.estimator)
    if wrapper == LABELED and hasattr(model, "estimator_"):
        return computing_steps(model.estimator_)
    return [model]


def refuse_search(step: Any) -> None:
    """Raise if a step is a fitted search over models.

    Parameters
    ----------
    step : estimator
        Any step.

    Raises
    ------
    TypeError
        If it is such a search.
    """
    if hasattr(step, "best_estimator_"):
        raise TypeError(
            f"{type(step).__name__} is a search: put the model that it found, best_estimator_, in"
            " its place."
        )


def check_fitted(name: str, step: Any) -> None:
    """Raise unless the fitted attributes of a restored step agree with one another.

    Parameters
    ----------
    name : str
        Listed name of the class.
    step : estimator
        The step, with its parameters and all attributes of the file.

    Raises
    ------
    ValueError
        If an attribute is missing, or of a shape or type that does not go with the others.
    """
    known = STEPS[name]
    sizes = {"n": step.n_features_in_, "c": getattr(step, "n_channels_in_", None)}
    if known.is_classifier:
        n_classes = _n_classes(step)
        sizes["r"] = 1 if n_classes == 2 else n_classes
    for attribute, held in known.arrays.items():
        if attribute not in vars(step):
            if held.is_needed:
                raise ValueError(f"{name} lacks {attribute}: save the model again.")
            continue
        _check_array(f"{name}.{attribute}", getattr(step, attribute), held, sizes)
    if name.endswith("WindowScaler") and (step.center_ is None) != (step.per != "channel"):
        raise ValueError(f"{name} with per={step.per!r} has statistics that do not go with it.")


def _n_classes(step: Any) -> int:
    """Return the number of classes; raise unless they are sorted labels of one kind."""
    classes = step.classes_
    is_labels = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 1
    if not is_labels or not np.array_equal(classes, np.unique(classes)):
        raise ValueError("classes_ must be two or more different labels, in their order.")
    return len(classes)


def _check_array(name: str, value: Any, held: Held, sizes: dict[str, Any]) -> None:
    """Raise unless an attribute is of one of its shapes; sizes of new axes are noted."""
    if value is None and held.may_be_none:
        return
    array = np.asarray(value)
    for axes in (shape.split() for shape in held.shapes):
        if array.dtype.kind in held.kinds and _fits(array, axes, sizes):
            return
    raise ValueError(
        f"{name} is {array.dtype} of shape {array.shape}, which does not go with the rest: save"
        " the model again."
    )


def _fits(array: NDArray[Any], axes: list[str], sizes: dict[str, Any]) -> bool:
    if len(axes) != array.ndim or 0 in array.shape:
        return False
    found = dict(zip(axes, array.shape, strict=True))
    if any(sizes.get(axis, size) != size for axis, size in found.items() if axis != "any"):
        return False
    sizes |= found
    return True


def set_classes(step: Any, classes: Any) -> None:
    """Set the classes of a classifier, in the form in which its class keeps them."""
    if type(step).__name__ in ("RidgeClassifier", "RidgeClassifierCV"):
        step._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(classes)
    if not isinstance(getattr(type(step), "classes_", None), property):
        step.classes_ = classes


def encoded_classes(step: Any) -> dict[str, Any]:
    """Return the classes of a classifier as values of JSON; raise if a file cannot hold them."""
    try:
        return encode(np.asarray(step.classes_))
    except TypeError as error:
        raise TypeError(
            f"{type(step).__name__} has the attribute classes_, and {error}: fit it on text, such"
            " as y.astype(str)."
        ) from error


def check_one_label(step: Any) -> None:
    """Raise if a classifier gives a sample several labels, which a file cannot say."""
    binarizer = getattr(step, "_label_binarizer", None)
    if binarizer is not None and binarizer.y_type_.startswith("multilabel"):
        raise TypeError(
            f"a file cannot hold a {type(step).__name__} of several labels per sample: fit one"
            " classifier per label, or save the chain with skops (skops.io.dump)."
        )
