"""Stack of feature blocks, each with a share of the variance, and its principal components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from .._data._validation import Block, CheckedWindows
from ._base import BaseFeatureTransformer

_CHUNK = 256  # windows whose features are in memory at once
_FLOOR = 0.01  # smallest scale of a column, as a share of its block's median


class PartOfWindows:
    """View of the time steps ``first`` to ``last`` of checked windows.

    Parameters
    ----------
    windows : CheckedWindows
        The windows.
    first : int
        First step.
    last : int
        Step after the last step.
    """

    def __init__(self, windows: CheckedWindows, first: int, last: int) -> None:
        self.windows, self.first, self.last = windows, first, last
        self.n_timesteps, self.n_channels = last - first, windows.n_channels
        self.is_bag = True  # a part may have no observed step

    def __len__(self) -> int:
        return len(self.windows)

    def take(self, index: NDArray[np.intp]) -> Block:
        """Gather the parts of some windows."""
        return self.cut(self.windows.take(index))

    def cut(self, block: Block) -> Block:
        """Return the part of each window of a block."""
        part = slice(self.first, self.last)
        observed = None if block.observed is None else np.ascontiguousarray(block.observed[:, part])
        return Block(np.ascontiguousarray(block.x[:, part]), observed)

    def observed_windows(self) -> NDArray[np.bool_]:
        """Find the windows whose part has an observed step."""
        observed = np.ones(len(self), dtype=bool)
        for first in range(0, len(self), _CHUNK):
            index = np.arange(first, min(first + _CHUNK, len(self)))
            block = self.take(index)
            if block.observed is not None:
                observed[index] = block.observed.any(1)
        return observed


class FeatureStack:
    """Scaled features of several blocks, projected on their principal components.

    Parameters
    ----------
    blocks : sequence of (BaseFeatureTransformer, share, floor)
        Unfitted transformers, the share of the total variance that each gets, and a constant that
        is added to the standard deviation of its columns in squares.
    n_components : int
        Largest number of principal components.
    """

    def __init__(
        self, blocks: Sequence[tuple[BaseFeatureTransformer, float, float]], n_components: int
    ) -> None:
        self.blocks, self.n_components = blocks, n_components

    def fit(self, windows: Any, index: NDArray[np.intp]) -> FeatureStack:
        """Fit the blocks on all windows, the scales and components on those of `index`."""
        for transformer, *_ in self.blocks:
            transformer.n_timesteps_in_ = windows.n_timesteps
            transformer.n_channels_in_ = windows.n_channels
            transformer._check_params()
            transformer._fit(windows)
        columns = np.concatenate([self._stack(block) for block in _chunks(windows, index)])
        self.mean = columns.mean(0, dtype=np.float64).astype(np.float32)
        columns -= self.mean
        widths = [transformer._n_features_out for transformer, *_ in self.blocks]
        self.parts = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
        self.scale = np.empty(sum(widths), dtype=np.float32)
        for part, (_, share, floor) in zip(self.parts, self.blocks, strict=True):
            self.scale[part] = _scales(columns[:, part], share, floor)
        columns *= self.scale
        self.components = _components(columns, self.n_components)
        return self

    def project(self, block: Block) -> NDArray[np.float32]:
        """Return the principal components of a few windows, shape (n, n_components)."""
        rows = np.empty((len(block.x), self.components.shape[1]), dtype=np.float32)
        for first in range(0, len(rows), _CHUNK):
            part = slice(first, first + _CHUNK)
            seen = None if block.observed is None else block.observed[part]
            columns = (self._stack(Block(block.x[part], seen)) - self.mean) * self.scale
            rows[part] = fixed_shape_product(columns, self.components)
        return rows

    def chunks(self, windows: Any, index: NDArray[np.intp]) -> Iterator[NDArray[np.float64]]:
        """Yield the principal components of windows in the order of `index`."""
        for block in _chunks(windows, index):
            yield self.project(block).astype(np.float64)

    def _stack(self, block: Block) -> NDArray[np.float32]:
        features = [transformer._features(block) for transformer, *_ in self.blocks]
        return np.concatenate([part.astype(np.float32) for part in features], axis=1)


def fixed_shape_product(
    rows: NDArray[np.float32], matrix: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Multiply at most 256 rows, filled up with zeros: the shape decides how sums are rounded."""
    filled = np.zeros((_CHUNK, rows.shape[1]), dtype=np.float32)
    filled[: len(rows)] = rows
    return (filled @ matrix)[: len(rows)]


def _chunks(windows: Any, index: NDArray[np.intp]) -> Iterator[Block]:
    for first in range(0, len(index), _CHUNK):
        yield windows.take(index[first : first + _CHUNK])


def _scales(columns: NDArray[np.float32], share: float, floor: float) -> NDArray[np.float32]:
    """Factors of the columns of a block, after which their variances add up to `share`."""
    variance = np.mean(np.square(columns, dtype=np.float64), axis=0)
    variance[variance < np.finfo(np.float32).tiny] = 0.0  # its factor has no float32
    deviation = np.sqrt(variance + floor**2)
    if not variance.any():
        return np.zeros(len(variance), dtype=np.float32)
    # Nearly constant columns would explode on new windows.
    deviation = np.maximum(deviation, _FLOOR * np.median(deviation[variance > 0]))
    total = np.sum(variance / deviation**2)
    return (np.sqrt(share / total) / deviation).astype(np.float32)


def _components(columns: NDArray[np.float32], n_components: int) -> NDArray[np.float32]:
    """Leading principal directions of centred columns, shape (n_columns, n_components)."""
    n, n_columns = columns.shape
    wide = n_columns > n
    gram = columns @ columns.T if wide else columns.T @ columns
    size = len(gram)
    number = min(n_components, size)
    values, vectors = eigh(gram.astype(np.float64), subset_by_index=(size - number, size - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    real = values > max(values[0], 0.0) * 1e-6  # float32 resolves no smaller share
    real[0] = True
    vectors = vectors[:, real].astype(np.float32)
    if not wide:
        return np.ascontiguousarray(vectors)
    if values[0] <= 0:
        return np.zeros((n_columns, 1), dtype=np.float32)
    return np.ascontiguousarray(columns.T @ vectors / np.sqrt(values[real]).astype(np.float32))
