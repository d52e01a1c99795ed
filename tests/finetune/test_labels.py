"""Labels of every kind, and weights."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pulse import FineTuneClassifier
from sklearn_pulse.baselines import SupervisedClassifier
from sklearn_pulse.evaluation import LabeledSubsetClassifier, make_linear_probe
from tests.helpers import BatchSpy, callback_of, make_windows

from .tuning import STILL, array_api, scratch, tuned


@pytest.mark.parametrize("labels", [["left", "right"], [-1, 1], [True, False], [7, 3]])
def test_any_labels(pulse, windows, labels):
    X, y = windows
    X = X * (1 + 3 * y)[:, None, None]  # the classes are easily told apart
    names = np.asarray(labels)[y]
    classifier = tuned(pulse, max_epochs=5, lr=2e-2).fit(X, names)
    classes, numbers = np.unique(names, return_inverse=True)
    np.testing.assert_array_equal(classifier.classes_, classes)
    assert classifier.predict(X).dtype == classes.dtype
    assert np.mean(classifier.predict(X) == names) > 0.9
    column = pd.Series(names, dtype=object if labels[0] == "left" else None)
    for same in (numbers, column):
        again = tuned(pulse, max_epochs=5, lr=2e-2).fit(X, same)
        np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))


def test_the_probe_learns_any_labels(pulse, windows):
    X, y = windows
    names = np.array(["left", "right"])
    classifier = tuned(pulse, score_with="probe").fit(X, names[y])
    np.testing.assert_array_equal(classifier.probe_.classes_, names)
    numbered = tuned(pulse, score_with="probe").fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), numbered.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(X), names[numbered.predict(X)])


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_the_probe_learns_dates(pulse, windows, unit):
    X, y = windows
    dates = np.array(["2020-01-01", "2021-02-03"], dtype=f"M8[{unit}]")
    classifier = tuned(pulse, score_with="probe").fit(X, dates[y])
    numbered = tuned(pulse, score_with="probe").fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), numbered.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(X), dates[numbered.predict(X)])
    np.testing.assert_array_equal(classifier.probe_.classes_, dates)


def test_probabilities_are_the_softmax_of_the_head(fitted, windows):
    X, y = windows
    embedding = torch.from_numpy(fitted.transform(X))
    logits = fitted.head_(embedding).detach().numpy().astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-5)
    np.testing.assert_array_equal(fitted.predict(X), expected.argmax(1))
    assert fitted.score(X, y) == np.mean(expected.argmax(1) == y)


def test_three_classes_and_scorers(pulse):
    X, _ = make_windows(30, n_channels=3)
    y = np.arange(30) % 3
    X *= (1 + 3 * y)[:, None, None]
    auroc = make_scorer(roc_auc_score, response_method="predict_proba", multi_class="ovr")
    results = cross_validate(tuned(pulse, max_epochs=8), X, y, cv=3, scoring=auroc)
    assert results["test_score"].mean() > 0.8


def test_refused_labels(pulse, windows):
    X, y = windows
    for labels, match in [
        (None, "requires y to be passed, but the target y is None"),
        (np.zeros(20), "at least 2 classes in the data, but the data contains only one class"),
        (y[:-1], "X has 20, y has 19"),
        (np.linspace(0, 1, 20), "Unknown label type"),
    ]:
        with pytest.raises(ValueError, match=match):
            tuned(pulse).fit(X, labels)
    with pytest.raises(TypeError, match="y mixes text with other labels"):
        tuned(pulse).fit(X, np.where(y, "a", y.astype(object)))
    with pytest.raises(ValueError, match=r"only one class: 1\. Add .* to X and y \(.* weight 0"):
        tuned(pulse).fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="no sample to train on a weight above zero"):
        tuned(pulse, class_weight={0: 0, 1: 0}).fit(X, y)
    with pytest.raises(ValueError, match="no sample to validate on a weight above zero"):
        tuned(pulse, class_weight={0: 0, 1: 1}).fit(X, y, X_val=X[y == 0], y_val=y[y == 0])
    for value in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"class_weight\[0\] must be a number in \[0, inf\)"):
            tuned(pulse, class_weight={0: value, 1: 2}).fit(X, y)
    for value, kind in (("even", ValueError), (2, TypeError), ([1, 2], TypeError)):
        with pytest.raises(kind, match="class_weight must be None, 'balanced' or a dict"):
            tuned(pulse, class_weight=value).fit(X, y)
    for weight in (["a"] * 20, [1j] * 20, [None] * 20, np.ones(3), -np.ones(20)):
        with pytest.raises(ValueError, match="^sample_weight must hold one number of at least 0"):
            tuned(pulse).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="^pretrained must be a path"):
        FineTuneClassifier("").fit(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_weighted(pulse, windows, class_weight, weighted):
    """The weighted mean of the cross-entropy: sum_i w_i l_i / sum_i w_i."""
    X, y = windows[0][:14], windows[1][:14] & (np.arange(14) > 4)
    sample_weight = np.linspace(0.1, 2, 14) if weighted else None
    classifier = tuned(pulse, **STILL, class_weight=class_weight)
    classifier.set_params(batch_size=14).fit(X, y, sample_weight=sample_weight)
    own = np.ones(14) if sample_weight is None else sample_weight
    by_class = {0: 1.0, 1: 1.0} if class_weight is None else class_weight
    if class_weight == "balanced":
        by_class = {k: own.sum() / (2 * own[y == k].sum()) for k in (0, 1)}
    weight = own * [by_class[label] for label in y]
    losses = -np.log(classifier.predict_proba(X)[np.arange(14), y])
    expected = (weight * losses).sum() / weight.sum()
    np.testing.assert_allclose(classifier.history_[0]["train_loss"], expected, rtol=1e-5)


@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 0.5}])
def test_the_validation_loss_is_weighted_whatever_the_unit_of_the_weights(windows, class_weight):
    """The weighted mean of the cross-entropy of the validation part."""
    X, y = windows
    classifier = scratch(class_weight=class_weight)
    by_class = {0: 1.0, 1: 1.0} if class_weight is None else class_weight
    weight = np.array([by_class[label] for label in y[:7]])
    for own in (None, np.full(20, 4.0), 1.0 + y):
        classifier.fit(X, y, X_val=X[:7] + 0.5, y_val=y[:7], sample_weight=own)
        losses = -np.log(classifier.predict_proba(X[:7] + 0.5)[np.arange(7), y[:7]])
        expected = (weight * losses).sum() / weight.sum()
        np.testing.assert_allclose(classifier.history_[-1]["valid_loss"], expected, rtol=1e-5)


@pytest.mark.parametrize("params", [{}, {"score_with": "probe"}, {"validation_fraction": 0.3}])
def test_a_weight_is_a_number_of_repeats_and_order_is_nothing(pulse, windows, params):
    X, y = windows
    weight = np.random.default_rng(0).integers(0, 4, 20)
    repeats = np.random.default_rng(1).permutation(np.repeat(np.arange(20), weight))
    weighted = tuned(pulse, **params).fit(X, y, sample_weight=weight)
    repeated = tuned(pulse, **params).fit(X[repeats], y[repeats])
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert not np.array_equal(
        weighted.predict_proba(X), tuned(pulse, **params).fit(X, y).predict_proba(X)
    )
    if "score_with" in params:
        embedding = weighted.transform(X).astype(float)
        probe = make_linear_probe().fit(embedding[repeats], y[repeats])
        np.testing.assert_allclose(
            weighted.predict_proba(X), probe.predict_proba(embedding), atol=1e-3
        )


def test_equal_windows_with_other_labels_or_masks_stay_apart(windows):
    X, y = np.repeat(windows[0][:1], 6, axis=0), np.array([0, 1, 0, 1, 0, 0])
    X[4, 3] = 0
    X[5, 3] = np.nan
    classifier = scratch(callbacks=[BatchSpy()]).fit(X, y)
    batch = callback_of(classifier, BatchSpy).batches_[0]
    assert sorted(batch["weight"].tolist()) == pytest.approx([2 / 3, 2 / 3, 4 / 3, 4 / 3])
    assert batch["observed"].sum() == 4 * 16 - 1


def test_the_order_of_equal_windows_in_several_groups_is_nothing(windows):
    X, y = np.repeat(windows[0][:4], 5, axis=0), np.repeat([0, 1, 0, 1], 5)
    groups = np.tile(["a", "b", "c", "d", "e"], 4)
    order = np.random.default_rng(1).permutation(20)
    found = []
    for rows in (np.arange(20), order, order[::-1]):
        classifier = scratch(validation_fraction=0.4)
        classifier.fit(X[rows], y[rows], groups=groups[rows])
        found.append(classifier.predict_proba(windows[0]))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_the_order_of_the_samples_to_validate_on_is_nothing(windows):
    """Whichever of them is alone in the last batch, which counts as much as the others."""
    X, y = windows
    found = []
    for turn in range(3):
        classifier = scratch(batch_size=4, max_epochs=2)
        X_val, y_val = np.roll(X[:9] + 0.5, turn, axis=0), np.roll(y[:9], turn)
        classifier.fit(X, y, X_val=X_val, y_val=y_val)
        found.append([epoch["valid_loss"] for epoch in classifier.history_])
    assert found[1] == found[0] and found[2] == found[0]


MARKED = [0, 1, 0, 1, 0, 1, 0, 1, -1, -1] * 2
DOOR = "LabeledSubsetClassifier({0}(...){1}); or set unlabeled_label=None"


@pytest.mark.parametrize("cls", [FineTuneClassifier, SupervisedClassifier])
@pytest.mark.parametrize(
    ("labels", "marker"),
    [
        (MARKED, -1),
        (np.array(MARKED, dtype=float), -1),
        (np.array(MARKED, dtype=object), -1),
        ([0, -1] * 10, -1),
        ([-1] * 20, -1),
        (["walk", "run", "walk", -1] * 5, -1),  # NumPy makes "-1" of it
        (["walk", "run", "?", "run"] * 5, "?"),
        ([0, 1, 9, 1] * 5, 9),
    ],
)
def test_a_sample_without_a_label_is_no_class(windows, cls, labels, marker):
    classifier = cls(unlabeled_label=marker)
    mark = "" if marker == -1 else f", unlabeled_label={marker!r}"  # -1 is the wrapper's own mark
    with pytest.raises(ValueError, match=re.escape(DOOR.format(cls.__name__, mark))):
        classifier.fit(windows[0], labels)
    assert not hasattr(classifier, "classes_")


@pytest.mark.parametrize(
    ("labels", "marker"),
    [
        (MARKED, None),
        ([-1, 1] * 10, -1),  # the usual names of two classes
        (np.array([-1.0, 1.0] * 10), -1),
        (["-1", "1"] * 10, -1),
        ([-2, -1, 0, 1, 2] * 4, -1),  # an ordered scale
        ([0, 1] * 10, -1),
        ([0, 1] * 10, "?"),
    ],
)
def test_a_class_may_be_called_minus_one(windows, labels, marker):
    fitted = scratch(unlabeled_label=marker, max_epochs=1).fit(windows[0], labels)
    np.testing.assert_array_equal(fitted.classes_, np.unique(labels))


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
@pytest.mark.parametrize("options", [{}, {"na_object": np.nan}])
def test_labels_of_numpys_string_type_name_the_remedy(windows, options):
    """scikit-learn learns and scores none."""
    X, y = windows[0][:8], np.array(["rest", "walking"] * 4)
    modern = y.astype(np.dtypes.StringDType(**options))
    remedy = r"y has dtype StringDType\(.*pass y.astype\(object\)"
    probe = LabeledSubsetClassifier(LogisticRegression())
    for fit in (
        scratch(max_epochs=1).fit,
        SupervisedClassifier().fit,
        lambda X, y: probe.fit(X[:, :, 0], y),
    ):
        with pytest.raises(TypeError, match=remedy):
            fit(X, modern)
    with pytest.raises(TypeError, match="y_val has dtype StringDType"):
        scratch(max_epochs=1).fit(X, y, X_val=X, y_val=modern)
    fitted = scratch(max_epochs=1).fit(X, modern.astype(object))
    assert fitted.classes_.tolist() == ["rest", "walking"]


@pytest.mark.parametrize("dispatch", [False, pytest.param(True, marks=array_api)])
def test_labels_may_be_a_tensor(windows, monkeypatch, dispatch):
    """scikit-learn keeps tensors if it dispatches on arrays."""
    X, y = windows
    expected = scratch(max_epochs=1).fit(X, y, sample_weight=np.arange(20.0), X_val=X, y_val=y)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    labels = torch.from_numpy(y)
    weight = torch.arange(20.0, requires_grad=True)
    with sklearn.config_context(array_api_dispatch=dispatch):
        fitted = scratch(max_epochs=1)
        fitted.fit(X, labels, sample_weight=weight, X_val=X, y_val=labels)
        partly = torch.where(torch.arange(20) < 12, labels, -1)
        wrapped = LabeledSubsetClassifier(scratch(max_epochs=1)).fit(X, partly)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    assert fitted.classes_.tolist() == wrapped.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("exponent", [1023, -1074])
def test_weights_at_the_ends_of_float64(windows, exponent):
    X, y = windows
    expected = scratch().fit(X, y, X_val=X[:6], y_val=y[:6])
    weight = np.full(20, np.ldexp(1.0, exponent))
    fitted = scratch().fit(X, y, X_val=X[:6], y_val=y[:6], sample_weight=weight)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    assert fitted.history_[-1]["train_loss"] == expected.history_[-1]["train_loss"]
    assert 0 < fitted.history_[-1]["valid_loss"] < np.inf


@pytest.mark.parametrize("exponent", [1023, -1074])
@pytest.mark.parametrize("score_with", ["head", "probe"])
def test_class_weights_at_the_ends_of_float64(windows, score_with, exponent):
    X, y = windows
    expected = scratch(score_with=score_with, class_weight={0: 0.5, 1: 0.5}).fit(X, y)
    class_weight = dict.fromkeys((0, 1), np.ldexp(1.0, exponent))
    fitted = scratch(score_with=score_with, class_weight=class_weight).fit(X, y)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    assert fitted.history_[-1]["train_loss"] == expected.history_[-1]["train_loss"] > 0


def test_missing_labels_name_the_remedy(windows):
    X, y = windows
    for labels in (
        [None, *y[1:]],
        np.where(y, np.nan, 0.0),
        ["a", None, "b", "b"] * 5,
        ["a", np.nan, "b", "b"] * 5,
        pd.Series(pd.array([None, *y[1:]], dtype="Int64")),
    ):
        with pytest.raises(ValueError, match="y contains NaN or None.*by -1.*LabeledSubsetClassif"):
            scratch().fit(X, labels)
    with pytest.raises(ValueError, match="y_val contains NaN or None in 1 of 2"):
        scratch().fit(X, y, X_val=X[:2], y_val=[0.0, np.nan])
    with pytest.raises(TypeError, match="unlabeled_label must be an integer, text or None"):
        scratch(unlabeled_label=0.5).fit(X, y)


def test_a_sample_without_a_label_is_not_scored_as_an_error(windows):
    X, y = windows
    partly = np.where(np.arange(20) < 8, y, -1)
    with pytest.raises(ValueError, match="y holds -1 in 12 of 20 samples.*LabeledSubsetClassif"):
        scratch().fit(X, y).score(X, partly)
    names = np.array(["sit", "walk"])[y]
    with pytest.raises(ValueError, match="y holds '\\?' in 12 of 20 samples"):
        scratch(unlabeled_label="?").fit(X, names).score(X, np.where(partly < 0, "?", names))
    # A class, or a mark that the caller has switched off.
    for fitted in (scratch().fit(X, 2 * y - 1), scratch(unlabeled_label=None).fit(X, y)):
        right = fitted.predict(X) == -1
        assert fitted.score(X, np.full(20, -1)) == right.mean()


def test_few_labels(windows):
    X, y = windows
    partly = np.where(np.arange(20) < 8, y, -1)
    wrapped = LabeledSubsetClassifier(scratch()).fit(X, partly)
    assert wrapped.classes_.tolist() == [0, 1]
    alone = scratch().fit(X[:8], y[:8])
    np.testing.assert_array_equal(wrapped.predict_proba(X), alone.predict_proba(X))
    assert wrapped.score(X, partly) == alone.score(X[:8], y[:8])
    pipe = make_pipeline(FunctionTransformer(), LabeledSubsetClassifier(scratch()))
    grid = {"labeledsubsetclassifier__estimator__lr": [1e-3, 1e-2]}
    search = GridSearchCV(pipe, grid, cv=StratifiedKFold(2), error_score="raise").fit(X, partly)
    assert search.predict(X).shape == (20,)
