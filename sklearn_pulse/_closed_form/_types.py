"""Types of the arrays of the closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]  # numbers of windows, recordings or places
Matrix = NDArray[np.float64]
