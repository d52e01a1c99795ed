"""Stack of feature blocks, each with a share of the variance, and its principal components."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh
from torch import Tensor

from .._blas import unshared_products
from .._data._windows import Block, CheckedWindows
from .._persistence import stored_array
from .._training._device import resolve_device
from ..features._base import CHUNK, BaseFeatureTransformer, check_features
from ..preprocessing import ChannelWhitener
from ._channels import WhitenedWindows, whitened
from ._device_products import FixedShapeProduct, held, product
from ._known_rows import KnownRows
from ._signs import oriented, reference

_FLOOR = 0.01  # smallest scale of a column, as a share of the median of its block and unit
_AT_ONCE = 256  # columns whose squares are in memory at once
_NO_VARIANCE = 1e-60  # the factor of a column that varies less may overflow float32


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

    def take(self, index: NDArray[np.intp]) -> Block:
        """Gather the parts of some windows."""
        return self.cut(self.windows.take(index))

    def cut(self, block: Block) -> Block:
        """Return the part of each window of a block."""
        part = slice(self.first, self.last)
        observed = None if block.observed is None else np.ascontiguousarray(block.observed[:, part])
        return Block(np.ascontiguousarray(block.x[:, part]), observed)


class StackedBlock(NamedTuple):
    """Block of features in a stack.

    Parameters
    ----------
    name : str
        Name of the block.
    transformer : BaseFeatureTransformer
        What computes the features.
    floor : float
        Constant that is added to the standard deviation of each column, in squares.
    share : float
        Share of the variance of the stack.
    is_apart : bool, default=False
        Whether the block has principal components of its own.
    """

    name: str
    transformer: BaseFeatureTransformer
    floor: float
    share: float
    is_apart: bool = False


class Part(NamedTuple):
    """Principal components of some blocks of a stack.

    Parameters
    ----------
    own : slice
        Numbers of the components.
    share : float
        Share of the blocks in the variance of the stack.
    is_apart : bool
        Whether they are those of a single block that is apart.
    """

    own: slice
    share: float
    is_apart: bool


class FeatureStack:
    """Scaled features of several blocks, projected on their principal components.

    Parameters
    ----------
    blocks : sequence of StackedBlock
        The blocks, whose transformers are not fitted yet. Those that are apart come last.
    n_components : int
        Largest number of principal components of each part.
    device : str or torch.device
        Device of the products with all columns.
    whitener : ChannelWhitener or None, default=None
        Fitted step that whitens the channels of all windows first.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_columns,)
        Number that is subtracted from each column, and number that it is multiplied by.
    components : ndarray of shape (n_columns, r)
        The principal components; zero for the columns of other parts.
    parts : list of Part
        Components of the blocks together, and of each that is apart. Only `fit` sets it.
    known : KnownRows or None
        Where `fit` keeps the components of the windows of its sample, and the projection finds
        them. None keeps nothing.
    """

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    components: NDArray[np.float32]
    parts: list[Part]
    known: KnownRows | None = None

    def __init__(
        self,
        blocks: Sequence[StackedBlock],
        n_components: int,
        device: str | torch.device,
        whitener: ChannelWhitener | None = None,
    ) -> None:
        self.blocks, self.n_components, self.device = blocks, n_components, device
        self.whitener = whitener

    def by_name(self) -> dict[str, BaseFeatureTransformer]:
        """Return the transformer of each block."""
        return {block.name: block.transformer for block in self.blocks}

    def columns_of_blocks(self) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """Yield the name of each block, and its columns as directions of principal components."""
        for block, columns in zip(self.blocks, self.columns, strict=True):
            yield block.name, self.components[columns].T.astype(np.float64)

    def reference(self) -> NDArray[np.float64]:
        """Return the vector that signs of directions of principal components are decided by.

        It is the same vector of columns whatever the basis of the components.
        """
        return self.components.T.astype(np.float64) @ reference(len(self.components))

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return what `fit` learnt, beside the transformers."""
        return {"mean": self.mean, "scale": self.scale, "components": self.components}

    def restore(self, weights: Mapping[str, Tensor], n_timesteps: int, n_channels: int) -> None:
        """Take over stored weights; ValueError if they do not fit windows of this shape."""
        for block in self.blocks:
            transformer, prefix = block.transformer, f"{block.name}."
            transformer._note_part(n_timesteps, n_channels)
            own = {
                name.removeprefix(prefix): value
                for name, value in weights.items()
                if name.startswith(prefix)
            }
            transformer._restore(own)
        width = self.columns[-1].stop
        self.mean, self.scale = (
            stored_array(weights, name, np.float32, (width,)) for name in ("mean", "scale")
        )
        self.components = stored_array(weights, "components", np.float32, (width, None))

    @property
    def columns(self) -> list[slice]:
        """Columns of each block."""
        ends = np.cumsum([block.transformer._n_features_out for block in self.blocks]).tolist()
        return [slice(first, end) for first, end in pairwise([0, *ends])]

    def fit(
        self, windows: Any, usable: NDArray[np.intp], index: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """Fit the blocks on all usable windows, the scales and components on those of `index`.

        Parameters
        ----------
        windows : CheckedWindows or PartOfWindows
            The windows.
        usable : ndarray of int of shape (n_usable,)
            Numbers of the windows with an observed step.
        index : ndarray of int of shape (n,)
            Numbers of windows whose features fit into memory together.

        Returns
        -------
        ndarray of shape (n, n_components)
            Principal components of the windows of `index`.
        """
        read = windows if self.whitener is None else WhitenedWindows(windows, self.whitener)
        for block in self.blocks:
            block.transformer._fit_part(read, usable)
        columns = np.empty((len(index), self.columns[-1].stop), dtype=np.float32)
        for first in range(0, len(index), CHUNK):
            rows = slice(first, first + CHUNK)
            columns[rows] = self._stack(windows.take(index[rows]))
        check_features(columns, windows, index)
        self.mean = columns.mean(0, dtype=np.float64).astype(np.float32)
        columns -= self.mean
        self.scale = np.empty_like(self.mean)
        for own, block in zip(self.columns, self.blocks, strict=True):
            self.scale[own] = _scales(columns[:, own], block)
        columns *= self.scale
        scaled, columns = columns, held(columns, resolve_device(self.device))
        self._fit_components(columns)
        if self.known is not None:
            multiply = FixedShapeProduct(self.components, resolve_device(self.device))
            for first in range(0, len(index), CHUNK):
                rows = slice(first, first + CHUNK)
                self.known.add(windows.take(index[rows]), multiply(scaled[rows]))
        return product(columns, self.components)

    def _fit_components(self, columns: Any) -> None:
        """Set the components of held columns, and their parts."""
        found, self.parts, first = [], [], 0
        signs = reference(columns.shape[1])
        for own, share, is_apart in self._groups():
            found.append(_components(columns[:, own], self.n_components, signs[own]))
            last = first + found[-1].shape[1]
            self.parts.append(Part(slice(first, last), share, is_apart))
            first = last
        self.components = found[0] if len(found) == 1 else block_diag(*found)

    def _groups(self) -> Iterator[tuple[slice, float, bool]]:
        """Yield columns and share of blocks with common components, and whether one is apart."""
        blocks = zip(self.blocks, self.columns, strict=True)
        for _, group in groupby(blocks, lambda pair: pair[0].is_apart and pair[0].name):
            members = list(group)
            own = slice(members[0][1].start, members[-1][1].stop)
            yield own, sum(block.share for block, _ in members), members[0][0].is_apart

    def projection(self) -> Callable[[Block], NDArray[np.float32]]:
        """Return a function from at most 256 windows to their principal components.

        The function holds the components on the device, which takes memory there.
        """
        multiply = FixedShapeProduct(self.components, resolve_device(self.device))

        def project(block: Block) -> NDArray[np.float32]:
            return multiply((self._stack(block) - self.mean) * self.scale)

        known = self.known
        return project if known is None else lambda block: known.rows_of(block, project)

    def _stack(self, block: Block) -> NDArray[np.float32]:
        if self.whitener is not None:
            block = whitened(block, self.whitener)
        features = [stacked.transformer._features(block) for stacked in self.blocks]
        return np.concatenate([part.astype(np.float32, copy=False) for part in features], axis=1)


def _scales(columns: NDArray[np.float32], block: StackedBlock) -> NDArray[np.float32]:
    """Factors of the columns of a block, after which their variances add up to its share."""
    # A float64 copy of all columns would take twice the memory of the columns.
    parts = np.array_split(columns, -(-columns.shape[1] // _AT_ONCE), axis=1)
    variance = np.concatenate([np.mean(np.square(x, dtype=np.float64), axis=0) for x in parts])
    variance[variance < _NO_VARIANCE] = 0.0
    if not variance.any():
        return np.zeros(len(variance), dtype=np.float32)
    deviation = np.sqrt(variance + block.floor**2)
    has_unit = block.transformer._spread_has_unit
    # Nearly constant columns would explode on new windows. What is nearly constant must not depend
    # on the unit of the signal, so columns are compared with columns of the same unit.
    for same in (has_unit, ~has_unit):
        varying = deviation[same & (variance > 0)]
        smallest = _FLOOR * np.median(varying) if len(varying) else np.inf
        deviation[same] = np.maximum(deviation[same], smallest)
    total = np.sum(variance / deviation**2)
    return (np.sqrt(block.share / total) / deviation).astype(np.float32)


def _components(columns: Any, n_components: int, signs: NDArray[np.float64]) -> NDArray[np.float32]:
    """Leading principal directions of held, centred columns, shape (n_columns, n_components)."""
    n, n_columns = columns.shape
    wide = n_columns > n
    gram = product(columns, columns.T) if wide else product(columns.T, columns)
    size = len(gram)
    number = min(n_components, size)
    leading = size - number, size - 1
    with unshared_products(gram.size):
        values, vectors = eigh(gram.astype(np.float64), subset_by_index=leading)
    values, vectors = values[::-1], vectors[:, ::-1]
    real = values > max(values[0], 0.0) * 1e-6  # float32 resolves no smaller share
    real[0] = True
    vectors = vectors[:, real].astype(np.float32)
    if wide and values[0] <= 0:
        return np.zeros((n_columns, 1), dtype=np.float32)
    if wide:
        vectors = product(columns.T, vectors) / np.sqrt(values[real]).astype(np.float32)
    return np.ascontiguousarray(oriented(vectors, signs))
