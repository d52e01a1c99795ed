"""Signs of eigenvectors."""

import numpy as np
import pytest
from scipy.linalg import eigh

from sklearn_pulse import CrossPredictionTransformer
from tests.helpers import make_windows

PARAMS = {"num_kernels": 84, "n_components": 12, "embedding_dim": 16, "random_state": 0}
X, _ = make_windows(60, 64)
groups = np.arange(60) // 20


def embed(windows, **params):
    return CrossPredictionTransformer(**PARAMS | params).fit(windows, groups=groups).transform(X)


@pytest.mark.parametrize("module", ["_stack", "_predictive_map"])
@pytest.mark.parametrize("n_windows", [20, 60])
def test_eigenvectors_of_the_other_sign_embed_alike(monkeypatch, module, n_windows):
    """Each second vector is turned; both paths of the components, more columns or more rows."""

    def turned(*args, **kwargs):
        values, vectors = eigh(*args, **kwargs)
        vectors[:, ::2] *= -1
        return values, vectors

    params = PARAMS | {"block_weights": (1, 0, 0, 0)}  # 32 columns
    embeddings = [CrossPredictionTransformer(**params).fit_transform(X[:n_windows])]
    monkeypatch.setattr(f"sklearn_pulse._closed_form.{module}.eigh", turned)
    embeddings.append(CrossPredictionTransformer(**params).fit_transform(X[:n_windows]))
    scale = np.abs(embeddings[0]).max()
    np.testing.assert_allclose(*embeddings, rtol=0, atol=1e-4 * scale)


@pytest.mark.parametrize("scale", [1 - 1e-6, 1 + 1e-6, 1 + 3e-6])
def test_windows_that_differ_by_rounding_embed_alike(scale):
    """Features change by some 1e-6, and directions by that over the gaps between eigenvalues.

    A few outputs cross a threshold, each of which changes a feature by a 64th.
    """
    expected = embed(X)
    found = embed((scale * X.astype(np.float64)).astype(np.float32))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-2 * np.abs(expected).max())


def test_two_threads_embed_like_one():
    expected = embed(X, num_threads=1)
    found = embed(X, num_threads=2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-2 * np.abs(expected).max())
