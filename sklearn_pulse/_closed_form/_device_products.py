"""Products of feature matrices in float32, on the CPU or on another device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._blas import is_worth_sharing, unshared_products
from .._persistence import tensor_of
from .._products import multiply
from .._threads import threads
from ..features._base import CHUNK

_SPARE_ROWS = 32  # zeros behind them in a product, more than a library takes at a time


class FixedShapeProduct:
    """Product of at most 256 rows with a matrix that is held on a device.

    The rows are filled up with zeros, since the shape of a product decides how its sums are
    rounded. So does the place of a row where a library computes the last few rows by other code;
    here, these are zeros. PyTorch multiplies, since OpenBLAS rounds each dozen rows in two ways.

    Parameters
    ----------
    matrix : ndarray of float32, of shape (n_columns, n_out)
        The matrix.
    device : torch.device
        Device of the products.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> product = FixedShapeProduct(np.ones((2, 1), dtype=np.float32), torch.device("cpu"))
    >>> product(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[3.],
           [7.]], dtype=float32)
    """

    def __init__(self, matrix: NDArray[np.float32], device: torch.device) -> None:
        self._matrix = tensor_of(matrix).to(device)
        self._n_threads = None if is_worth_sharing(matrix.size) else 1

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Multiply rows, shape (n, n_columns), where n is at most 256."""
        filled = np.zeros((CHUNK + _SPARE_ROWS, rows.shape[1]), dtype=np.float32)
        filled[: len(rows)] = rows
        device = self._matrix.device
        uncast = torch.autocast(device.type, enabled=False)
        with torch.inference_mode(), uncast, threads(self._n_threads):
            product = multiply(torch.from_numpy(filled).to(device), self._matrix)
            return product[: len(rows)].cpu().numpy()


def held(array: NDArray[np.float32], device: torch.device) -> Any:
    """Return an array for `product`: itself on a CPU, where NumPy multiplies, else a tensor."""
    return array if device.type == "cpu" else tensor_of(array).to(device)


def product(left: Any, right: Any) -> NDArray[np.float32]:
    """Multiply what `held` returned, from either side, with another such matrix or an array.

    Parameters
    ----------
    left : ndarray or Tensor of shape (n, k)
        Held matrix, transposed or not.
    right : ndarray or Tensor of shape (k, m)
        Matrix.

    Returns
    -------
    ndarray of float32, of shape (n, m)
        The product.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> rows = held(np.array([[1.0, 2.0]], dtype=np.float32), torch.device("cpu"))
    >>> product(rows, rows.T)
    array([[5.]], dtype=float32)
    """
    if isinstance(left, np.ndarray):
        with unshared_products(max(left.size, right.size)):
            return np.asarray(left @ right)
    if isinstance(right, np.ndarray):
        right = tensor_of(right).to(left.device)
    with torch.inference_mode(), torch.autocast(left.device.type, enabled=False):
        return np.asarray((left @ right).cpu().numpy())
