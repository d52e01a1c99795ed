"""Label masking and the splitter that keeps unlabelled rows out of test folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)

from sklearn_pulse.evaluation import LabeledSubsetClassifier
from sklearn_pulse.model_selection import GroupHoldout, LabeledTestSplit, mask_labels

labels_arrays = hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(-1, 4)).filter(
    lambda y: (y != -1).any()
)
fractions = st.floats(0, 1)


# mask_labels


def literal_mask(y, fraction, seed):
    """Apply the rule of the docstring, one row at a time."""
    labeled = [i for i in range(len(y)) if y[i] != -1]
    own_seed = np.random.RandomState(seed).randint(2**31 - 1)
    permutation = [labeled[p] for p in np.random.RandomState(own_seed).permutation(len(labeled))]
    kept = permutation[: int(fraction * len(labeled))]
    rest = permutation[len(kept) :]
    for label in set(y[labeled]):
        for i in rest:
            if y[i] == label:
                kept = [*kept, i]
                break
    masked = [-1] * len(y)
    for i in kept:
        masked[i] = y[i]
    return masked


@given(labels_arrays, fractions, st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_mask_labels_follows_the_literal_rule(y, fraction, seed):
    before = y.copy()
    masked = mask_labels(y, fraction, seed)
    assert masked.tolist() == literal_mask(y, fraction, seed)
    np.testing.assert_array_equal(y, before)
    assert not np.shares_memory(masked, y)


@given(labels_arrays, fractions, fractions, st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_mask_labels_keeps_every_class_and_is_nested(y, fraction, other, seed):
    small, large = sorted([fraction, other])
    few, many = mask_labels(y, small, seed), mask_labels(y, large, seed)
    assert set(few) - {-1} == set(y) - {-1}
    assert np.all(many[few != -1] == few[few != -1])
    assert np.all((few == -1) | (few == y))


def test_mask_labels_counts():
    y = np.repeat([0, 1, 2], [600, 300, 100])
    masked = mask_labels(y, 0.05, 0)
    assert (masked != -1).sum() == 50 + 3
    assert (mask_labels(y, 0.0, 0) != -1).sum() == 3
    np.testing.assert_array_equal(mask_labels(y, 1, 0), y)


def test_mask_labels_seeds():
    y = np.arange(200) % 3
    np.testing.assert_array_equal(mask_labels(y, 0.1, 3), mask_labels(y, 0.1, 3))
    assert np.any(mask_labels(y, 0.1, 3) != mask_labels(y, 0.1, 4))
    state = np.random.RandomState(3)
    np.testing.assert_array_equal(mask_labels(y, 0.1, state), mask_labels(y, 0.1, 3))
    assert np.any(mask_labels(y, 0.1, state) != mask_labels(y, 0.1, 3))


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_mask_labels_goes_with_a_shuffled_split_of_the_same_seed(seed):
    y = mask_labels(np.arange(200) % 2, 0.2, random_state=seed)
    X = np.zeros((200, 1))
    for cv in (KFold(4, shuffle=True, random_state=seed), ShuffleSplit(3, random_state=seed)):
        for train, test in LabeledTestSplit(cv).split(X, y):
            assert (y[train] != -1).sum() > 20 and len(test) > 0


def test_mask_labels_takes_series_and_lists():
    y = np.array([0, 1] * 10)
    expected = mask_labels(y, 0.2, 0)
    np.testing.assert_array_equal(
        mask_labels(pd.Series(y, index=np.arange(20) + 5), 0.2, 0), expected
    )
    np.testing.assert_array_equal(mask_labels(y.tolist(), 0.2, 0), expected)


@pytest.mark.parametrize(
    ("dtype", "marker", "expected"),
    [
        (np.int8, -1, np.int8),
        (np.int8, -1000, np.int64),
        (np.int8, 100, np.int8),
        (np.uint8, -1, np.int64),
        (np.uint64, -1, np.int64),
        (np.uint8, 255, np.uint8),
    ],
)
def test_mask_labels_type_holds_the_marker(dtype, marker, expected):
    masked = mask_labels(np.array([0, 0, 0, 1], dtype=dtype), 0.0, 0, unlabeled_label=marker)
    assert masked.dtype == expected
    assert sorted(masked.tolist()) == sorted([0, 1, marker, marker])


@pytest.mark.parametrize("dtype", [str, object])
def test_mask_labels_with_text_marker(dtype):
    y = np.array(["a", "a", "a", "b"], dtype=dtype)
    masked = mask_labels(y, 0.0, 0, unlabeled_label="unknown")
    assert sorted(masked) == ["a", "b", "unknown", "unknown"]


@pytest.mark.parametrize(
    ("y", "marker"),
    [
        (["a", "b"], -1),
        (np.array(["a", "b"], dtype=object), -1),
        ([0.0, 1.0], -1),
        ([True, False], -1),
        ([0, 1], "unknown"),
        (np.array(["a", 1], dtype=object), "unknown"),
        ([0, 1], None),
        ([0, 1], True),
        ([0, 1], -1.0),
    ],
)
def test_mask_labels_refuses_labels_that_cannot_stand_beside_the_marker(y, marker):
    with pytest.raises(TypeError, match="unlabeled_label"):
        mask_labels(y, 0.5, unlabeled_label=marker)


def test_mask_labels_names_the_encoder_for_text():
    with pytest.raises(TypeError, match="LabelEncoder"):
        mask_labels(["a", "b"], 0.5)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, np.nan, 5])
def test_mask_labels_refuses_a_fraction_out_of_range(fraction):
    with pytest.raises(ValueError, match="fraction must lie between 0 and 1"):
        mask_labels([0, 1], fraction)


@pytest.mark.parametrize("fraction", ["0.1", None, True])
def test_mask_labels_refuses_a_fraction_that_is_no_number(fraction):
    with pytest.raises(TypeError, match="fraction must be a number"):
        mask_labels([0, 1], fraction)


def test_mask_labels_refuses_bad_y():
    with pytest.raises(ValueError, match=r"y must hold one label per row.*\(2, 2\)"):
        mask_labels([[0, 1], [1, 0]], 0.5)
    with pytest.raises(ValueError, match="y holds no label"):
        mask_labels([-1, -1], 0.5)


# LabeledTestSplit


@given(
    hnp.arrays(np.int64, st.integers(8, 40), elements=st.integers(-1, 2)),
    st.integers(2, 4),
    st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_split_is_the_wrapped_one_without_unlabelled_test_rows(y, n_splits, seed):
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


def test_series_with_another_index():
    y = pd.Series([0, -1, 1, 0, -1, 1], index=[5, 4, 3, 2, 1, 0])
    tests = [test.tolist() for _, test in LabeledTestSplit(KFold(2)).split(np.zeros(6), y)]
    assert tests == [[0, 2], [3, 5]]


def test_split_refuses_bad_y():
    with pytest.raises(ValueError, match="needs y"):
        next(LabeledTestSplit().split(np.zeros(4)))
    with pytest.raises(ValueError, match="one label per row"):
        next(LabeledTestSplit().split(np.zeros(4), np.zeros((4, 2))))
    with pytest.raises(ValueError, match="unlabeled_label must not be NaN"):
        next(LabeledTestSplit(KFold(2), np.nan).split(np.zeros(4), np.zeros(4)))


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


def test_every_scorer_works_in_cross_validation(few_labels):
    X, y, groups = few_labels
    probe = LabeledSubsetClassifier(LogisticRegression())
    cv = LabeledTestSplit(GroupKFold(4))
    for scoring in ("accuracy", "roc_auc", "neg_log_loss", None):
        scores = cross_val_score(probe, X, y, groups=groups, cv=cv, scoring=scoring)
        assert scores.shape == (4,) and np.all(scores > -0.3)


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


# GroupHoldout


@given(n_groups=st.integers(7, 80), seed=st.integers(0, 99))
def test_holdout_parts_literally(n_groups, seed):
    """The published code: shuffle the recordings, cut at 70 % and 85 %."""
    groups = np.repeat(np.arange(n_groups) * 3, 2)
    order = np.unique(groups)
    np.random.RandomState(seed).shuffle(order)
    expected = {}
    for i, name in enumerate(order.tolist()):
        expected[name] = (
            "train" if i < int(0.7 * n_groups) else "val" if i < int(0.85 * n_groups) else "test"
        )
    parts = GroupHoldout(random_state=seed).parts(groups)
    assert parts.tolist() == [expected[name] for name in groups.tolist()]


@pytest.mark.parametrize("on", ["val", "test"])
def test_holdout_shares_no_group(on):
    groups = np.array(list("abcdefghij") * 3)
    ((train, test),) = GroupHoldout(on).split(groups, groups=groups)
    parts = GroupHoldout().parts(groups)
    assert not set(groups[train]) & set(groups[test])
    assert (parts[train] == "train").all()
    assert set(parts[test]) == {on}
    assert len(train) + len(test) < len(groups)
    assert GroupHoldout(on).get_n_splits() == 1


def test_holdout_in_a_search():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(60, 2)), np.arange(60) % 2, np.arange(60) // 3
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupHoldout())
    assert search.fit(X, y, groups=groups).n_splits_ == 1
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("params", "groups", "message"),
    [
        ({"on": "train"}, np.arange(20), "on must be 'val' or 'test'"),
        ({"train_size": 0.9, "val_size": 0.2}, np.arange(20), "leave a part for the test"),
        ({"train_size": 1.5}, np.arange(20), "train_size must lie between 0 and 1"),
        ({}, np.arange(3), "too few"),
        ({}, None, "needs groups"),
    ],
)
def test_holdout_bad_input(params, groups, message):
    with pytest.raises(ValueError, match=message):
        list(GroupHoldout(**params).split(np.zeros(20), groups=groups))


def test_holdout_type_errors():
    with pytest.raises(TypeError, match="val_size must be a number"):
        GroupHoldout(val_size="15 %").parts(np.arange(20))
