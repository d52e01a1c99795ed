"""Hiding all but a fraction of the labels."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.model_selection import KFold, ShuffleSplit

from sklearn_pulse.model_selection import LabeledTestSplit, mask_labels
from sklearn_pulse.model_selection._draw import own_permutation

labels_arrays = hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(-1, 4)).filter(
    lambda y: not {*y.tolist()} <= {-1, 1}  # -1 beside 1 alone is refused, as a class
)
fractions = st.floats(0, 1)


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


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
@pytest.mark.parametrize("marker", [-1, "unknown"])
def test_mask_labels_names_the_remedy_of_labels_of_string_dtype(marker):
    y = np.array(["a", "b"], dtype=np.dtypes.StringDType())
    with pytest.raises(TypeError, match=r"pass y\.astype\(object\)"):
        mask_labels(y, 0.5, unlabeled_label=marker)


@pytest.mark.parametrize(
    ("y", "marker"),
    [
        (["a", "b"], -1),
        (np.array(["a", "b"], dtype=object), -1),
        ([0.0, 1.0], -1),
        ([True, False], -1),
        ([0, 1], "unknown"),
        (np.array(["a", 1], dtype=object), "unknown"),
        (["a", -1, "b"], "unknown"),
        (("a", 1, "b"), "unknown"),
        ([0, 1], None),
        ([0, 1], True),
        ([0, 1], -1.0),
    ],
)
def test_mask_labels_refuses_labels_that_cannot_stand_beside_the_marker(y, marker):
    with pytest.raises(TypeError, match="unlabeled_label"):
        mask_labels(y, 0.5, unlabeled_label=marker)


@pytest.mark.parametrize("marker", [2**63, -(2**63) - 1])
def test_mask_labels_refuses_a_marker_of_more_bits_than_labels_have(marker):
    with pytest.raises(ValueError, match=r"unlabeled_label must be .* \(labels have 64 bits\)"):
        mask_labels([0, 1], 0.5, unlabeled_label=marker)


def test_mask_labels_names_the_encoder_for_text():
    with pytest.raises(TypeError, match="LabelEncoder"):
        mask_labels(["a", "b"], 0.5)


@pytest.mark.parametrize("kind", [float, object])
def test_mask_labels_keeps_the_marker_where_numbers_become_integers(kind):
    """An encoder of classes would number the marker -1 as a class."""
    y = np.array([0, 1, -1, 0, 1, -1])
    with pytest.raises(TypeError, match=re.escape("pass y.astype(int) if they are whole")):
        mask_labels(y.astype(kind), 0.5, random_state=0)
    same = mask_labels(y.astype(kind).astype(int), 0.5, random_state=0)
    np.testing.assert_array_equal(same, mask_labels(y, 0.5, random_state=0))


def test_mask_labels_bad_parameters():
    with pytest.raises(
        ValueError, match=r"fraction must be a number in \[0, 1\].*not a number of r"
    ):
        mask_labels([0, 1], 5)
    with pytest.raises(TypeError, match="random_state must be an integer"):
        mask_labels([0, 1], 0.5, random_state="a")


def test_mask_labels_refuses_bad_y():
    with pytest.raises(ValueError, match=r"y must hold one label per row.*\(2, 2\)"):
        mask_labels([[0, 1], [1, 0]], 0.5)
    with pytest.raises(ValueError, match="NaN or None in 1 of 4 rows, and mask_labels knows"):
        mask_labels(["a", "b", np.nan, "b"], 0.5, unlabeled_label="?")
    for none in ([-1, -1], []):
        with pytest.raises(ValueError, match="y holds no label"):
            mask_labels(none, 0.5)


def literal_groups(y, groups, n_groups, seed):
    """Apply the rule of whole groups, one group at a time."""
    names = sorted({group for group, label in zip(groups, y, strict=True) if label != -1})
    own_seed = np.random.RandomState(seed).randint(2**31 - 1)
    kept = []
    for position in np.random.RandomState(own_seed).permutation(len(names)):
        classes = {y[i] for i in range(len(y)) if groups[i] == names[position]} - {-1}
        shown = [
            sum(any(y[i] == c and groups[i] == g for i in range(len(y))) for g in kept)
            for c in classes
        ]
        if min(shown) < n_groups:
            kept.append(names[position])
    return [label if group in kept else -1 for label, group in zip(y, groups, strict=True)]


@given(labels_arrays, st.integers(1, 4), st.integers(1, 4), st.integers(0, 20), st.data())
@settings(max_examples=60, deadline=None)
def test_whole_groups_follow_the_literal_rule_and_are_nested(y, n, other, seed, data):
    groups = data.draw(hnp.arrays(np.int64, len(y), elements=st.integers(0, 6)))
    masked = mask_labels(y, n_groups=n, groups=groups, random_state=seed)
    assert masked.tolist() == literal_groups(y, groups, n, seed)
    assert set(masked) - {-1} == set(y) - {-1}
    few, many = sorted([n, other])
    few, many = (mask_labels(y, None, seed, n_groups=k, groups=groups) for k in (few, many))
    assert np.all(many[few != -1] == few[few != -1])


class Person:
    """Name of a group that counts how often names are compared."""

    n_compared = 0

    def __init__(self, number):
        self.number = number

    def __lt__(self, other):
        Person.n_compared += 1
        return self.number < other.number

    def __eq__(self, other):
        Person.n_compared += 1
        return self.number == other.number

    __hash__ = None


def test_rows_are_not_compared_with_every_group():
    people = [Person(number) for number in range(200)]
    groups = np.repeat(np.array(people, dtype=object), 5)
    Person.n_compared = 0
    masked = mask_labels(np.arange(1000) % 5, n_groups=200, groups=groups)
    assert (masked == np.arange(1000) % 5).all()
    assert Person.n_compared < 1000 * 200 / 4


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({}, ValueError, "set one of them"),
        ({"fraction": 0.5, "n_groups": 1}, ValueError, "fraction=0.5 and n_groups=1: set one"),
        ({"n_groups": 1}, ValueError, "pass the group of each row as groups"),
        ({"n_groups": 0, "groups": [1, 1, 2]}, ValueError, "n_groups must be an integer of at"),
        ({"n_groups": 1.0, "groups": [1, 1, 2]}, TypeError, "n_groups must be an integer"),
        ({"n_groups": 1, "groups": [1, 2]}, ValueError, "groups has shape"),
        ({"n_groups": 1, "groups": [1, None, 2]}, ValueError, "groups is missing for 1 row"),
    ],
)
def test_bad_groups_are_named(params, error, message):
    with pytest.raises(error, match=message):
        mask_labels([0, 1, 1], **params)


@pytest.mark.parametrize("n_groups", [1, 3, 100])
def test_labelled_groups_are_those_of_a_loop_over_all_groups(n_groups):
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 4, 200), rng.integers(0, 40, 200)
    order = np.unique(groups)[own_permutation(len(np.unique(groups)), 7)]
    shown, kept = np.zeros(4, int), []
    for group in order:
        classes = np.unique(y[groups == group])
        if (shown[classes] < n_groups).any():
            shown[classes] += 1
            kept.append(group)
    expected = np.where(np.isin(groups, kept), y, -1)
    masked = mask_labels(y, n_groups=n_groups, groups=groups, random_state=7)
    np.testing.assert_array_equal(masked, expected)
