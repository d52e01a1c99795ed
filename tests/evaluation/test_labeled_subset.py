"""The classifier that learns from labelled rows only."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from sklearn_pulse import FineTuneClassifier
from sklearn_pulse.baselines import SupervisedClassifier
from sklearn_pulse.evaluation import LabeledSubsetClassifier
from sklearn_pulse.model_selection import LabeledTestSplit, LabelFractionSplit, mask_labels
from tests.helpers import SMALL_ENCODER, make_windows, sklearn_suite, small

# LabeledSubsetClassifier: scikit-learn's own contract


# Before scikit-learn 1.7 balanced class weights did not take sample weights into account.
OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
DEFAULT = LogisticRegression(max_iter=1000) if OLD else None


# Balanced class weights of scikit-learn divide by zero.
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:lbfgs failed:sklearn.exceptions.ConvergenceWarning")
@sklearn_suite([LabeledSubsetClassifier(DEFAULT, unlabeled_label=None)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# LabeledSubsetClassifier: -1


@pytest.fixture
def few_labels():
    """Three blobs of 90 rows, a fifth of them labelled, and the truth."""
    rng = np.random.default_rng(1)
    truth = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 3 * np.stack([truth, truth**2], axis=1)
    return X, mask_labels(truth, 0.2, 0), truth


@pytest.mark.parametrize(
    ("missing", "n_missing"),
    [
        (lambda y: ["a", np.nan, "b"] * 30, 30),
        (lambda y: ["a", None, "b"] * 30, 30),
        (lambda y: np.where(y == -1, np.nan, y), 69),
        (lambda y: pd.Series(y).astype("Int64").where(pd.Series(y) >= 0), 69),
        (lambda y: np.ma.masked_equal(y, -1), 69),
        pytest.param(
            lambda y: np.ma.masked_equal(y[:, None], -1),
            69,
            marks=pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
        ),
    ],
)
def test_a_missing_label_is_no_class_and_no_mark(few_labels, missing, n_missing):
    X, y, _ = few_labels
    fitted, labels = LabeledSubsetClassifier(LogisticRegression()).fit(X, y), missing(y)
    message = f"NaN or None in {n_missing} of 90 rows.*by unlabeled_label=-1: mark .* by -1"
    with pytest.raises(ValueError, match=message):
        clone(fitted).fit(X, labels)
    with pytest.raises(ValueError, match=message):
        fitted.score(X, labels)
    with pytest.raises(ValueError, match=message):
        list(LabeledTestSplit(KFold(3)).split(X, labels))
    without = "unlabeled_label=None: mark these .* and set unlabeled_l"
    with pytest.raises(ValueError, match=without):
        list(LabelFractionSplit(unlabeled_label=None).split(X, labels))
    with pytest.raises(ValueError, match=without):
        LabeledSubsetClassifier(unlabeled_label=None).fit(X, labels)


def test_fit_is_that_of_the_labelled_rows(few_labels):
    X, y, _ = few_labels
    X_before, y_before = X.copy(), y.copy()
    probe = LabeledSubsetClassifier().fit(X, y)
    rows = [i for i in range(90) if y[i] != -1]
    plain = LogisticRegression(max_iter=1000, class_weight="balanced").fit(X[rows], y[rows])
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(probe, method)(X), getattr(plain, method)(X))
    assert probe.classes_.tolist() == [0, 1, 2]
    assert probe.n_features_in_ == 2
    assert probe.score(X, y) == accuracy_score(y[rows], plain.predict(X[rows]))
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


def test_given_estimator_is_cloned(few_labels):
    X, y, _ = few_labels
    given_estimator = LogisticRegression(C=0.3)
    probe = LabeledSubsetClassifier(given_estimator).fit(X, y)
    assert not hasattr(given_estimator, "coef_")
    assert probe.estimator_.C == 0.3


@given(
    st.lists(st.integers(-1, 2), min_size=3, max_size=25).filter(lambda y: {0, 1} <= set(y)),
    st.integers(0, 5),
)
@settings(max_examples=30, deadline=None)
def test_score_ignores_unlabelled_rows_and_their_weights(y, seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(len(y), 2)), rng.random(len(y)) + 0.1
    probe = LabeledSubsetClassifier(GaussianNB(var_smoothing=0.1)).fit(X, y)
    predicted = probe.predict(X)
    right = total = weighted_right = weighted_total = 0.0
    for i in range(len(y)):
        if y[i] != -1:
            total += 1
            weighted_total += weight[i]
            if predicted[i] == y[i]:
                right += 1
                weighted_right += weight[i]
    assert probe.score(X, y) == pytest.approx(right / total)
    assert probe.score(X, y, weight) == pytest.approx(weighted_right / weighted_total)
    assert probe.score(X, y, sample_weight=weight.tolist()) == probe.score(X, y, weight)


@pytest.mark.parametrize("n_weights", ["labelled", 7])
def test_weights_are_those_of_all_rows(few_labels, n_weights):
    X, y, _ = few_labels
    n = (y != -1).sum() if n_weights == "labelled" else n_weights
    probe = LabeledSubsetClassifier().fit(X, y, sample_weight=np.ones(90))
    message = f"sample_weight has {n} entries, but there are 90 rows: pass a weight for each row"
    for method in (probe.fit, probe.score):
        for weights in (np.ones(n), [1.0] * n, pd.Series(np.ones(n))):
            with pytest.raises(ValueError, match=message):
                method(X, y, sample_weight=weights)


def test_no_labelled_row_is_an_error(few_labels):
    X, y, _ = few_labels
    nothing = np.full(90, -1)
    with pytest.raises(ValueError, match="y holds no labelled row.*unlabeled_label=-1"):
        LabeledSubsetClassifier().fit(X, nothing)
    probe = LabeledSubsetClassifier().fit(X, y)
    with pytest.raises(ValueError, match="All 90 rows of y are unlabelled"):
        probe.score(X, nothing)


def test_marker_is_a_class_when_there_is_none(few_labels):
    X, y, _ = few_labels
    probe = LabeledSubsetClassifier(unlabeled_label=None).fit(X, y)
    assert probe.classes_.tolist() == [-1, 0, 1, 2]
    expected = LogisticRegression(max_iter=1000, class_weight="balanced").fit(X, y)
    assert probe.score(X, y) == expected.score(X, y)


def test_labels_may_be_text(few_labels):
    X, y, truth = few_labels
    text = np.array(["a", "b", "c"])[truth]
    assert LabeledSubsetClassifier().fit(X, text).classes_.tolist() == ["a", "b", "c"]
    some = np.where(y == -1, "?", text)
    probe = LabeledSubsetClassifier(unlabeled_label="?").fit(X, some)
    expected = LabeledSubsetClassifier().fit(X, y)
    assert probe.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(probe.predict_proba(X), expected.predict_proba(X))
    mixed = [-1 if label == "?" else label for label in some.tolist()]
    for column in (mixed, np.array(mixed, dtype=object), pd.Series(mixed)):
        probe = LabeledSubsetClassifier().fit(X, column)
        assert probe.classes_.tolist() == ["a", "b", "c"]
        assert probe.score(X, column) == expected.score(X, y)


def test_another_mark_leaves_minus_one_to_a_class(few_labels):
    X, y, truth = few_labels
    two = np.where(truth > 0, 1, -1)
    marked = np.where(y == -1, 7, two)
    probe = LabeledSubsetClassifier(unlabeled_label=7).fit(X, marked)
    assert probe.classes_.tolist() == [-1, 1]
    named = LabeledSubsetClassifier(unlabeled_label="?")
    expected = named.fit(X, np.where(y == -1, "?", np.where(truth > 0, "b", "a")))
    np.testing.assert_array_equal(probe.predict_proba(X), expected.predict_proba(X))


def test_the_mark_as_text_is_no_class(few_labels):
    """NumPy writes -1 as text where an array holds text too."""
    X, y, truth = few_labels
    text = np.where(y == -1, "-1", np.array(["a", "b", "c"])[truth])
    for column in (text, pd.Series(text).to_numpy(dtype=str)):
        with pytest.raises(ValueError, match="y is text and holds '-1' in"):
            LabeledSubsetClassifier().fit(X, column)
    probe = LabeledSubsetClassifier(unlabeled_label="-1").fit(X, text)
    assert probe.classes_.tolist() == ["a", "b", "c"]
    named = LabeledSubsetClassifier(unlabeled_label=None).fit(X, text)
    assert named.classes_.tolist() == ["-1", "a", "b", "c"]


def test_column_vector_and_list(few_labels):
    X, y, _ = few_labels
    expected = LabeledSubsetClassifier().fit(X, y).predict_proba(X)
    probe = LabeledSubsetClassifier().fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(probe.predict_proba(X), expected)
    with pytest.warns(sklearn.exceptions.DataConversionWarning):
        probe = LabeledSubsetClassifier().fit(X, y[:, None])
    with pytest.warns(sklearn.exceptions.DataConversionWarning):
        assert probe.score(X, y[:, None]) == probe.score(X, y)
    np.testing.assert_array_equal(probe.predict_proba(X), expected)


def test_data_frame_with_another_index(few_labels):
    X, y, _ = few_labels
    frame = pd.DataFrame(X, columns=["u", "v"], index=np.arange(90)[::-1])
    probe = LabeledSubsetClassifier().fit(frame, pd.Series(y, index=frame.index))
    assert probe.feature_names_in_.tolist() == ["u", "v"]
    expected = LabeledSubsetClassifier().fit(X, y)
    assert not hasattr(expected, "feature_names_in_")
    np.testing.assert_array_equal(probe.predict(frame), expected.predict(X))
    probe.fit(X, y)
    assert not hasattr(probe, "feature_names_in_")


def test_sparse_rows_give_the_same_predictions(few_labels):
    X, y, _ = few_labels
    expected = LabeledSubsetClassifier().fit(X, y).predict(X)
    for convert in (sp.csr_array, sp.coo_array):
        probe = LabeledSubsetClassifier().fit(convert(X), y)
        np.testing.assert_array_equal(probe.predict(sp.csr_array(X)), expected)
        assert probe.score(convert(X), y) == accuracy_score(y[y != -1], expected[y != -1])


class LazyWindows:
    """Windows that are read only when they are indexed."""

    def __init__(self, array):
        self._array = array
        self.shape = array.shape
        self.rows_read = 0

    def __len__(self):
        return len(self._array)

    def __getitem__(self, key):
        rows = self._array[key]
        self.rows_read += len(rows)
        return rows


class MeanClassifier(ClassifierMixin, BaseEstimator):
    """Nearest class mean of windows of shape (n, steps, channels); it takes no 2-D input."""

    def fit(self, X, y, offset=0.0):
        assert X.ndim == 3
        self.means_ = {label: X[y == label].mean() + offset for label in np.unique(y)}
        return self

    def predict(self, X):
        labels = np.array(list(self.means_))
        distance = np.abs(X[:].mean(axis=(1, 2))[:, None] - np.array(list(self.means_.values())))
        return labels[distance.argmin(axis=1)]


def test_windows_reach_the_estimator_as_they_are():
    y = np.array([0, 0, 1, 1, -1, -1])
    windows = np.array([0, 0.1, 1, 1.1, 50, 60])[:, None, None] * np.ones((6, 8, 2))
    lazy = LazyWindows(windows)
    probe = LabeledSubsetClassifier(MeanClassifier()).fit(lazy, y)
    assert lazy.rows_read == 4
    assert probe.classes_.tolist() == [0, 1]
    assert not hasattr(probe, "n_features_in_")
    assert probe.score(windows, y) == 1.0
    assert probe.predict(windows).tolist() == [0, 0, 1, 1, 1, 1]


def test_fully_labelled_data_are_not_copied():
    X, seen = np.zeros((4, 8, 2)), []

    class Keeper(MeanClassifier):
        def fit(self, X, y):
            seen.append(X)
            return super().fit(X, y)

    LabeledSubsetClassifier(Keeper()).fit(X, np.array([0, 0, 1, 1]))
    assert seen[0] is X


def test_methods_are_those_of_the_estimator(few_labels):
    X, y, _ = few_labels
    ridge = LabeledSubsetClassifier(RidgeClassifier())
    neighbors = LabeledSubsetClassifier(KNeighborsClassifier())
    for probe in (ridge, ridge.fit(X, y)):
        assert hasattr(probe, "decision_function") and not hasattr(probe, "predict_proba")
    for probe in (neighbors, neighbors.fit(X, y)):
        assert hasattr(probe, "predict_proba") and not hasattr(probe, "decision_function")
    with pytest.raises(AttributeError, match="predict_proba"):
        ridge.predict_proba(X)


def test_tags_are_those_of_the_estimator():
    assert is_classifier(LabeledSubsetClassifier())
    linear = get_tags(LogisticRegression()).input_tags.sparse
    assert get_tags(LabeledSubsetClassifier()).input_tags.sparse == linear
    assert not get_tags(LabeledSubsetClassifier(GaussianNB())).input_tags.sparse


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "score"])
def test_every_method_needs_a_fit(method, few_labels):
    X, y, _ = few_labels
    arguments = (X, y) if method == "score" else (X,)
    with pytest.raises(NotFittedError):
        getattr(LabeledSubsetClassifier(), method)(*arguments)


@pytest.mark.parametrize("estimator", [LogisticRegression, 3, StandardScaler])
def test_estimator_of_another_kind(estimator, few_labels):
    with pytest.raises(TypeError, match="estimator must be a classifier instance"):
        LabeledSubsetClassifier(estimator).fit(*few_labels[:2])


@pytest.mark.parametrize("regressor", [Ridge(), make_pipeline(StandardScaler(), Ridge())])
def test_a_regressor_is_refused_since_it_predicts_no_classes(regressor, few_labels):
    with pytest.raises(TypeError, match="estimator is a regressor.*pass a classifier, or fit"):
        LabeledSubsetClassifier(regressor).fit(*few_labels[:2])


def test_a_clusterer_is_refused_since_it_predicts_no_classes(few_labels):
    with pytest.raises(TypeError, match="estimator is a clusterer, KMeans"):
        LabeledSubsetClassifier(KMeans(2)).fit(*few_labels[:2])


@pytest.mark.parametrize("marker", [True, [1], 1.5])
def test_a_marker_that_is_no_label_marks_no_class(marker, few_labels):
    with pytest.raises(TypeError, match="unlabeled_label must be an integer, text or None, got"):
        LabeledSubsetClassifier(unlabeled_label=marker).fit(*few_labels[:2])


def test_labels_of_another_shape_are_refused(few_labels):
    X, y, _ = few_labels
    with pytest.raises(ValueError, match="requires y"):
        LabeledSubsetClassifier().fit(X, None)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        LabeledSubsetClassifier().fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match=r"one label per row.*\(90, 1, 1\)"):
        LabeledSubsetClassifier().fit(X, y[:, None, None])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LabeledSubsetClassifier().fit(X, y[:-1])
    with pytest.raises(TypeError, match="unlabeled_label must be an integer, text or None"):
        LabeledSubsetClassifier(unlabeled_label=np.nan).fit(X, y)


def test_clone_and_pickle(few_labels):
    X, y, _ = few_labels
    probe = LabeledSubsetClassifier(GaussianNB(), unlabeled_label=-1).fit(X, y)
    again = pickle.loads(pickle.dumps(probe))
    np.testing.assert_array_equal(again.predict(X), probe.predict(X))
    copy = clone(probe)
    assert copy.unlabeled_label == -1 and not hasattr(copy, "classes_")


# LabeledSubsetClassifier: parameters of fit


@pytest.mark.parametrize("convert", [np.asarray, list, pd.Series])
def test_sample_weight_is_cut_to_the_labelled_rows(few_labels, convert):
    X, y, _ = few_labels
    weight = np.random.default_rng(0).random(90)
    probe = LabeledSubsetClassifier().fit(X, y, sample_weight=convert(weight))
    rows = y != -1
    plain = LogisticRegression(max_iter=1000, class_weight="balanced")
    plain.fit(X[rows], y[rows], sample_weight=weight[rows])
    np.testing.assert_array_equal(probe.estimator_.coef_, plain.coef_)
    unweighted = LabeledSubsetClassifier().fit(X, y, sample_weight=None)
    assert np.any(probe.estimator_.coef_ != unweighted.estimator_.coef_)


def test_other_parameters_of_fit_pass_as_they_are():
    windows, y = np.ones((4, 8, 2)), np.array([0, 0, 1, -1])
    probe = LabeledSubsetClassifier(MeanClassifier()).fit(windows, y, offset=2.0)
    assert probe.estimator_.means_ == {0: 3.0, 1: 3.0}
    with pytest.raises(TypeError, match="nonsense"):
        LabeledSubsetClassifier(MeanClassifier()).fit(windows, y, nonsense=1)


class ValidatedClassifier(MeanClassifier):
    """Remembers the rows to validate on, and the weights."""

    def fit(self, X, y, X_val=None, y_val=None, weight=None):
        self.given_ = X_val, y_val, weight
        return super().fit(X, y)


def test_validation_rows_are_not_cut_whatever_their_number():
    windows, y, weight = np.ones((4, 8, 2)), np.array([0, 0, 1, -1]), np.arange(4)
    y_val = np.array([0, 1, 0, 1])
    probe = LabeledSubsetClassifier(ValidatedClassifier())
    probe.fit(windows, y, X_val=windows, y_val=y_val, weight=weight)
    X_given, y_given, weight_given = probe.estimator_.given_
    assert X_given is windows and y_given is y_val
    assert weight_given.tolist() == [0, 1, 2]


def test_sample_weights_are_routed_under_their_alias(few_labels):
    X, y, _ = few_labels
    weight = np.random.default_rng(0).random(90)
    expected = LabeledSubsetClassifier().fit(X, y, sample_weight=weight).predict_proba(X)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LogisticRegression(max_iter=1000, class_weight="balanced")
        estimator.set_fit_request(sample_weight="importance")
        probe = LabeledSubsetClassifier(estimator).set_score_request(sample_weight=True)
        got = probe.fit(X, y, importance=weight).predict_proba(X)
        np.testing.assert_array_equal(got, expected)
        pipeline = Pipeline([("probe", probe)]).fit(X, y, importance=weight)
        np.testing.assert_array_equal(pipeline.predict_proba(X), expected)
        direct = probe.score(X, y, sample_weight=weight)
        assert pipeline.score(X, y, sample_weight=weight) == direct
        with pytest.raises(TypeError, match="unexpected argument"):
            probe.fit(X, y, sample_weight=weight)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            LabeledSubsetClassifier().fit(X, y, sample_weight=weight)


ANSWERS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


class ClassifierOfSignals(LogisticRegression):
    """Classifier of windows of two channels; it takes what its own method is told of them."""

    seen = None

    def told(self, method, X, sampling_rate, channel_names):
        if sampling_rate == 100:
            raise ValueError("100 Hz, but it was fitted on 64 Hz")
        answer = getattr(super(), method)(X)  # which may call another of the methods
        self.seen = (method, len(X), sampling_rate, channel_names)
        return answer

    def predict(self, X, *, sampling_rate=None, channel_names=None):
        return self.told("predict", X, sampling_rate, channel_names)

    def predict_proba(self, X, *, sampling_rate=None, channel_names=None):
        return self.told("predict_proba", X, sampling_rate, channel_names)

    def predict_log_proba(self, X, *, sampling_rate=None, channel_names=None):
        return self.told("predict_log_proba", X, sampling_rate, channel_names)

    def decision_function(self, X, *, sampling_rate=None, channel_names=None):
        return self.told("decision_function", X, sampling_rate, channel_names)


def requesting(classifier):
    """Return a classifier that asks for the signals in each method."""
    known = {"sampling_rate": True, "channel_names": True}
    classifier.set_predict_request(**known).set_predict_proba_request(**known)
    classifier.set_predict_log_proba_request(**known)
    return classifier.set_decision_function_request(**known)


@pytest.mark.parametrize("routed", [False, True])
def test_what_is_said_of_the_signals_reaches_the_estimator(routed):
    X, y = np.random.default_rng(0).normal(size=(6, 2)), [0, 1, 0, 1, -1, 0]
    names = [f"lead {i}" for i in range(6)]  # as many as there are rows
    with sklearn.config_context(enable_metadata_routing=routed):
        inner = requesting(ClassifierOfSignals()) if routed else ClassifierOfSignals()
        probe = LabeledSubsetClassifier(inner).fit(X, y)
        assert probe.score(X, y, sampling_rate=64, channel_names=names) == probe.score(X, y)
        probe.score(X, y, sampling_rate=64, channel_names=names)
        assert probe.estimator_.seen == ("predict", 5, 64, names)
        for method in ANSWERS:
            call = getattr(probe, method)
            np.testing.assert_array_equal(call(X, sampling_rate=64, channel_names=names), call(X))
            if routed or method != "decision_function":  # to which a pipeline passes on nothing
                getattr(make_pipeline(probe), method)(X, sampling_rate=64)
                assert probe.estimator_.seen == (method, 6, 64, None)
            with pytest.raises(ValueError, match="100 Hz"):
                call(X, sampling_rate=100)
        with pytest.raises(ValueError, match="100 Hz"):
            probe.score(X, y, sampling_rate=100)


def test_a_classifier_of_windows_compares_the_signals():
    X, y = make_windows(20)
    inner = small(SupervisedClassifier, sampling_rate=64, channel_names=["ecg", "ppg"])
    probe = LabeledSubsetClassifier(inner).fit(X, np.where(np.arange(20) < 16, y, -1))
    expected = probe.predict(X)
    np.testing.assert_array_equal(probe.predict(X, sampling_rate=64), expected)
    for method in ("predict", "predict_proba"):
        with pytest.raises(ValueError, match="100 Hz, but SupervisedClassifier was fitted on 64"):
            getattr(probe, method)(X, sampling_rate=100)
    with pytest.raises(ValueError, match="take the channels of X in the order"):
        probe.score(X, y, channel_names=["ppg", "ecg"])


# LabeledSubsetClassifier: in pipelines and searches


class CountRows(TransformerMixin, BaseEstimator):
    """Passes the data on and remembers how many rows it was fitted on."""

    def fit(self, X, y=None):
        self.n_rows_ = len(X)
        return self

    def transform(self, X):
        return X


def test_pipeline_pretrains_on_every_row(few_labels):
    X, y, truth = few_labels
    pipeline = make_pipeline(CountRows(), LabeledSubsetClassifier()).fit(X, y)
    assert pipeline[0].n_rows_ == 90
    assert pipeline.score(X, truth) > 0.9
    weight = np.ones(90)
    pipeline.fit(X, y, labeledsubsetclassifier__sample_weight=weight)


def test_cross_validation_equals_a_loop_by_hand(few_labels):
    X, y, _ = few_labels
    pipeline = make_pipeline(StandardScaler(), LabeledSubsetClassifier())
    cv = KFold(3, shuffle=True, random_state=0)
    expected = []
    for train, test in cv.split(X):
        scaler = StandardScaler().fit(X[train])
        labeled = [i for i in train if y[i] != -1]
        probe = LogisticRegression(max_iter=1000, class_weight="balanced")
        probe.fit(scaler.transform(X[labeled]), y[labeled])
        test = [i for i in test if y[i] != -1]
        expected.append(np.mean(probe.predict(scaler.transform(X[test])) == y[test]))
    for scoring in (None, "accuracy"):
        scores = cross_val_score(pipeline, X, y, cv=LabeledTestSplit(cv), scoring=scoring)
        np.testing.assert_allclose(scores, expected)


def test_search_over_the_estimator(few_labels):
    X, y, _ = few_labels
    probe = LabeledSubsetClassifier(LogisticRegression())
    search = GridSearchCV(probe, {"estimator__C": [1e-6, 1.0]}, cv=LabeledTestSplit(3))
    search.fit(X, y)
    assert search.best_params_ == {"estimator__C": 1.0}
    assert search.classes_.tolist() == [0, 1, 2]


def test_names_of_channels_under_an_alias_are_not_rows():
    X = np.random.default_rng(0).normal(size=(6, 32, 6))
    y, names = np.array([0, 1, 0, 1, -1, -1]), list("abcdef")
    with sklearn.config_context(enable_metadata_routing=True):
        network = FineTuneClassifier(**SMALL_ENCODER, max_epochs=1, random_state=0)
        network.set_predict_request(channel_names="names")
        model = LabeledSubsetClassifier(network).fit(X, y)
        weight = np.arange(1.0, 7.0)
        expected = np.average(model.predict(X, names=names)[:4] == y[:4], weights=weight[:4])
        assert model.score(X, y, weight, names=names) == pytest.approx(expected)
