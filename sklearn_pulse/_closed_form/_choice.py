"""Views, and shares of the blocks, that windows ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data._windows import CheckedWindows
from ..preprocessing import ChannelWhitener
from ._block_weights import (
    BLOCKS,
    ENVELOPES_ALONE,
    OF_ORDER,
    RHYTHM_ALONE,
    USUAL_WEIGHTS,
    WEIGHTS_OF_RECORDED_CHANNELS,
    WEIGHTS_OF_RHYTHMS,
    all_weights,
    weights_with,
)
from ._channels import FEWEST_TO_WHITEN, share_most, whitener_of
from ._map_fit import kappa_of
from ._neighbours import Ordered, adjacent
from ._order import order_is_random
from ._pieces import Run, in_turn
from ._preparation import Preparation, Prepared
from ._sample import sample_of, sample_of_people
from ._views import features_of_halves, halves_of, pairs_of

# Share of the variance of the rhythm's features that the halves of windows predict, above which the
# rhythm is taken. ECGs have at least 0.35; the other sources, and noise, at most 0.20. Halves need
# no recordings and never overlap.
_RHYTHM_LASTS = 0.3
# Of fewer windows, whose mean is that of both parts, one part predicts the other whatever it holds.
_LEAST_FOR_RHYTHM = 10
# Ridge of this test alone: with a small one, the share depends on the number of windows.
_RHYTHM_RHO = 0.03
# Kappa of the envelopes alone, above which they are taken: recordings visit several states. Where a
# recording is one state, they tell who was recorded.
_MOSTLY_STATES = 0.5

# Kernels of the test of the order. Levels and bands tell most states, and Hydra's counts gestures.
_KERNELS_OF_ORDER = 625


class Request(NamedTuple):
    """Windows, and what is asked for them.

    Parameters
    ----------
    windows : CheckedWindows
        The windows.
    order : Ordered
        Their order.
    views : {"auto", "adjacent", "halves"}
        The views that are to predict each other.
    weights : "auto" or sequence of float
        Shares of the blocks.
    channels : {"auto", "recorded", "whitened"}
        What is read of the channels.
    """

    windows: CheckedWindows
    order: Ordered
    views: str
    weights: str | Sequence[float]
    channels: str


class Chosen(NamedTuple):
    """What was chosen for the windows, and what a map is fitted to.

    Parameters
    ----------
    views : {"adjacent", "halves"}
        The views that predict each other.
    weights : ndarray of shape (n_blocks,)
        Shares of the blocks.
    prepared : Prepared
        What the fit computed of them.
    """

    views: str
    weights: NDArray[np.float64]
    prepared: Prepared


def prepare(preparation: Preparation, run: Run, request: Request) -> Chosen:
    """Choose views and shares, where they are not given, and compute what a map is fitted to.

    Parameters
    ----------
    preparation : Preparation
        Settings of what is computed, of which the shares are not read.
    run : callable
        What computes the sums over pieces of the windows.
    request : Request
        The windows, and what is asked for them.

    Returns
    -------
    Chosen
        Views, shares of the blocks, and what a map is fitted to.

    Raises
    ------
    ValueError
        If adjacent windows are asked for, and there are none.
    """
    windows, order, views, weights, channels = request
    trial = replace(preparation, keeps_rows=False)  # fits that only choose embed nothing
    views = _views(trial, windows, order, views)
    if isinstance(weights, str):
        shares = automatic_weights(trial, windows, order, views)
    else:
        shares = all_weights(weights)
    whitener = _whitener(trial, request, shares)
    preparation = replace(preparation, block_weights=shares, whitener=whitener)
    if views == "adjacent":
        return Chosen(views, shares, preparation.adjacent(run, windows, *pairs_of(windows, order)))
    halves = halves_of(windows, order, recordings_known=windows.knows_recordings)
    return Chosen(views, shares, preparation.halves(run, windows, halves))


def recordings_are_known(windows: CheckedWindows, views: str) -> bool:
    """Tell whether an order holds recordings: adjacent windows without groups are of one."""
    return views == "adjacent" or windows.knows_recordings


def _views(preparation: Preparation, windows: CheckedWindows, order: Ordered, views: str) -> str:
    """Return the views; raise if no windows are adjacent where these are asked for."""
    any_adjacent = bool(adjacent(order.gap).any())
    if views == "auto":
        if not (windows.knows_recordings and any_adjacent):
            return "halves"
        return automatic_views(preparation, windows, order)
    if views == "adjacent" and not any_adjacent:
        raise ValueError(
            "views='adjacent' finds no two adjacent windows of one recording: pass the recording of"
            " each window as groups and its time as start, or set views='halves'."
        )
    return views


def automatic_views(preparation: Preparation, windows: CheckedWindows, order: Ordered) -> str:
    """Return "halves" where the order of windows in their recordings says nothing of them.

    The arguments are those of :func:`automatic_weights`.
    """
    drawn = order.some(sample_of_people(order.person, preparation.seed))
    halves = halves_of(windows, drawn, recordings_known=True)
    if halves.paired is None:
        return "adjacent"
    preparation = replace(
        preparation, block_weights=all_weights(OF_ORDER), num_kernels=_KERNELS_OF_ORDER
    )
    transformers = list(preparation.new_stack().by_name().values())
    features = features_of_halves(halves, transformers)
    return "halves" if order_is_random(features, halves.paired) else "adjacent"


def automatic_weights(
    preparation: Preparation,
    windows: CheckedWindows,
    order: Ordered,
    views: str,
) -> NDArray[np.float64]:
    """Return the shares that the windows ask for.

    Parameters
    ----------
    preparation : Preparation
        Settings of what is computed, of which the shares are not read.
    windows : CheckedWindows
        The windows.
    order : Ordered
        Their order.
    views : {"adjacent", "halves"}
        The views that predict each other.

    Returns
    -------
    ndarray of shape (n_blocks,)
        The shares.
    """
    if _rhythm_lasts(preparation, windows, order):
        return weights_with("rhythm", WEIGHTS_OF_RHYTHMS)
    if windows.n_channels > 1:
        recorded = WEIGHTS_OF_RECORDED_CHANNELS if views == "adjacent" else USUAL_WEIGHTS
        return weights_with("covariance", recorded)
    if recordings_are_known(windows, views) and _states_change(preparation, windows, order, views):
        return weights_with("envelopes")
    return all_weights(USUAL_WEIGHTS)


def _whitener(
    preparation: Preparation, request: Request, shares: NDArray[np.float64]
) -> ChannelWhitener | None:
    """Return the step that whitens the channels; None where they are read as they are."""
    windows, order, _, weights, channels = request
    if channels == "recorded" or (channels == "auto" and windows.n_channels < FEWEST_TO_WHITEN):
        return None
    sample = sample_of(order.rows, preparation.seed)
    whitener = whitener_of(windows, sample, preparation.input_layout)
    if channels == "whitened":
        return whitener
    if not share_most(whitener):
        return None
    if isinstance(weights, str):
        of_hearts = bool(shares[BLOCKS.index("rhythm")])
    else:
        of_hearts = _rhythm_lasts(preparation, windows, order)
    return None if of_hearts else whitener


def _rhythm_lasts(preparation: Preparation, windows: CheckedWindows, order: Ordered) -> bool:
    """Tell whether the halves of windows predict the rhythm of one another."""
    if len(order.rows) < _LEAST_FOR_RHYTHM:
        return False
    preparation = replace(preparation, block_weights=all_weights(RHYTHM_ALONE), rho=_RHYTHM_RHO)
    # Of a sample, so that no further pass over all windows is needed.
    drawn = np.isin(order.rows, sample_of(order.rows, preparation.seed))
    halves = halves_of(windows, order.some(drawn), recordings_known=False)
    if not halves.parts:
        return False
    return bool(preparation.halves(in_turn, windows, halves).of_blocks["rhythm"] > _RHYTHM_LASTS)


def _states_change(
    preparation: Preparation, windows: CheckedWindows, order: Ordered, views: str
) -> bool:
    """Tell whether envelopes change in recordings, from the windows of some of them."""
    preparation = replace(preparation, block_weights=all_weights(ENVELOPES_ALONE))
    drawn = order.some(sample_of_people(order.person, preparation.seed))
    if views == "halves":
        halves = halves_of(windows, drawn, recordings_known=True)
        if not halves.parts:
            return False
        return kappa_of(preparation.halves(in_turn, windows, halves)) > _MOSTLY_STATES
    if not adjacent(drawn.gap).any():
        return False
    prepared = preparation.adjacent(in_turn, windows, *pairs_of(windows, drawn))
    return kappa_of(prepared) > _MOSTLY_STATES
