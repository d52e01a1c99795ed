"""Fixtures of the timings."""

import pytest
import torch


@pytest.fixture
def whole_float32(monkeypatch):
    """Keep torch's convolutions in float32 on CUDA, where TF32 would round their factors.

    For comparisons with the literal form in this process alone: worker processes keep TF32.
    """
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
