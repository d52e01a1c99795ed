"""The regressions of the closed form."""

import numpy as np
import pytest

from sklearn_pulse._closed_form._predictive_map import ridge_inverse


def test_a_rho_that_is_lost_in_rounding_is_named():
    """The sum of a singular matrix of ones and 1e-20 is the same matrix on every processor."""
    with pytest.raises(ValueError, match="rho=1e-20 is too small .*pass a larger rho"):
        ridge_inverse(np.ones((2, 2)), 1e-20, np.eye(2))
