"""The splitter that keeps unlabelled rows out of test folds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)

from sklearn_pulse.evaluation import LabeledSubsetClassifier
from sklearn_pulse.model_selection import LabeledTestSplit, LabelFractionSplit, mask_labels


@given(
    hnp.arrays(np.int64, st.integers(8, 40), elements=st.integers(-1, 2)),
    st.integers(2, 4),
    st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_split_is_the_wrapped_one_without_unlabelled_test_rows(y, n_splits, seed):
    assume(not {-1, 1} == {*y.tolist()})  # where -1 is a class
    X = np.zeros((len(y), 2, 3))
    cv = KFold(n_splits, shuffle=True, random_state=seed)
    wrapped = list(cv.split(X))
    splits = LabeledTestSplit(cv).split(X, y)
    for fold, (train, test) in enumerate(wrapped):
        expected = [i for i in test if y[i] != -1]
        if not expected:
            with pytest.raises(ValueError, match=f"Fold {fold} of cv=KFold"):
                next(splits)
            return
        got_train, got_test = next(splits)
        np.testing.assert_array_equal(got_train, train)
        assert got_test.tolist() == expected


def test_a_list_of_folds_may_hold_masks():
    y = np.array([0, -1, 1, 0, -1, 1])
    first = np.arange(6) < 3
    ((train, test),) = LabeledTestSplit([(first, ~first)]).split(np.zeros((6, 1)), y)
    assert (train.tolist(), test.tolist()) == ([0, 1, 2], [3, 5])


@pytest.mark.parametrize(
    "part", [np.arange(7), np.arange(3.0), np.array([True, False]), np.zeros((2, 1), int), [-7]]
)
def test_parts_that_name_no_rows_are_refused(part):
    y, rest = np.array([0, -1, 1, 0, -1, 1]), np.arange(3)
    for cv in ([(part, rest)], [(rest, part)]):
        for splitter in (LabeledTestSplit(cv), LabelFractionSplit(0.5, cv=cv)):
            with pytest.raises(ValueError, match="cv has a part that does not name .* 6 rows: pa"):
                next(splitter.split(np.zeros((6, 1)), y))


def test_an_empty_part_may_be_a_list():
    with pytest.raises(ValueError, match="holds no labelled row in its test part"):
        next(LabeledTestSplit([([0, 1], [])]).split(np.zeros(4), np.zeros(4)))
    with pytest.raises(ValueError, match="The training part of split 0 holds no labelled row"):
        next(LabelFractionSplit(0.5, cv=[([], [0, 1])]).split(np.zeros(4), np.zeros(4)))


def test_split_keeps_groups_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(-1, 3, 90)
    groups = rng.integers(0, 9, 90)
    for train, test in LabeledTestSplit(GroupKFold(3)).split(np.zeros((90, 1)), y, groups):
        assert not set(groups[train]) & set(groups[test])
        assert np.all(y[test] != -1)
        assert np.any(y[train] == -1)


def test_int_cv_is_stratified_over_labelled_rows():
    y = np.array([0] * 10 + [1] * 10 + [-1] * 80)
    X = np.zeros((100, 1))
    splits = list(LabeledTestSplit(5).split(X, y))
    expected = list(StratifiedKFold(5).split(X, y))
    assert len(splits) == 5
    for (train, test), (wrapped_train, _) in zip(splits, expected, strict=True):
        assert np.bincount(y[test]).tolist() == [2, 2]
        np.testing.assert_array_equal(train, wrapped_train)


@pytest.mark.parametrize("cv", [None, 3, KFold(4), ShuffleSplit(7), LeaveOneGroupOut()])
def test_number_of_splits(cv):
    y = np.array([0, 1] * 15)
    groups = np.repeat(np.arange(6), 5)
    X = np.zeros((30, 1))
    splitter = LabeledTestSplit(cv)
    given_groups = groups if isinstance(cv, LeaveOneGroupOut) else None
    n_splits = splitter.get_n_splits(X, y, given_groups)
    assert n_splits == len(list(splitter.split(X, y, given_groups)))


def test_generator_of_folds_can_be_split_again():
    folds = [(np.array([0, 1]), np.array([2, 3])), (np.array([2, 3]), np.array([0, 1]))]
    splitter = LabeledTestSplit(fold for fold in folds)
    y = np.array([0, -1, 1, 0])
    assert splitter.get_n_splits() == 2
    for _ in range(2):
        assert [test.tolist() for _, test in splitter.split(np.zeros(4), y)] == [[2, 3], [0]]


def test_marker_of_another_value():
    X = np.zeros((6, 1))
    y = np.array(["a", "?", "b", "a", "b", "?"], dtype=object)
    tests = [test.tolist() for _, test in LabeledTestSplit(KFold(2), "?").split(X, y)]
    assert tests == [[0, 2], [3, 4]]
    kept = [test.tolist() for _, test in LabeledTestSplit(KFold(2)).split(X, y)]
    assert kept == [[0, 1, 2], [3, 4, 5]]
    y = np.array([-1, 0, -1, 0])
    none = [test.tolist() for _, test in LabeledTestSplit(KFold(2), None).split(X[:4], y)]
    assert none == [[0, 1], [2, 3]]


def test_list_that_mixes_text_and_the_marker():
    y = ["a", -1, "b", "a", "b", -1]
    tests = [test.tolist() for _, test in LabeledTestSplit(KFold(2)).split(np.zeros(6), y)]
    assert tests == [[0, 2], [3, 4]]


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
@pytest.mark.parametrize("cv", [3, StratifiedKFold(3), LabelFractionSplit(1.0, n_draws=1, cv=3)])
@pytest.mark.parametrize("first", [0, 1], ids=["unlabelled first", "labelled first"])
def test_text_beside_the_marker_is_stratified(kind, cv, first):
    y = np.repeat(np.array(["rest", "run", "walk"], dtype=object), 12)
    y[first::4] = -1
    splitter = LabeledTestSplit(cv)
    splits = list(splitter.split(np.zeros(36), kind(y.tolist() if kind is list else y)))
    assert len(splits) == splitter.get_n_splits(np.zeros(36), y) == 3
    for _, test in splits:
        assert [(y[test] == name).sum() for name in ("rest", "run", "walk")] == [3, 3, 3]


def test_series_with_another_index():
    y = pd.Series([0, -1, 1, 0, -1, 1], index=[5, 4, 3, 2, 1, 0])
    tests = [test.tolist() for _, test in LabeledTestSplit(KFold(2)).split(np.zeros(6), y)]
    assert tests == [[0, 2], [3, 5]]


def test_split_refuses_bad_y():
    with pytest.raises(ValueError, match="needs y"):
        next(LabeledTestSplit().split(np.zeros(4)))
    with pytest.raises(ValueError, match="one label per row"):
        next(LabeledTestSplit().split(np.zeros(4), np.zeros((4, 2))))
    with pytest.raises(TypeError, match="unlabeled_label must be an integer, text or None"):
        next(LabeledTestSplit(KFold(2), np.nan).split(np.zeros(4), np.zeros(4)))
    for mark in (True, [1], 1.5):
        for splitter in (LabeledTestSplit(2, mark), LabelFractionSplit(unlabeled_label=mark)):
            with pytest.raises(TypeError, match="unlabeled_label must be an integer, text or None"):
                next(splitter.split(np.zeros(4), np.arange(4) % 2))


def test_splitter_prints_and_copies():
    splitter = LabeledTestSplit(GroupKFold(3), unlabeled_label=9)
    text = repr(splitter)
    assert text.startswith("LabeledTestSplit(cv=GroupKFold(") and "unlabeled_label=9" in text
    assert repr(clone(splitter, safe=False)) == text


@pytest.fixture
def few_labels():
    """Two blobs of 80 rows in 8 groups, a third of them labelled."""
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 2
    X = rng.normal(size=(80, 2)) + 4 * truth[:, None]
    return X, mask_labels(truth, 0.3, 0), np.repeat(np.arange(8), 10)


def test_every_scorer_sees_the_labelled_rows_alone(few_labels):
    X, y, groups = few_labels
    known = np.flatnonzero(y != -1)
    parts = [
        [np.intersect1d(part, known) for part in parts]
        for parts in GroupKFold(4).split(X, y, groups)
    ]
    probe = LabeledSubsetClassifier(LogisticRegression())
    cv = LabeledTestSplit(GroupKFold(4))
    for scoring in ("accuracy", "roc_auc", "neg_log_loss", None):
        scores = cross_val_score(probe, X, y, groups=groups, cv=cv, scoring=scoring)
        score = get_scorer(scoring or "accuracy")
        expected = [
            score(LogisticRegression().fit(X[train], y[train]), X[test], y[test])
            for train, test in parts
        ]
        np.testing.assert_allclose(scores, expected)


def test_search_routes_groups_to_the_wrapped_splitter(few_labels):
    X, y, groups = few_labels
    probe = LabeledSubsetClassifier(LogisticRegression())
    grid = {"estimator__C": [0.1, 1.0]}
    plain = GridSearchCV(probe, grid, cv=LabeledTestSplit(GroupKFold(4))).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = GridSearchCV(probe, grid, cv=LabeledTestSplit(GroupKFold(4)))
        routed.fit(X, y, groups=groups)
        renamed = GroupKFold(4).set_split_request(groups="subject")
        aliased = GridSearchCV(probe, grid, cv=LabeledTestSplit(renamed))
        aliased.fit(X, y, subject=groups)
        with pytest.raises(TypeError, match="groups"):
            GridSearchCV(probe, grid, cv=LabeledTestSplit(4)).fit(X, y, groups=groups)
    for search in (routed, aliased):
        np.testing.assert_array_equal(
            search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
        )


def test_a_splitter_inside_another_knows_unlabelled_text():
    y = np.array([-1, "a", -1, "b"] * 6, dtype=object)
    for _, test in LabelFractionSplit(1.0, cv=LabeledTestSplit(3)).split(y, y):
        assert set(y[test]) == {"a", "b"}


@pytest.mark.parametrize("y", [[-1] * 6 + [1] * 6, np.repeat([-1, 1], 6), np.repeat([-2, -1], 6)])
def test_minus_one_beside_one_is_a_class(y):
    """The usual names of two classes: a splitter would test on one of them alone."""
    readers = [
        lambda: next(LabeledTestSplit(3).split(y, y)),
        lambda: next(LabelFractionSplit(0.5).split(y, y)),
        lambda: mask_labels(y, 0.5),
        lambda: LabeledSubsetClassifier().fit(np.ones((12, 2)), y),
    ]
    for read in readers:
        with pytest.raises(ValueError, match="y holds -1 beside .* mostly the name of a class"):
            read()
    masked = mask_labels(np.repeat([-1, 1], 6), 0.5, 0, unlabeled_label=-2)
    assert {*masked.tolist()} == {-2, -1, 1}
    for train, test in LabeledTestSplit(3, unlabeled_label=None).split(y, y):
        assert len(set(np.asarray(y)[test].tolist())) == 2 and len(train) == 8


@pytest.mark.parametrize("seed", [None, 0])
def test_successive_halving_knows_whether_folds_repeat(seed):
    X, y = np.random.default_rng(0).normal(size=(120, 2)), np.arange(120) % 2
    cv = LabeledTestSplit(LabeledTestSplit(KFold(3, shuffle=True, random_state=seed)))
    search = HalvingGridSearchCV(
        LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, cv=cv, min_resources=40
    )
    if seed is None:
        with pytest.raises(ValueError, match="consistent folds"):
            search.fit(X, y)
    else:
        assert search.fit(X, y).n_splits_ == 3
    assert repr(LabeledTestSplit(3)) == "LabeledTestSplit(cv=3, unlabeled_label=-1)"


def test_messages_do_not_list_all_rows():
    cv = [(list(range(5000)), list(range(5000, 10_000)))]
    y = np.repeat([0, -1], 5000)
    with pytest.raises(ValueError, match="holds no labelled row") as error:
        list(LabeledTestSplit(cv).split(y, y))
    assert len(str(error.value)) < 600
    with pytest.raises(ValueError, match="does not name some of") as error:
        list(LabeledTestSplit([([0.5] * 5000, [1])]).split(y, y))
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("folds", [[0, 1, 0, 1], np.array([[0], [1]]), [None], pd.Series([2, 2])])
@pytest.mark.parametrize("split", [LabeledTestSplit, partial(LabelFractionSplit, 1.0)])
def test_folds_that_are_no_pairs_are_refused(split, folds):
    y = np.array([0, 1, 0, 1])
    cv = split(cv=folds)
    with pytest.raises(ValueError, match=r"cv must .* hold pairs .train, test.*PredefinedSplit"):
        list(cv.split(y, y))
