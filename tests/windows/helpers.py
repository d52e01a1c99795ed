"""Recordings and the literal label rule that the tests of windows share."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import settings

quick = settings(deadline=None, max_examples=60)


def ramp(n_timesteps, n_channels=1, offset=0.0):
    """Return a recording in which every value identifies its step and channel."""
    steps = np.arange(n_timesteps, dtype=np.float64)[:, None]
    return steps + offset + np.arange(n_channels) / 10


def slow_label(steps, label, min_labeled):
    """Label one window of integer step labels by counting them."""
    labeled = Counter(int(v) for v in steps if v != -1)
    if sum(labeled.values()) / len(steps) < min_labeled:
        return -1
    if label == "pure" and len(labeled) > 1:
        return -1
    return min(labeled, key=lambda c: (-labeled[c], c))
