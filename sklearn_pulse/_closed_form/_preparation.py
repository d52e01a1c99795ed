"""What a fit computes of the windows before it reads the settings of the map."""

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
from ..preprocessing import ChannelWhitener
from ._block_weights import APART, BLOCKS
from ._folds import Fold, added
from ._half_moments import HalfSums, half_moments
from ._known_rows import KnownRows
from ._nearest import chains
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
from ._predictive_map import Target, held_out_prediction, joint_share_explained, share_missed
from ._recording_moments import PairedWindows, RecordingSums, fold_of_pairs, recording_moments
from ._sample import sample_of, sample_of_people
from ._stack import FeatureStack, PartOfWindows, StackedBlock
from ._types import Index, Matrix
from ._views import Halves

_HALF_COMPONENTS = 800  # largest number of principal components of half a window
_FLOORS = {"minirocket": 0.05}  # of standard deviations in a block; 0 in the others
_QUANTILE_DEPTH = 3  # finer intervals tell less of other people


class Places(NamedTuple):
    """Windows in order, and where to read their features.

    Parameters
    ----------
    features : FeaturesOfViews or FeaturesOfSample
        Features of the windows alone, without those of their halves.
    rows : ndarray of int of shape (n,)
        Numbers of the windows.
    person : ndarray of int of shape (n,)
        Their people, or recordings where people are not known, in ascending order.
    chain : ndarray of int of shape (n,)
        Runs of windows that follow one another, in ascending order.
    """

    features: FeaturesOfViews | FeaturesOfSample
    rows: Index
    person: Index
    chain: Index

    def held(self, drawn: Index) -> Places:
        """Return some of the windows, with their features in memory."""
        rows = np.vstack([f for (f,) in self.features.of(self.rows[drawn])]).astype(np.float32)
        numbers = np.arange(len(drawn))
        features = FeaturesOfSample(numbers, [rows], self.features.num_threads)
        return Places(features, numbers, self.person[drawn], self.chain[drawn])


