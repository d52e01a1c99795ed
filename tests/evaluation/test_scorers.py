"""Accuracy and the areas under both curves, against the published definition."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import average_precision_score, get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import label_binarize
from sklearn.svm import SVC

from sklearn_pulse.evaluation import (
    PROBE_SCORERS,
    LabeledSubsetClassifier,
    macro_auprc,
    macro_auroc,
    make_linear_probe,
    probe_scores,
)


def blobs(n_classes, n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 3)) + y[:, None] * [1.0, -0.5, 0.2], y


def literal_auroc(positive, score):
    """Share of the pairs of a positive and a negative that are in order; ties count half."""
    right = total = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            total += 1
            right += 1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0
    return right / total


def literal_auprc(positive, score):
    """Sum over thresholds of the gain in recall times the precision."""
    area, recall_before = 0.0, 0.0
    for threshold in sorted(set(score.tolist()), reverse=True):
        found = score >= threshold
        precision = (positive & found).sum() / found.sum()
        recall = (positive & found).sum() / positive.sum()
        area += (recall - recall_before) * precision
        recall_before = recall
    return area


@given(
    st.lists(st.integers(0, 4), min_size=4, max_size=25).filter(lambda y: len(set(y)) > 1),
    st.integers(1, 5),
    st.integers(0, 9),
)
@settings(max_examples=30, deadline=None)
def test_literally(y, n_trained, seed):
    """Whatever classes were trained and occur; scores on a coarse grid have ties."""
    y = np.array(y)
    score = np.random.default_rng(seed).integers(0, 4, (len(y), n_trained)) / 4
    present = sorted(set(y.tolist()))
    column = [score[:, label] if label < n_trained else np.zeros(len(y)) for label in present]
    pairs = list(zip(present, column, strict=True))
    auroc = np.mean([literal_auroc(y == label, s) for label, s in pairs])
    auprc = np.mean([literal_auprc(y == label, s) for label, s in pairs])
    assert macro_auroc(y, score, classes=np.arange(n_trained)) == pytest.approx(auroc)
    assert macro_auprc(y, score, classes=np.arange(n_trained)) == pytest.approx(auprc)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_published_definition(n_classes):
    """Labels binarised over 0..max, for two classes with a third that is cut off again."""
    X, y = blobs(n_classes)
    probe = make_linear_probe().fit(X[:45], y[:45])
    X, y = X[45:], y[45:]
    assert set(y) == set(range(n_classes))
    n_columns = 3 if n_classes == 2 else n_classes
    one_hot = label_binarize(y, classes=np.arange(n_columns))[:, :n_classes]
    proba = probe.predict_proba(X)
    scores = probe_scores(probe, X, y)
    assert list(scores) == ["accuracy", "auroc", "auprc"]
    assert scores["accuracy"] == probe.score(X, y)
    assert scores["auroc"] == pytest.approx(roc_auc_score(one_hot, proba, average="macro"))
    assert scores["auprc"] == pytest.approx(
        average_precision_score(one_hot, proba, average="macro")
    )
    if n_classes == 2:
        assert scores["auroc"] == pytest.approx(roc_auc_score(y, proba[:, 1]))
        assert scores["auprc"] != pytest.approx(average_precision_score(y, proba[:, 1]))
    for name, scorer in PROBE_SCORERS.items():
        assert scorer(probe, X, y) == scores[name]


def test_columns_follow_the_classes():
    X, y = blobs(3)
    names = np.array(["walking", "laying", "sitting"])
    expected = probe_scores(make_linear_probe().fit(X, y), X, y)
    text = names[y]
    for labels in (text, text.astype(object), pd.Series(text), text.tolist()):
        got = probe_scores(make_linear_probe().fit(X, labels), X, labels)
        assert got == pytest.approx(expected)
    classes = ["b", "a", "c"]  # unsorted
    score = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert macro_auroc(classes, score, classes=classes) == 1.0
    assert macro_auroc(classes, score, classes=sorted(classes)) < 1.0


def test_classes_missing_in_the_test_part_are_left_out():
    X, y = blobs(4)
    probe = make_linear_probe().fit(X, y)
    some = np.isin(y, [1, 3])
    scores, proba = probe_scores(probe, X[some], y[some]), probe.predict_proba(X[some])
    expected = np.mean([roc_auc_score(y[some] == k, proba[:, k]) for k in (1, 3)])
    assert scores["auroc"] == pytest.approx(expected)
    expected = np.mean([average_precision_score(y[some] == k, proba[:, k]) for k in (1, 3)])
    assert scores["auprc"] == pytest.approx(expected)


def test_classes_that_were_never_trained_count():
    X, y = blobs(3)
    probe = make_linear_probe().fit(X[y < 2], y[y < 2])
    scores, proba = probe_scores(probe, X, y), probe.predict_proba(X)
    known = [roc_auc_score(y == k, proba[:, k]) for k in (0, 1)]
    assert scores["auroc"] == pytest.approx((sum(known) + 0.5) / 3)
    known = [average_precision_score(y == k, proba[:, k]) for k in (0, 1)]
    assert scores["auprc"] == pytest.approx((sum(known) + 1 / 3) / 3)


def test_one_class_in_the_test_part_is_as_in_scikit_learn():
    X, y = blobs(3)
    probe = make_linear_probe().fit(X, y)
    with pytest.warns(UndefinedMetricWarning, match="Only one class"):
        scores = probe_scores(probe, X[y == 1], y[y == 1])
    assert np.isnan(scores["auroc"])
    assert scores["auprc"] == 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_with_a_decision_function_only(n_classes):
    X, y = blobs(n_classes)
    for classifier in (RidgeClassifier(), SVC()):
        classifier.fit(X, y)
        assert not hasattr(classifier, "predict_proba")
        decision = classifier.decision_function(X)
        columns = np.stack([-decision, decision], 1) if n_classes == 2 else decision
        expected = np.mean([roc_auc_score(y == k, columns[:, k]) for k in range(n_classes)])
        assert probe_scores(classifier, X, y)["auroc"] == pytest.approx(expected)


def test_majority_class_scores_as_chance():
    X, y = blobs(4, n=80)
    scores = probe_scores(DummyClassifier().fit(X, y), X, y)
    assert scores == pytest.approx({"accuracy": 0.25, "auroc": 0.5, "auprc": 0.25})
    one = DummyClassifier().fit(X[y == 2], y[y == 2])
    assert probe_scores(one, X, y)["auroc"] == pytest.approx(0.5)


class Counter(TransformerMixin, BaseEstimator):
    """Stands for an encoder; counts its passes."""

    n_passes = 0

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        Counter.n_passes += 1
        return X


def test_one_pass_through_the_encoder():
    X, y = blobs(3)
    pipeline = make_pipeline(Counter(), make_linear_probe()).fit(X, y)
    Counter.n_passes = 0
    scores = probe_scores(pipeline, X, y)
    assert Counter.n_passes == 1
    assert scores == probe_scores(make_linear_probe().fit(X, y), X, y)


@pytest.mark.parametrize("routing", [False, True])
def test_scoring_of_cross_validation_and_search(routing):
    X, y = blobs(3)
    cv = KFold(3, shuffle=True, random_state=0)
    with sklearn.config_context(enable_metadata_routing=routing):
        # With routing scikit-learn 1.6 takes no None for params.
        one = cross_validate(make_linear_probe(), X, y, cv=cv, scoring=probe_scores, params={})
        each = cross_validate(make_linear_probe(), X, y, cv=cv, scoring=PROBE_SCORERS, params={})
        for k, (train, test) in enumerate(cv.split(X)):
            probe = make_linear_probe().fit(X[train], y[train])
            expected = probe_scores(probe, X[test], y[test])
            for name, value in expected.items():
                assert one[f"test_{name}"][k] == each[f"test_{name}"][k] == value
        search = GridSearchCV(
            make_linear_probe(), {"probe__C": [1e-9, 1.0]}, scoring=PROBE_SCORERS, refit="auroc"
        )
        assert search.fit(X, y).best_params_ == {"probe__C": 1.0}
        search.set_params(scoring=PROBE_SCORERS["auprc"], refit=True)
        assert search.fit(X, y).best_score_ > 0.5
    assert probe_scores(search, X, y) == probe_scores(search.best_estimator_, X, y)


@pytest.mark.parametrize("mark", [-1, "?"])
@pytest.mark.parametrize("convert", [np.asarray, pd.Series, list])
def test_unlabelled_rows_are_not_scored(mark, convert):
    X, truth = blobs(3)
    truth = truth if mark == -1 else np.array(["a", "b", "c"])[truth]
    labeled = np.random.default_rng(0).random(90) < 0.5
    y = np.where(labeled, truth, mark)
    probe = LabeledSubsetClassifier(make_linear_probe(), unlabeled_label=mark)
    fitted = make_pipeline(Counter(), probe).fit(X, y)
    expected = probe_scores(fitted, X[labeled], truth[labeled])
    assert expected["accuracy"] == fitted.score(X, y)
    assert probe_scores(FrozenEstimator(fitted), X, y) == expected
    assert probe_scores(fitted, X, convert(y)) == expected
    for name, scorer in PROBE_SCORERS.items():
        assert scorer(fitted, X, convert(y)) == expected[name]
    cv = KFold(3, shuffle=True, random_state=0)
    found = cross_validate(fitted, X, y, cv=cv, scoring=probe_scores)
    default = cross_validate(fitted, X, y, cv=cv)  # scored by LabeledSubsetClassifier
    np.testing.assert_array_equal(found["test_accuracy"], default["test_score"])
    search = GridSearchCV(fitted, {"labeledsubsetclassifier__estimator__probe__C": [1.0]}, cv=cv)
    assert probe_scores(search.fit(X, y), X, y) == expected
    with pytest.raises(ValueError, match="All 90 rows of y are unlabelled.*LabeledTestSplit"):
        probe_scores(fitted, X, np.full(90, mark))


@pytest.mark.filterwarnings("ignore:Only one class:sklearn.exceptions.UndefinedMetricWarning")
def test_a_test_part_of_one_class_and_of_unlabelled_rows():
    """In such a part the marks look like the name of a class, beside 1."""
    X, truth = blobs(2)
    y = np.where(np.arange(90) % 3, truth, -1)
    fitted = make_pipeline(Counter(), LabeledSubsetClassifier(make_linear_probe())).fit(X, y)
    part, labeled = np.flatnonzero(y != 0), np.flatnonzero(y == 1)
    expected = fitted.score(X[labeled], y[labeled])
    assert fitted.score(X[part], y[part]) == expected
    assert cross_validate(fitted, X, y, cv=[(np.arange(90), part)])["test_score"] == [expected]
    for name in ("accuracy", "auprc"):
        scorer = PROBE_SCORERS[name]
        assert scorer(fitted, X[part], y[part]) == scorer(fitted, X[labeled], y[labeled])


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy before 2.0")
def test_labels_of_string_dtype_are_text():
    X, y = blobs(3)
    y = y.astype(str)
    for probe in (make_linear_probe(), LabeledSubsetClassifier(make_linear_probe())):
        expected = probe_scores(probe.fit(X, y), X, y)
        of_string_dtype = y.astype(np.dtypes.StringDType())
        assert probe_scores(probe, X, of_string_dtype) == expected
        for name, scorer in PROBE_SCORERS.items():
            assert scorer(probe, X, of_string_dtype) == expected[name]


def test_a_mark_that_is_a_class_is_scored():
    X, y = blobs(3)
    expected = probe_scores(make_linear_probe().fit(X, y), X, y)
    named = LabeledSubsetClassifier(make_linear_probe(), unlabeled_label=None)
    for probe in (make_linear_probe(), named):  # a classifier of scikit-learn takes -1 for a class
        assert probe_scores(probe.fit(X, y - 1), X, y - 1) == pytest.approx(expected)
    words = np.array(["-1", "a", "b"])[y]
    assert probe_scores(make_linear_probe().fit(X, words), X, words) == expected
    X, y = blobs(2)
    signs = 2 * y - 1
    ones = DummyClassifier().fit(X[y == 1], signs[y == 1])
    assert probe_scores(ones, X, signs)["accuracy"] == 0.5  # -1 and 1 are usual names


def test_unlabelled_rows_that_the_probe_does_not_know_are_an_error():
    X, y = blobs(3)
    probe = make_linear_probe().fit(X, y)
    for few in (np.where(y == 2, -1, y), [-1 if label == 2 else str(label) for label in y]):
        for score in (probe_scores, *PROBE_SCORERS.values()):
            with pytest.raises(ValueError, match="-1 in 30 of 90 rows.*LabeledSubsetClassifier"):
                score(probe, X, few)


def test_scorers_print_and_pickle():
    X, y = blobs(3)
    probe = make_linear_probe().fit(X, y)
    for name, scorer in PROBE_SCORERS.items():
        assert name in repr(scorer)
        assert pickle.loads(pickle.dumps(scorer))(probe, X, y) == scorer(probe, X, y)
    assert get_scorer(PROBE_SCORERS["auroc"]) is PROBE_SCORERS["auroc"]


def test_bad_input():
    X, y = blobs(3)
    for score in (PROBE_SCORERS["auroc"], probe_scores):
        with pytest.raises(TypeError, match="LinearRegression has no classes_"):
            score(LinearRegression().fit(X, y), X, y)
        with pytest.raises(NotFittedError, match="LogisticRegression instance is not fitted"):
            score(LogisticRegression(), X, y)
    with pytest.raises(TypeError, match="str has no classes_"):
        probe_scores("probe", X, y)
    for score in (probe_scores, *PROBE_SCORERS.values()):
        with pytest.raises(ValueError, match="Input y contains NaN or None in 30 of 90 rows"):
            score(LogisticRegression().fit(X, y), X, np.where(y == 1, np.nan, y))
    for n_classes in (3, 4):  # three classes have three pairs
        pairs = SVC(decision_function_shape="ovo").fit(*blobs(n_classes))
        with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
            probe_scores(pairs, *blobs(n_classes))
        for wrapped in (
            LabeledSubsetClassifier(clone(pairs)),
            GridSearchCV(make_pipeline("passthrough", clone(pairs)), {}, cv=2),
            LabeledSubsetClassifier(make_pipeline(FrozenEstimator(pairs))),
        ):
            wrapped.fit(*blobs(n_classes))
            with pytest.raises(ValueError, match="scores pairs of classes"):
                probe_scores(wrapped, *blobs(n_classes))
    with pytest.raises(ValueError, match=r"y_score has shape \(3,\)"):
        macro_auroc([0, 1, 1], [0.1, 0.2, 0.3], classes=[0, 1])
    with pytest.raises(ValueError, match="one row for each of 2 labels"):
        macro_auprc([0, 1], np.zeros((3, 2)), classes=[0, 1])
    with pytest.raises(ValueError, match="1d array"):
        macro_auroc(np.zeros((3, 2)), np.zeros((3, 2)), classes=[0, 1])
    with pytest.raises(ValueError, match="Input y_score contains NaN"):
        macro_auroc([0, 1, 1], np.full((3, 2), np.nan), classes=[0, 1])
    accuracy = PROBE_SCORERS["accuracy"]
    assert accuracy(LogisticRegression().fit(X, y), X, y) > 0.5


@pytest.mark.parametrize("metric", [macro_auroc, macro_auprc])
@pytest.mark.parametrize(
    ("labels", "y_score", "classes", "error", "message"),
    [
        ([0, 1, 1], [[0.9, 0.1], [np.nan, 0.6], [0.8, 0.2]], [0, 1], ValueError, "NaN"),
        ([0, 1, 1], [[0.9, 0.1], [np.inf, 0.6], [0.8, 0.2]], [0, 1], ValueError, "infinity"),
        ([0, 1, 1], [["0.9", "0.1"]] * 3, [0, 1], TypeError, "y_score has dtype <U3"),
        (["0", "1", "1"], np.eye(3)[:, :2], [0, 1], TypeError, "text is mixed with numbers"),
        ([0, 1, 1], np.eye(3)[:, :2], ["0", "1"], TypeError, "text is mixed with numbers"),
        ([0, 1, 1], np.eye(3), [0, 0, 1], ValueError, "names a class twice"),
        ([0, 1, 1], np.eye(3)[:, :2], None, ValueError, r"classes has shape \(\)"),
        ([0, 1, 1], np.eye(3)[:, :2], [[0], [1]], ValueError, r"classes has shape \(2, 1\)"),
    ],
)
def test_scores_and_classes_that_rank_nothing_are_refused(
    metric, labels, y_score, classes, error, message
):
    with pytest.raises(error, match=message):
        metric(labels, y_score, classes=classes)


def test_no_score_passes_one():
    rng = np.random.default_rng(6)  # whose steps of precision sum to 1.0000000000000002
    y = rng.integers(0, 3, 12)
    scores = 2 * np.eye(3)[y] + rng.random((12, 3))
    assert max(average_precision_score(y == label, scores[:, label]) for label in range(3)) > 1
    assert macro_auprc(y, scores, classes=[0, 1, 2]) <= 1.0


@pytest.mark.parametrize("metric", [macro_auroc, macro_auprc])
@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, np.nan, 1, 1]),
        ["a", None, "b", "b"],
        ["a", float("nan"), "b", "b"],
        np.ma.masked_array([0, 1, 1, 1], [0, 1, 0, 0]),
    ],
)
def test_a_missing_label_is_not_scored(metric, labels):
    y_score = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.4, 0.6]]
    with pytest.raises(ValueError, match="Input y_true contains NaN or None in 1 of 4 rows"):
        metric(labels, y_score, classes=[0, 1])
    with pytest.raises(ValueError, match="y_true holds no label"):
        metric([], np.empty((0, 2)), classes=[0, 1])


@pytest.mark.parametrize("metric", [macro_auroc, macro_auprc])
def test_a_masked_score_ranks_no_row(metric):
    y_score = np.ma.masked_array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], mask=False)
    assert metric([0, 1, 1], y_score, classes=[0, 1]) == 1.0
    y_score[1, 1] = np.ma.masked
    with pytest.raises(ValueError, match="Input y_score contains NaN"):
        metric([0, 1, 1], y_score, classes=[0, 1])
