"""Probes of wide embeddings: the same as scikit-learn's, in fewer columns."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from sklearn_pulse.benchmark import _probes
from sklearn_pulse.benchmark._probes import CS, FIXED_C, LabeledRows
from sklearn_pulse.evaluation import make_linear_probe


def labelled(n_features, n_classes=3, n=120, spread=3.0):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    Z = rng.normal(size=(n, n_features)) @ rng.normal(size=(n_features, n_features))
    Z[:, 0] += spread * y
    Z[:, 1] = 3.0  # a constant column
    return LabeledRows(Z.astype(np.float32), y, np.arange(n) // 6)


@pytest.mark.parametrize("n_features", [10, 400])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fewer_columns_have_the_same_inner_products_and_the_same_probe(n_features, n_classes):
    rows = labelled(n_features, n_classes)
    train, scored = np.arange(80), np.arange(80, 120)
    X, S = rows.standardised(train, scored)
    assert X.shape == (80, min(80, n_features)) and S.shape == (40, min(80, n_features))
    with config_context(transform_output="pandas"):
        for ours, plain in zip(rows.standardised(train, scored), (X, S), strict=True):
            assert isinstance(ours, np.ndarray)
            np.testing.assert_array_equal(ours, plain)
    scaler = StandardScaler().fit(rows.Z[train].astype(float))
    full, others = (scaler.transform(rows.Z[part].astype(float)) for part in (train, scored))
    np.testing.assert_allclose(X @ X.T, full @ full.T, atol=1e-4 * n_features)
    np.testing.assert_allclose(S @ X.T, others @ full.T, atol=1e-4 * n_features)
    probe = rows.fit(train, FIXED_C, X)
    theirs = make_linear_probe().fit(rows.Z[train], rows.y[train])
    np.testing.assert_allclose(
        probe.predict_proba(S), theirs.predict_proba(rows.Z[scored]), atol=0.03
    )


@pytest.mark.parametrize("grouped", [True, False])
def test_the_chosen_C_is_that_of_a_grid_search(grouped):
    rows = labelled(5, spread=1.0)
    if not grouped:  # each class in one group only
        rows = LabeledRows(rows.Z, rows.y, rows.y)
    chosen, n_capped = rows.choose_C(np.arange(120), 0)
    kind = StratifiedGroupKFold if grouped else StratifiedKFold
    known = {"groups": rows.groups} if grouped else {}
    folds = list(kind(5, shuffle=True, random_state=0).split(rows.Z, rows.y, **known))
    X, _ = rows.standardised(np.arange(120), np.arange(1))
    logistic = LogisticRegression(max_iter=1000, class_weight="balanced")
    search = GridSearchCV(logistic, {"C": CS}, cv=folds).fit(X, rows.y)
    assert chosen == search.best_params_["C"]
    assert n_capped == 0


def test_too_few_labels_keep_the_fixed_probe():
    rows = labelled(20)
    assert rows.choose_C(np.array([0, 1, 2]), 0) == (FIXED_C, 0)
    chosen, _ = rows.choose_C(np.array([0, 1, 3]), 0)  # two windows of one class
    assert chosen in CS


def test_many_windows_are_searched_as_whole_groups(monkeypatch):
    monkeypatch.setattr(_probes, "N_SEARCHED", 30)
    groups = np.arange(120) // 6
    some = _probes._some_groups(groups, 0)
    assert len(some) == 30
    assert set(np.unique(groups[some], return_counts=True)[1]) == {6}
    assert labelled(20).choose_C(np.arange(120), 0)[0] in CS