class Prepared(NamedTuple):
    """What a map is fitted to, whatever its settings.

    Parameters
    ----------
    stack : FeatureStack
        Blocks of features, and their principal components.
    targets : list of Target
        Second moments of each part of the components, with the constant part of people.
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
class Preparation:
    """What is computed before the map; see :class:`~sklearn_pulse.CrossPredictionTransformer`.

    Parameters
    ----------
    block_weights : ndarray of shape (n_blocks,)
        Share of each of `BLOCKS`.
    n_components : int
        Largest number of principal components.
    num_kernels : int
        Number of pairs of a kernel and a bias of MiniRocket.
    rho : float
        Ridge, as a share of the total variance.
    seed : int
        Seed of the kernels and of the sample.
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
    whitener : ChannelWhitener or None, default=None
        Fitted step that whitens the channels first.
    """

    block_weights: NDArray[np.float64]
    n_components: int
    num_kernels: int
    rho: float
    seed: int
    device: str | torch.device
    num_threads: int | None
    verbose: int
    bag_pooling: str
    input_layout: str
    keeps_rows: bool = False
    whitener: ChannelWhitener | None = None

    def adjacent(
        self, run: Run, windows: CheckedWindows, index: Index, paired: PairedWindows
    ) -> Prepared:
        """Prepare a map to what predicts the other window of a pair."""
        calls = [
            (index[with_neighbours(piece, paired)], paired.part(piece))
            for piece in pieces_of(len(index))
        ]
        (stack,), alone, sums = self._begin(run, sums_of_recordings, [windows], index, calls)
        with closing(sums):
            moments = recording_moments(sums, paired)
        targets, predictors = [], []
        for part in stack.parts:
            variance, shared, _, folds = moments.part(part.own)
            missed = 0.0 if part.is_apart else share_missed(folds, self.rho)
            targets.append(Target(variance, shared, variance, missed))
            predictors.append([folds])
        n_pairs = int(np.count_nonzero(paired.back))
        places = Places(alone, index, paired.person, chains(paired.back))
        predicted = self._predicted(stack, predictors)
        return Prepared(stack, targets, *predicted, moments.constant, n_pairs, places)

    def halves(self, run: Run, windows: CheckedWindows, halves: Halves) -> Prepared:
        """Prepare a map to what the halves of a window predict."""
        parts, index, recording, paired = halves
        if paired is not None and not paired.n_counted:
            paired = None  # a window alone in its recording has no constant part
        n = len(index)
        person = None if paired is None else paired.person
        fold = fold_of_pairs(recording, np.ones(n, dtype=bool), person)
        calls = [
            (index[piece], fold[piece], None if paired is None else paired.part(piece))
            for piece in pieces_of(n)
        ]
        views: list[CheckedWindows | PartOfWindows] = [windows, *parts]
        (stack, *of_halves), alone, sums = self._begin(run, sums_of_halves, views, index, calls)
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
        # The order says nothing, and unknown recordings may be of one window.
        numbers = np.arange(n)
        places = Places(alone, index, numbers if person is None else person, numbers)
        predicted = self._predicted(stack, predictors)
        return Prepared(stack, targets, *predicted, constant, n_pairs, places)

    def held(self, prepared: Prepared) -> Prepared:
        """Return what was prepared without the source of the windows, so that it can be kept."""
        places = prepared.places
        drawn = sample_of_people(places.person, self.seed)
        return prepared._replace(places=places.held(drawn))

    def new_stack(self, n_components: int | None = None) -> FeatureStack:
        """Return the unfitted stack of blocks."""
        reading: Any = {"bag_pooling": self.bag_pooling, "input_layout": self.input_layout}
        convolutions = {**reading, "device": self.device, "random_state": self.seed}
        further = max(N_KERNELS, self.num_kernels // 8)
        blocks: dict[str, BaseFeatureTransformer] = {
            "statistics": StatisticsTransformer(**reading),
            "autocorrelation": AutocorrelationTransformer(**reading),
            "minirocket": RandomConvolutionTransformer(self.num_kernels, **convolutions),
            "multirocket": RandomConvolutionTransformer(
                further, poolings=POOLINGS, difference=True, **convolutions
            ),
            "quantiles": IntervalQuantileTransformer(_QUANTILE_DEPTH, **reading),
            "hydra": HydraTransformer(_groups_of(self.num_kernels), **convolutions),
            "rhythm": RhythmTransformer(**reading),
            "covariance": CovarianceTransformer(**reading),
            "envelopes": EnvelopeCovarianceTransformer(**reading),
        }
        stacked = [
            StackedBlock(name, blocks[name], _FLOORS.get(name, 0.0), float(share), name in APART)
            for name, share in zip(BLOCKS, self.block_weights, strict=True)
            if share > 0
        ]
        number = n_components or self.n_components
        return FeatureStack(stacked, number, self.device, self.whitener)

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
        sample, usable = sample_of(index, self.seed), np.sort(index)
        of_halves = min(_HALF_COMPONENTS, self.n_components)
        stacks = [self.new_stack(), *(self.new_stack(of_halves) for _ in parts[1:])]
        if self.keeps_rows:
            stacks[0].known = KnownRows()
        rows = [stack.fit(part, usable, sample) for stack, part in zip(stacks, parts, strict=True)]
        if len(sample) == len(index):
            held = FeaturesOfSample(sample, rows, self.num_threads)
            alone = FeaturesOfSample(sample, rows[:1], self.num_threads)
            return stacks, alone, in_turn(function, [held], calls)
        views = FeaturesOfViews(stacks, parts, self.num_threads)
        first = FeaturesOfViews(stacks[:1], parts[:1], self.num_threads)
        return stacks, first, self._shown(run(function, [views], calls), len(index))

    def _shown(
        self, results: Generator[Sums, None, None], n_windows: int
    ) -> Generator[Sums, None, None]:
        """Yield sums over pieces of the windows, and show how many are done."""
        bar = progress_bar("cross-prediction", n_windows, "window", shown=bool(self.verbose))
        with bar as advance, closing(results):  # Dask and joblib are set back whatever happens
            for piece, sums in zip(pieces_of(n_windows), results, strict=True):
                advance(piece.stop - piece.start)
                yield sums

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


def _groups_of(num_kernels: int) -> int:
    """Return the number of groups of Hydra: 64 where MiniRocket has 10,000 kernels."""
    return max(2, num_kernels * 64 // 10_000)
