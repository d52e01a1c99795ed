"""Every legal input gives finite embeddings; every other one an error that explains itself."""

import pytest
from hypothesis import HealthCheck, event, given, settings

from tests.deep.inputs import check, estimators, windows

QUIET = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
}


@settings(max_examples=30, derandomize=True, **QUIET)
@given(estimator=estimators(), X=windows())
def test_some_windows_and_parameters(estimator, X):
    check(estimator, X)


@pytest.mark.slow
@settings(max_examples=2000, **QUIET)
@given(estimator=estimators(), X=windows())
def test_many_windows_and_parameters(estimator, X):
    event(f"{type(estimator).__name__}: {check(estimator, X)}")
