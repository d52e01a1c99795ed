"""The paper's division into training, validation and test groups."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from sklearn_pulse.model_selection import GroupHoldout


@given(n_groups=st.integers(7, 400), seed=st.integers(0, 99))
@example(n_groups=90, seed=1234)  # 0.7 * 90 is less than 63 in floating point
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


@pytest.mark.parametrize(
    ("n_groups", "shares", "expected"),
    [(10, (0.7, 0.1), [7, 1, 2]), (20, (0.7, 0.1), [14, 2, 4]), (100, (0.6, 0.3), [60, 30, 10])],
)
def test_shares_whose_sum_is_rounded(n_groups, shares, expected):
    parts = GroupHoldout(train_size=shares[0], val_size=shares[1]).parts(np.arange(n_groups))
    assert [(parts == name).sum() for name in ("train", "val", "test")] == expected


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
        ({"on": "train"}, np.arange(20), "on must be one of 'val', 'test'"),
        ({"train_size": 0.9, "val_size": 0.2}, np.arange(20), "leave a part for the test"),
        ({"train_size": 1.5}, np.arange(20), r"train_size must be a number in \(0, 1\)"),
        ({"val_size": 0}, np.arange(20), r"val_size must be a number in \(0, 1\)"),
        ({}, np.arange(20) // 7, "too few"),
        ({}, np.arange(10), r"groups has shape \(10,\), but there are 20 rows"),
        ({}, None, "needs groups"),
        ({}, [*range(19), np.nan], r"groups is missing for 1 row\(s\) \(first row 19\)"),
        ({}, [*map(str, range(19)), np.nan], r"groups is missing for 1 row\(s\) \(first row 19\)"),
    ],
)
def test_holdout_bad_input(params, groups, message):
    with pytest.raises(ValueError, match=message):
        list(GroupHoldout(**params).split(np.zeros(20), groups=groups))


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
def test_missing_groups_of_string_dtype_are_named():
    dtype = np.dtypes.StringDType(na_object=np.nan)
    groups = np.array([*map(str, range(19)), np.nan], dtype=dtype)
    with pytest.raises(ValueError, match=r"groups is missing for 1 row\(s\) \(first row 19\)"):
        GroupHoldout().parts(groups)


def test_holdout_type_errors():
    with pytest.raises(TypeError, match="val_size must be a number"):
        GroupHoldout(val_size="15 %").parts(np.arange(20))
    with pytest.raises(TypeError, match="random_state must be an integer"):
        GroupHoldout(random_state="a").parts(np.arange(20))
    for groups in (None, 3, "abc", iter(range(20))):
        with pytest.raises(TypeError, match="groups must be an array-like of one group per row"):
            GroupHoldout().parts(groups)
