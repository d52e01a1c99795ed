"""Fit of the map from stacked features to what predicts another view."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import block_diag

from .._data._windows import CheckedWindows
from .._progress import progress_bar
from ..features import (
    AutocorrelationTransformer,
    CovarianceTransformer,
    EnvelopeCovarianceTransformer,
    HydraTransformer,
    IntervalQuantileTransformer,
    RandomConvolutionTransformer,
    RhythmTransformer,
    StatisticsTransformer,
)
from ..features._base import BaseFeatureTransformer
from ..features._convolutions import N_KERNELS, POOLINGS
from ._block_weights import APART, BLOCKS
from ._folds import Fold, added
from ._half_moments import HalfSums, half_moments
from ._known_rows import KnownRows
from ._nearest import chains, local_means, moment_of_nearest, nearness
from ._pieces import (
    FeaturesOfSample,
    FeaturesOfViews,
    Run,
    Sums,
    in_turn,
    pieces_of,
    sums_of_halves,
    sums_of_recordings,
    with_neighbours,
)
from ._predictive_map import (
    Target,
    held_out_prediction,
    joint_share_explained,
    predictive_map,
    share_explained,
)
from ._recording_moments import (
    PairedWindows,
    RecordingSums,
    fold_of_pairs,
    recording_moments,
    share_of_change,
)
from ._stack import FeatureStack, PartOfWindows, StackedBlock
from ._types import Index, Matrix
from ._views import Halves

_SAMPLE = 5000  # windows that the scales and the principal components come from
_HALF_COMPONENTS = 800  # largest number of principal components of half a window
_N_REPORTED = 20  # leading directions whose predictability is reported
# Largest share of the constant part that is removed of itself. No kappa tells that the rest is not
# the class: a recording of one class may visit states that all classes have.
_MOST_REMOVED = 0.5
_QUANTILE_DEPTH = 3  # finer intervals tell less of other people


class ClosedForm(NamedTuple):
    """Map from windows to an embedding, and what was found with it.

    Parameters
    ----------
    stack : FeatureStack
        Blocks of features, and their principal components.
    map : ndarray of float32, of shape (n_components, embedding_dim)
        Map from principal components to the embedding.
    alpha : float
        Share of the recordings' constant part that was removed.
    kappa : float
        Share of what the views have in common that is not constant; NaN where no constant part is
        known.
    n_pairs : int
        Number of pairs of views.
    predictability : dict
        R2 of each block and of the leading directions, predicted from the other view.
    """

    stack: FeatureStack
    map: NDArray[np.float32]
    alpha: float
    kappa: float
    n_pairs: int
    predictability: dict[str, Any]


class Places(NamedTuple):
    """Windows in order, and where to read their features.

    Parameters
    ----------
    features : FeaturesOfViews or FeaturesOfSample
        Features of the windows alone, without those of their halves.
    rows : ndarray of int of shape (n,)
        Numbers of the windows.
    recording : ndarray of int of shape (n,)
        Their recordings, in ascending order.
    chain : ndarray of int of shape (n,)
        Runs of windows that follow one another, in ascending order.
    """

    features: FeaturesOfViews | FeaturesOfSample
    rows: Index
    recording: Index
    chain: Index

    def held(self, drawn: Index) -> Places:
        """Return some of the windows, with their features in memory."""
        rows = np.vstack([f for (f,) in self.features.of(self.rows[drawn])]).astype(np.float32)
        numbers = np.arange(len(drawn))
        features = FeaturesOfSample(numbers, [rows], self.features.num_threads)
        return Places(features, numbers, self.recording[drawn], self.chain[drawn])


class Prepared(NamedTuple):
    """What a fit computes before it reads the settings of the map.

    These are `alpha`, `whitening`, `nearest`, `unpredicted` and the width.

    Parameters
    ----------
    stack : FeatureStack
        Blocks of features, and their principal components.
    targets : list of Target
        Second moments of each part of the components, with the constant part of recordings.
    explained, total : ndarray of shape (r, r)
        Second moments of what the other view predicts on held-out recordings, and of all.
    of_blocks : dict
        R2 of each block, predicted from the other view.
    constant : ndarray of shape (r, r) or None
        The constant part; None if it is not known.
    n_pairs : int
        Number of pairs of views.
    places : Places
        Where to find the windows that `nearest` compares.
    """

    stack: FeatureStack
    targets: list[Target]
    explained: Matrix
    total: Matrix
    of_blocks: dict[str, float]
    constant: Matrix | None
    n_pairs: int
    places: Places


@dataclass(frozen=True)
class ClosedFormFit:
    """Settings of a fit; see :class:`~sklearn_pulse.CrossPredictionTransformer`.

    Parameters
    ----------
    block_weights : ndarray of shape (n_blocks,)
        Share of each of `BLOCKS`.
    alpha : "auto" or float
        Share of the recordings' constant part to remove.
    n_components : int
        Largest number of principal components.
    embedding_dim : int
        Width of the embedding.
    num_kernels : int
        Number of pairs of a kernel and a bias of MiniRocket.
    rho : float
        Ridge, as a share of the total variance.
    whitening : float
        How far what the other view shares is whitened.
    nearest : float
        Weight of what the nearest windows of other recordings share.
    unpredicted : float
        Weight of what the other view need not predict.
    seed : int
        Seed of the kernels, of the sample and of the rotation.
    device : str or torch.device
        Device of the convolutions, and of products with all columns.
    num_threads : int or None
        Number of threads to compute on.
    verbose : int
        Whether to show a progress bar.
    bag_pooling, input_layout : str
        How the blocks, used on their own, read X.
    keeps_rows : bool, default=False
        Whether the stack keeps the principal components of the windows of its sample.
    """

    block_weights: NDArray[np.float64]
    alpha: str | float
    n_components: int
    embedding_dim: int
    num_kernels: int
    rho: float
    whitening: float
    nearest: float
    unpredicted: float
    seed: int
    device: str | torch.device
    num_threads: int | None
    verbose: int
    bag_pooling: str
    input_layout: str
    keeps_rows: bool = False

    def adjacent(
        self, run: Run, windows: CheckedWindows, index: Index, paired: PairedWindows
    ) -> Prepared:
        """Prepare a map to what predicts the other window of a pair."""
        calls = [
            (index[with_neighbours(piece, paired)], paired.part(piece))
            for piece in pieces_of(len(index))
        ]
        (stack,), known, sums = self._begin(run, sums_of_recordings, [windows], index, calls)
        with closing(sums):
            moments = recording_moments(sums, paired)
        targets, predictors = [], []
        for part in stack.parts:
            variance, shared, _, folds = moments.part(part.own)
            targets.append(Target(variance, shared, variance))
            predictors.append([folds])
        n_pairs = int(np.count_nonzero(paired.back))
        places = Places(known, index, paired.recording, chains(paired.back))
        predicted = self._predicted(stack, predictors)
        return Prepared(stack, targets, *predicted, moments.constant, n_pairs, places)

    def halves(self, run: Run, windows: CheckedWindows, halves: Halves) -> Prepared:
        """Prepare a map to what the halves of a window predict."""
        parts, index, recording, paired = halves
        if paired is not None and not paired.weight.any():
            paired = None  # a window alone in its recording has no constant part
        n = len(index)
        fold = fold_of_pairs(recording, np.ones(n, dtype=bool))
        calls = [
            (index[piece], fold[piece], None if paired is None else paired.part(piece))
            for piece in pieces_of(n)
        ]
        views: list[CheckedWindows | PartOfWindows] = [windows, *parts]
        (stack, *of_halves), known, sums = self._begin(run, sums_of_halves, views, index, calls)
        with closing(sums):
            total, constant = _totals(sums, paired)
        parts_of_halves = [half.parts for half in of_halves]
        del of_halves, sums  # which take as much memory as the stack
        targets, predictors = [], []
        for part, *of_part in zip(stack.parts, *parts_of_halves, strict=True):
            own = total.part(part.own, [of_half.own for of_half in of_part])
            variance, shared, of_both = half_moments(own, n, self.rho)
            targets.append(Target(variance, shared, variance))
            predictors.append(of_both)
        n_pairs = n if parts else 0
        alone = np.arange(n)  # the order says nothing, and unknown recordings may be of one window
        places = Places(known, index, alone if paired is None else recording, alone)
        predicted = self._predicted(stack, predictors)
        return Prepared(stack, targets, *predicted, constant, n_pairs, places)

    def held(self, prepared: Prepared) -> Prepared:
        """Return what was prepared without the source of the windows, so that it can be kept."""
        places = prepared.places
        drawn = self.sample_of_recordings(places.recording)
        return prepared._replace(places=places.held(drawn))

    def fitted(self, prepared: Prepared) -> ClosedForm:
        """Fit the map to what was prepared."""
        stack, targets, constant = prepared.stack, prepared.targets, prepared.constant
        alpha, kappa = 0.0, np.nan
        if constant is not None:
            shared = np.concatenate([np.diag(of_part.shared) for of_part in targets])
            kappa = share_of_change(float(shared.sum()), float(np.trace(constant)))
            alpha = _automatic(kappa)
            if not isinstance(self.alpha, str):
                alpha = float(self.alpha)
            targets = [
                of_part.without(constant[part.own, part.own], alpha)
                for of_part, part in zip(targets, stack.parts, strict=True)
            ]
        if self.nearest > 0:
            targets = self._with_nearest(stack, targets, prepared.places)
        directions = self._directions(stack, targets)
        rotation = _rotation(directions.shape[1], self.embedding_dim, self.seed)
        rotated = np.sqrt(self.embedding_dim) * directions @ rotation
        leading = directions[:, :_N_REPORTED]
        predictability = {
            "blocks": prepared.of_blocks,
            "directions": share_explained(leading, prepared.explained, prepared.total),
        }
        to_embedding = rotated.astype(np.float32)
        return ClosedForm(stack, to_embedding, alpha, kappa, prepared.n_pairs, predictability)

    def sample(self, index: Index) -> Index:
        """Draw the windows that scales and components come from, in the order of `index`."""
        if len(index) <= _SAMPLE:
            return index
        rng = np.random.RandomState(self.seed)
        return index[np.sort(rng.choice(len(index), _SAMPLE, replace=False))]

    def sample_of_recordings(self, recording: NDArray[np.intp]) -> Index:
        """Draw recordings until they have as many windows as a sample; the last may be cut.

        `recording` is ordered and numbered from 0; places in it are returned.
        """
        sizes = np.bincount(recording)
        order = np.random.RandomState(self.seed).permutation(len(sizes))
        before = np.cumsum(sizes[order]) - sizes[order]
        return np.flatnonzero(np.isin(recording, order[before < _SAMPLE]))[:_SAMPLE]

    def new_stack(self, n_components: int | None = None) -> FeatureStack:
        """Return the unfitted stack of blocks."""
        reading: Any = {"bag_pooling": self.bag_pooling, "input_layout": self.input_layout}
        convolutions = {**reading, "device": self.device, "random_state": self.seed}
        further = max(N_KERNELS, self.num_kernels // 8)
        blocks: list[tuple[BaseFeatureTransformer, float]] = [
            (StatisticsTransformer(**reading), 0.0),
            (AutocorrelationTransformer(**reading), 0.0),
            (RandomConvolutionTransformer(self.num_kernels, **convolutions), 0.05),
            (
                RandomConvolutionTransformer(
                    further, poolings=POOLINGS, difference=True, **convolutions
                ),
                0.0,
            ),
            (IntervalQuantileTransformer(_QUANTILE_DEPTH, **reading), 0.0),
            (HydraTransformer(_groups_of(self.num_kernels), **convolutions), 0.0),
            (RhythmTransformer(**reading), 0.0),
            (CovarianceTransformer(**reading), 0.0),
            (EnvelopeCovarianceTransformer(**reading), 0.0),
        ]
        stacked = [
            StackedBlock(name, *block, float(share), is_apart=name in APART)
            for name, block, share in zip(BLOCKS, blocks, self.block_weights, strict=True)
            if share > 0
        ]
        return FeatureStack(stacked, n_components or self.n_components, self.device)

    def _begin(
        self,
        run: Run,
        function: Callable[..., Sums],
        parts: Sequence[CheckedWindows | PartOfWindows],
        index: Index,
        calls: Sequence[tuple[Any, ...]],
    ) -> tuple[list[FeatureStack], FeaturesOfViews | FeaturesOfSample, Generator[Sums, None, None]]:
        """Fit a stack on each view of the windows.

        Return the stacks, the features of the first view, and sums over `index`. If the sample
        holds all windows, their features are not computed again.
        """
        sample, usable = self.sample(index), np.sort(index)
        of_halves = min(_HALF_COMPONENTS, self.n_components)
        stacks = [self.new_stack(), *(self.new_stack(of_halves) for _ in parts[1:])]
        if self.keeps_rows:
            stacks[0].known = KnownRows()
        rows = [stack.fit(part, usable, sample) for stack, part in zip(stacks, parts, strict=True)]
        if len(sample) == len(index):
            known = FeaturesOfSample(sample, rows, self.num_threads)
            first = FeaturesOfSample(sample, rows[:1], self.num_threads)
            return stacks, first, in_turn(function, [known], calls)
        views = FeaturesOfViews(stacks, parts, self.num_threads)
        alone = FeaturesOfViews(stacks[:1], parts[:1], self.num_threads)
        return stacks, alone, self._shown(run(function, [views], calls), len(index))

    def _shown(
        self, results: Generator[Sums, None, None], n_windows: int
    ) -> Generator[Sums, None, None]:
        """Yield sums over pieces of the windows, and show how many are done."""
        bar = progress_bar("cross-prediction", n_windows, "window", shown=bool(self.verbose))
        with bar as advance, closing(results):  # Dask and joblib are set back whatever happens
            for piece, sums in zip(pieces_of(n_windows), results, strict=True):
                advance(piece.stop - piece.start)
                yield sums

    def _with_nearest(
        self, stack: FeatureStack, targets: list[Target], places: Places
    ) -> list[Target]:
        """Add what the nearest windows of other recordings share to what the map is fitted to.

        Which are the nearest, the map without them tells, however narrow the embedding is.
        """
        drawn = self.sample_of_recordings(places.recording)
        rows = np.vstack([f for (f,) in places.features.of(places.rows[drawn])])
        maps = self._maps(stack, targets, rows.shape[1])
        parts = [rows[:, part.own] for part in stack.parts]
        embedding = np.hstack([own @ to for own, to in zip(parts, maps, strict=True)])
        states = local_means(embedding, places.chain[drawn])
        weights = nearness(states, places.recording[drawn])
        if not weights.nnz:  # there is no other recording
            return targets
        return [
            target.beside(moment_of_nearest(own, weights), self.nearest)
            for target, own in zip(targets, parts, strict=True)
        ]

    def _maps(self, stack: FeatureStack, targets: list[Target], width: int) -> list[Matrix]:
        """Return the map of each part of the components, with its share of the embedding."""
        signs = stack.reference()
        settings = self.rho, self.whitening, self.unpredicted, width
        # A part that does not vary leaves its share to the others.
        shares = [
            part.share * target.variance.any()
            for part, target in zip(stack.parts, targets, strict=True)
        ]
        return [
            np.sqrt(share / (sum(shares) or 1.0))
            * predictive_map(target, *settings, signs[part.own])
            for part, target, share in zip(stack.parts, targets, shares, strict=True)
        ]

    def _directions(self, stack: FeatureStack, targets: list[Target]) -> Matrix:
        """Return the leading directions of all parts of the components."""
        maps = self._maps(stack, targets, self.embedding_dim)
        return _leading(block_diag(*maps), self.embedding_dim) if len(maps) > 1 else maps[0]

    def _predicted(
        self, stack: FeatureStack, predictors: list[list[list[Fold]]]
    ) -> tuple[Matrix, Matrix, dict[str, float]]:
        """Return what the predictors of each part explain, of how much, and R2 of each block."""
        moments = [
            held_out_prediction(of_part, self.rho, part.own.stop - part.own.start)
            for of_part, part in zip(predictors, stack.parts, strict=True)
        ]
        explained, total = (block_diag(*of_parts) for of_parts in zip(*moments, strict=True))
        of_blocks = {
            name: joint_share_explained(columns, explained, total)
            for name, columns in stack.columns_of_blocks()
        }
        return explained, total, of_blocks


def _totals(
    sums: Iterator[tuple[HalfSums, RecordingSums | None]], paired: PairedWindows | None
) -> tuple[HalfSums, Matrix | None]:
    """Add up the sums over pieces; return them, and the constant part where it is known."""
    if paired is None:
        return reduce(added, (of_halves for of_halves, _ in sums)), None
    total: list[HalfSums] = []

    def of_recordings() -> Iterator[RecordingSums]:
        for of_halves, own in sums:
            total[:] = [reduce(added, [*total, of_halves])]
            if own is not None:
                yield own

    moments = recording_moments(of_recordings(), paired)
    return total[0], moments.constant


def _leading(directions: Matrix, number: int) -> Matrix:
    """Return the longest directions, in descending order."""
    order = np.argsort(-np.linalg.norm(directions, axis=0), kind="stable")
    return directions[:, order[:number]]


def _automatic(kappa: float) -> float:
    """Return the share of the constant part to remove.

    If the views share nothing beyond the constant part (`kappa` is 0), the constant part is all
    that can be kept.
    """
    return min(_MOST_REMOVED, max(kappa, 0.0) ** 0.5)


def _groups_of(num_kernels: int) -> int:
    """Return the number of groups of Hydra: 64 where MiniRocket has 10,000 kernels."""
    return max(2, num_kernels * 64 // 10_000)


def _rotation(n_directions: int, width: int, seed: int) -> NDArray[np.float64]:
    """Draw orthonormal rows, shape (n_directions, width)."""
    draws = np.random.RandomState(seed).normal(size=(width, n_directions))
    return np.asarray(np.linalg.qr(draws)[0].T)
