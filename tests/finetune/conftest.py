"""A small PULSE, windows, and a classifier that was fine-tuned on them."""

import pytest

from sklearn_pulse import PulseTransformer
from tests.helpers import SMALL_PULSE, make_windows

from .tuning import tuned


@pytest.fixture(scope="module")
def pulse():
    """PULSE pretrained on six channels, 32 steps."""
    X, _ = make_windows(24, 32, 6, seed=1)
    return PulseTransformer(**SMALL_PULSE).fit(X)


@pytest.fixture(scope="module")
def windows():
    return make_windows(n_channels=3)


@pytest.fixture(scope="module")
def fitted(pulse, windows):
    return tuned(pulse).fit(*windows)
