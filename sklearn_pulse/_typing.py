"""Types of the parameters that the estimators share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

BagPooling = Literal["mean", "max"]
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None
Distributed = bool | Literal["auto"]
InputLayout = Literal["ntc", "nct"]
LayerNorm = Literal["everywhere", "embedding", "none"]
PathLike = str | os.PathLike[str]
Pooling = Literal["max", "mean"]
Precision = Literal["float32", "bfloat16"]
RandomState = int | np.random.RandomState | None
Schedule = Literal["one_cycle", "constant"]
Select = Literal["trailing_mean", "min_val", "last"]
SelectOrAverage = Literal["trailing_mean", "min_val", "last", "average", "average_min_val"]
