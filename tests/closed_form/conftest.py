"""Embeddings with all their digits."""

import pytest


@pytest.fixture
def unrounded(monkeypatch):
    """Keep all digits of the embedding."""
    monkeypatch.setattr("sklearn_pulse._cross_prediction._DECIMALS", 12)
