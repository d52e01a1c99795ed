"""
What training adds to the closed form: one ingredient at a time
===============================================================

The closed form (`CrossPredictionTransformer`) embeds windows without training a network. This
script trains members of the PULSE family (a system encoder and a dynamics decoder) that differ from
one another in one ingredient each: what the decoder reads, which window it reconstructs, what else
the embedding must predict, how the encoder pools, and whether the closed form is part of the
embedding. All rows have the same number of updates, time steps per update and crops.

    python examples/reproduce/ingredients.py --output output/ingredients.json
    python examples/reproduce/ingredients.py --sources har --rows PULSE "next window" --seeds 0 1

The script prints, for each source, seed and row, and writes to the JSON file,

- the accuracy of a linear probe on recordings that were held out, with all, 5 % and 1 % of the
  labels (five draws),
- R2: the share of the closed form of the next window that a ridge regression on the embedding
  predicts on the held-out recordings, without labels,
- the error of the decoder on the held-out recordings, as a share of the signal's variance,
- the reliance U of the decoder on each of its inputs: the relative increase of that error when
  the input is exchanged between windows. An input that carries the waveform past the embedding
  has a large U, and leaves a small U to the embedding,
- the accuracy of the sum of the closed form and the embedding, where the embedding has a tenth of
  the variance.

Rows that are in the JSON file are not computed again, so an interrupted run resumes. The test
recordings are never read.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import StratifiedGroupKFold
from torch import nn

from sklearn_pulse import CrossPredictionTransformer, presets
from sklearn_pulse.datasets import fetch_har, fetch_mitbih_af, fetch_wesad
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import AutocorrelationTransformer
from sklearn_pulse.model_selection import mask_labels
from sklearn_pulse.networks import GRUDecoder
from sklearn_pulse.objectives import CrossReconstruction

N_DRAWS = 5  # draws of few labels
N_FOLDS = 4  # group folds of wesad and mitbih
SHARE = 0.1  # of the variance that the learnt embedding gets beside the closed form
WIDTH = 1024  # columns of the closed form, a quarter of the default for a faster probe
N_TARGETS = 256  # principal components of the closed form that are predicted
STEPS = 64 * 128  # time steps in an update: 64 windows of HAR, fewer longer windows
FOUR_BLOCKS = (0.1, 0.05, 0.6, 0.25)  # of the closed form, with which docs/training.md was made
BLOCK = 128  # windows that are embedded at once


# %%
# Sources
# -------


class Source(NamedTuple):
    """Windows of the training and validation recordings, in torch where networks read them.

    `theta` is the closed form of each window, fitted on the training recordings and scaled to
    total variance 1; `target` its principal components. Row k of `pairs` holds a window and a
    window next to it.
    """

    name: str
    X: torch.Tensor
    y: np.ndarray
    train: np.ndarray
    theta: torch.Tensor
    target: torch.Tensor
    rhythm: torch.Tensor
    pairs: torch.Tensor
    preset: dict

    def pairs_of(self, part):
        """Return the pairs whose windows belong to a part."""
        return self.pairs[torch.from_numpy(part)[self.pairs[:, 0]]]


SOURCES = {
    "har": partial(fetch_har, group="recording"),
    "mitbih": fetch_mitbih_af,
    "wesad": fetch_wesad,
}


def load(name, home):
    """Return the windows, and the folds: pairs of the fold's name and its training windows."""
    data = SOURCES[name](home)
    kept = np.flatnonzero(data.split != "test")
    X, y = np.asarray(data.X, dtype=np.float32)[kept], data.y[kept]
    recording = np.unique(data.recording[kept], return_inverse=True)[1]
    start = data.start[kept]
    if name == "har":
        return X, y, recording, start, {"har": data.split[kept] == "train"}
    if name == "mitbih":  # 60 windows from the middle of each recording
        chosen = np.concatenate([_middle(np.flatnonzero(recording == r)) for r in set(recording)])
        chosen = np.sort(chosen)
        X, y, recording, start = X[chosen], y[chosen], recording[chosen], start[chosen]
    folds = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y, recording)
    parts = {}
    for k, (train, _) in enumerate(folds):
        parts[f"{name} {k}"] = np.isin(np.arange(len(X)), train)
    return X, y, recording, start, parts


def _middle(index):
    first = max(0, (len(index) - 60) // 2)
    return index[first : first + 60]


def neighbours(recording, start):
    """Return the pairs of adjacent windows, in both orders."""
    order = np.lexsort((start, recording))
    same = np.diff(recording[order]) == 0
    steps = np.diff(start[order])
    near = same & (steps <= 1.5 * np.median(steps[same]))
    pairs = np.stack([order[:-1][near], order[1:][near]], axis=1)
    return torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]]))


def closed_form(file, X, recording, start, train):
    """Fit the closed form on the training windows and embed all windows, or read the result."""
    if not file.exists():
        closed = CrossPredictionTransformer(
            embedding_dim=WIDTH, block_weights=FOUR_BLOCKS, random_state=0
        )
        closed.fit(X[train], groups=recording[train], start=start[train])
        partial = file.with_name(f"{file.stem}.partial.npy")  # which a killed run leaves
        np.save(partial, scaled(closed.transform(X), train))
        partial.replace(file)
    return np.load(file)


def prepare(name, X, y, recording, start, train, folder):
    """Compute the closed form and what networks may predict."""
    file = Path(folder, f"closed-form-{name.replace(' ', '-')}.npy")
    theta = closed_form(file, X, recording, start, train)
    _, values, axes = np.linalg.svd(theta[train], full_matrices=False)
    target = theta @ axes[: min(N_TARGETS, int((values > 1e-4 * values[0]).sum()))].T
    rhythm = AutocorrelationTransformer().fit(X[train]).transform(X)
    rhythm = (rhythm - rhythm[train].mean(0)) / rhythm[train].std()
    X = (X - X[train].mean((0, 1))) / X[train].std((0, 1)) if name.startswith("wesad") else X
    preset = presets.get("pulse", {"h": "har", "w": "ppg", "m": "ecg"}[name[0]])
    for other in ("lr", "batch_size", "gru_num_layers"):  # the same for all sources
        preset.pop(other, None)
    tensors = (torch.from_numpy(np.ascontiguousarray(v)) for v in (theta, target, rhythm))
    pairs = neighbours(recording, start)
    together = train[pairs[:, 0]] == train[pairs[:, 1]]
    return Source(name, torch.from_numpy(X), y, train, *tensors, pairs[together], preset)


def scaled(Z, train):
    """Centre an embedding and scale it to total variance 1 on the training windows."""
    Z = Z - Z[train].mean(0)
    return (Z / np.sqrt(Z[train].var(0).sum())).astype(np.float32)


# %%
# Ingredients
# -----------


@dataclass(frozen=True)
class Ingredients:
    """What a row trains; the defaults are PULSE's, without a time-varying drive.

    Parameters
    ----------
    updates : int
        Number of updates; None means the number of the run.
    next_window : bool
        Whether the decoder reconstructs the next window instead of the window itself.
    time_varying : bool
        Whether the decoder reads the drive that varies in time.
    initial : bool
        Whether the decoder reads the initial state of the window that it reconstructs.
    reconstruct : float
        Weight of the reconstruction.
    spectral : float
        Weight of the distance of log magnitudes in four short-time spectra.
    predict : {"", "own closed form", "closed form", "rest", "rhythm"}
        What a linear map of the embedding predicts: the closed form of the window itself; or of the
        next window the closed form, what the best linear map of this window's closed form misses of
        it, or the autocorrelation.
    standardise : bool
        Whether the encoder reads standardised windows, with mean, log spread and log mean step
        joined to the embedding.
    rich_pooling : bool
        Whether the encoder pools by maximum, mean, spread and share of positive values, and by the
        mean in four segments.
    closed_form : {"", "joined", "alone"}
        Whether the decoder's embedding is the closed form joined to the learnt embedding, whose
        gate starts at `gate`, or the closed form alone.
    gate : float
        Gate of the learnt embedding at the start.
    params : dict
        Parameters of PulseTransformer that differ from the preset of the source.
    """

    updates: int | None = None
    next_window: bool = False
    time_varying: bool = False
    initial: bool = True
    reconstruct: float = 1.0
    spectral: float = 0.0
    predict: str = ""
    standardise: bool = False
    rich_pooling: bool = False
    closed_form: str = ""
    gate: float = 0.0
    params: dict = field(default_factory=dict)

    @property
    def needs_pairs(self):
        """Whether the row reads the next window."""
        return self.next_window or self.predict in ("closed form", "rest", "rhythm")


NEXT = Ingredients(next_window=True)
NO_DECODER = Ingredients(reconstruct=0.0)
ROWS = {
    "untrained": Ingredients(updates=0, time_varying=True),
    "PULSE": Ingredients(time_varying=True),
    "no time-varying drive": Ingredients(),
    "next window, with drive": replace(NEXT, time_varying=True),
    "next window": NEXT,
    "next window, no initial state": replace(NEXT, initial=False),
    "closed form predicted": replace(NO_DECODER, predict="closed form"),
    "closed form predicted, next window": replace(NEXT, predict="closed form"),
    "own closed form predicted": Ingredients(predict="own closed form"),
    "own closed form predicted, no decoder": replace(NO_DECODER, predict="own closed form"),
    "own closed form predicted, rich pooling": Ingredients(
        predict="own closed form", rich_pooling=True
    ),
    "rest predicted": replace(NO_DECODER, predict="rest"),
    "rhythm predicted": replace(NO_DECODER, predict="rhythm"),
    "spectra, next window": replace(NEXT, reconstruct=0.1, spectral=1.0),
    "standardised": Ingredients(standardise=True),
    "rich pooling": Ingredients(rich_pooling=True),
    "decoder on the closed form": replace(NEXT, closed_form="alone"),
    "gate from 0": replace(NEXT, closed_form="joined"),
    "gate from 1": replace(NEXT, closed_form="joined", gate=1.0),
    "mean pooling": Ingredients(params={"pooling": "mean"}),
    "mean pooling, untrained": Ingredients(updates=0, params={"pooling": "mean"}),
    "wide": Ingredients(params={"embedding_dim": 1280}),
    "wide, untrained": Ingredients(updates=0, params={"embedding_dim": 1280}),
    "wide, mean pooling": Ingredients(params={"embedding_dim": 1280, "pooling": "mean"}),
}


class Member(CrossReconstruction):
    """Member of the PULSE family with some ingredients."""

    def __init__(self, source, row, seed):
        n_channels = source.X.shape[2]
        params = {"n_crops": 1, "theta_dropout": "sequence"} | source.preset | row.params
        super().__init__(n_channels, **params, time_varying_dim=int(row.time_varying), seed=seed)
        width = self.encoder.embedding_dim
        self.row = row
        if row.rich_pooling:
            width = 8 * width
        if row.standardise:
            width += 3 * n_channels
        self.learnt_dim = width
        if row.closed_form:
            width += source.target.shape[1]
        self.decoder = GRUDecoder(width + int(row.time_varying), n_channels)
        self.gate = nn.Parameter(torch.tensor(row.gate))
        if row.predict:
            targets = source.rhythm if row.predict == "rhythm" else source.target
            self.head = nn.Linear(self.learnt_dim, targets.shape[1])
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def learn(self, x):
        """Return the learnt embedding and the encoded steps of windows."""
        scale = []
        if self.row.standardise:
            mean, spread = x.mean(1), x.std(1) + 1e-3
            scale = [mean, spread.log(), (x.diff(dim=1).abs().mean(1) + 1e-4).log()]
            x = (x - mean.unsqueeze(1)) / spread.unsqueeze(1)
        steps = self.encoder.encode_steps(x)
        if not self.row.rich_pooling:
            return torch.cat([self.encoder.pool(steps), *scale], 1), steps
        pooled = [steps.amax(1), steps.mean(1), steps.std(1), torch.sigmoid(4 * steps).mean(1)]
        pooled += [segment.mean(1) for segment in steps.tensor_split(4, dim=1)]
        return torch.cat(pooled, 1), steps

    def system(self, source, index, learnt):
        """Return the embedding that the decoder reads."""
        if not self.row.closed_form:
            return learnt
        closed = source.target[index] * closed_scale(source)
        gate = self.gate if self.row.closed_form == "joined" else torch.zeros(())
        return torch.cat([closed, gate * learnt], 1)

    def losses(self, source, anchor, partner):
        """Return the terms of the loss of some windows and their partners."""
        learnt, steps = self.learn(source.X[anchor])
        terms = []
        if self.row.predict:
            missed = self.head(learnt) - predicted(source, self.row, anchor, partner)
            terms.append(missed.square().sum(1).mean())
        if self.row.reconstruct:
            target = partner if self.row.next_window else anchor
            theta = self.system(source, anchor, learnt)
            passes = self.decode(source, theta, steps, target)
            terms.append(self.row.reconstruct * self.total(self.pass_losses(passes)))
            if self.row.spectral:
                terms.append(self.row.spectral * spectral_distance(passes))
        return sum(terms)

    def decode(self, source, theta, steps, target, starts=None, exchange=None):
        """Reconstruct windows; `exchange` is the name of an input and a permutation of it."""
        x = source.X[target]
        if self.time_varying is None:
            drive = steps[..., :0]
        else:
            if self.row.next_window:
                _, steps = self.learn(x)
            drive = self.time_varying(steps)
        starts = self._draw_starts(x, None) if starts is None else starts
        starts = torch.cat([starts, torch.zeros_like(starts[:1])])
        condition = self.initial_condition.at(starts, x) * float(self.row.initial)
        if exchange is not None:
            name, order = exchange
            theta = theta[order] if name == "embedding" else theta
            drive = drive[order] if name == "time-varying drive" else drive
            condition = condition[:, order] if name == "initial state" else condition
        return self._run_passes(theta, drive, condition, starts, x, None)


def closed_scale(source):
    """Return the factor that gives the closed form the scale of a learnt embedding."""
    return np.sqrt(source.target.shape[1])


def predicted(source, row, anchor, partner):
    """Return what the embedding must predict of the partner."""
    if row.predict == "rhythm":
        return source.rhythm[partner] / np.sqrt(source.rhythm.shape[1])
    if row.predict == "own closed form":
        return source.target[anchor]
    if row.predict == "closed form":
        return source.target[partner]
    return source.target[partner] - linear_prediction(source)[anchor]


_PREDICTIONS: dict[str, torch.Tensor] = {}


def linear_prediction(source):
    """Return what the closed form of each window predicts of the next window's."""
    if source.name not in _PREDICTIONS:
        i, j = source.pairs_of(source.train).T
        ridge = Ridge(1e-4 * len(i), fit_intercept=False).fit(source.target[i], source.target[j])
        prediction = ridge.predict(source.target).astype(np.float32)
        _PREDICTIONS[source.name] = torch.from_numpy(prediction)
    return _PREDICTIONS[source.name]


def spectral_distance(passes):
    """Return the mean distance of log magnitudes of the full windows in four resolutions."""
    distance = 0.0
    for size in (16, 32, 64, 128):
        if size > len(passes.target):
            continue
        logs = []
        for signal in (passes.prediction[:, -1], passes.target[:, -1]):
            series = signal.permute(1, 2, 0).flatten(0, 1)  # (batch * n_channels, n_timesteps)
            window = torch.hann_window(size)
            spectrum = torch.stft(
                series, size, size // 4, window=window, center=False, return_complex=True
            )
            logs.append((spectrum.abs() + 1e-2).log())
        distance = distance + (logs[0] - logs[1]).abs().mean()
    return distance


def train(source, row, seed, updates):
    """Train a member of the family and return it."""
    torch.manual_seed(seed)
    member = Member(source, row, seed)
    updates = updates if row.updates is None else row.updates
    if not updates:
        return member.eval()
    optimiser = torch.optim.AdamW(member.parameters(), 1e-3, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-3, updates)
    generator = torch.Generator().manual_seed(seed)
    windows = torch.from_numpy(np.flatnonzero(source.train))
    pairs = source.pairs_of(source.train) if row.needs_pairs else torch.stack([windows] * 2, 1)
    left, batch = pairs[:0], STEPS // source.X.shape[1]
    for _ in range(updates):
        if len(left) < batch:
            left = pairs[torch.randperm(len(pairs), generator=generator)]
        (anchor, partner), left = left[:batch].T, left[batch:]
        optimiser.zero_grad()
        member.losses(source, anchor, partner).backward()
        nn.utils.clip_grad_value_(member.parameters(), 5.0)
        optimiser.step()
        schedule.step()
    return member.eval()


# %%
# Scores
# ------


@torch.inference_mode()
def embed(source, member):
    """Embed all windows by the learnt part of a member."""
    return torch.cat([member.learn(x)[0] for x in source.X.split(BLOCK)]).numpy()


def accuracies(source, Z):
    """Return the accuracy in percent with all, 5 % and 1 % of the labels."""
    y, part = source.y[source.train], source.train
    scores = [100 * make_linear_probe().fit(Z[part], y).score(Z[~part], source.y[~part])]
    for fraction in (0.05, 0.01):
        drawn = []
        for draw in range(N_DRAWS):
            labels = mask_labels(y, fraction, random_state=draw)
            few = labels != -1
            probe = make_linear_probe().fit(Z[part][few], labels[few])
            drawn.append(100 * probe.score(Z[~part], source.y[~part]))
        scores.append(float(np.mean(drawn)))
    return scores


def cross_view_r2(source, Z):
    """Return the best R2, over four ridges, of the next window's closed form, held out."""
    Z = scaled(Z, source.train).astype(np.float64)
    (i, j), (k, m) = source.pairs_of(source.train).T, source.pairs_of(~source.train).T
    target = source.target.numpy().astype(np.float64)
    return max(
        r2_score(
            target[m],
            Ridge(rho * len(i)).fit(Z[i], target[j]).predict(Z[k]),
            multioutput="variance_weighted",
        )
        for rho in (1e-5, 1e-4, 1e-3, 1e-2)
    )


@torch.inference_mode()
def reliance(source, member):
    """Return the decoder's error as a share of the variance, and U of each input."""
    row, generator = member.row, torch.Generator().manual_seed(0)
    held_out = torch.from_numpy(np.flatnonzero(~source.train))
    pairs = source.pairs_of(~source.train) if row.next_window else torch.stack([held_out] * 2, 1)
    pairs = pairs[torch.randperm(len(pairs), generator=generator)[:512]]
    n_timesteps = source.X.shape[1]
    names = ["", "embedding", "time-varying drive", "initial state"]
    errors = dict.fromkeys(names, 0.0)
    for anchor, target in (block.T for block in pairs.split(BLOCK)):
        learnt, steps = member.learn(source.X[anchor])
        theta = member.system(source, anchor, learnt)
        order = torch.randperm(len(anchor), generator=generator)
        starts = torch.randint(n_timesteps // 2 - 1, (1, len(anchor)), generator=generator)
        for name in names:
            passes = member.decode(source, theta, steps, target, starts, (name, order))
            loss = member.total(member.pass_losses(passes))
            errors[name] += float(loss) * len(anchor) / len(pairs)
    X = source.X
    mean = X[torch.from_numpy(source.train)].mean((0, 1))
    variance = float((X[pairs[:, 1]] - mean).square().mean())
    error = errors.pop("")
    return error / variance, {name: changed / error - 1 for name, changed in errors.items()}


def joined(source, member, Z):
    """Return the sum of the closed form and the learnt embedding, with the gate that was learnt."""
    variance = float(member.gate.detach()) ** 2 * Z[source.train].var(0).sum()
    return combined(source, Z, variance / (variance + closed_scale(source) ** 2))


def combined(source, Z, share):
    """Return the sum of the closed form and an embedding, which gets a share of the variance."""
    closed, learnt = source.theta.numpy(), scaled(Z, source.train)
    sizes = learnt.shape[1], closed.shape[1]
    draws = np.random.RandomState(0).normal(size=(max(sizes), min(sizes)))
    rotation = np.linalg.qr(draws)[0].astype(np.float32)  # orthonormal on its narrow side
    rotation = rotation if sizes[0] > sizes[1] else rotation.T
    return np.sqrt(1 - share) * closed + np.sqrt(share) * (learnt @ rotation)


def measure(source, row, seed, updates):
    """Train a row and return its scores."""
    started = time.perf_counter()
    member = train(source, row, seed, updates)
    scores = {"seconds": time.perf_counter() - started}
    Z = embed(source, member)
    if row.closed_form:
        Z = joined(source, member, Z)
    scores["accuracy"] = accuracies(source, Z)
    scores["r2"] = cross_view_r2(source, Z)
    if row.reconstruct:
        scores["error"], scores["reliance"] = reliance(source, member)
    if row.closed_form:
        scores["gate"] = float(member.gate.detach())
    else:
        scores["beside closed form"] = accuracies(source, combined(source, Z, SHARE))
    return scores


# %%
# The table
# ---------


def line(name, seed, scores):
    """Return a row of the table as text."""
    cells = [f"{name:36s}{seed:>3}", *(f"{value:6.1f}" for value in scores["accuracy"])]
    cells.append(f"  R2 {scores['r2']:.3f}")
    if "beside closed form" in scores:
        values = scores["beside closed form"]
        cells.append("  beside:" + "".join(f"{value:6.1f}" for value in values))
    if "error" in scores:
        cells.append(f"  error {scores['error']:.3f}  U")
        cells += [f"{name[:4]} {value:.2f}" for name, value in scores["reliance"].items()]
    if "gate" in scores:
        cells.append(f"  gate {scores['gate']:.3f}")
    return " ".join([*cells, f"  {scores.get('seconds', 0):.0f} s"])


def main():
    """Train every row and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    several = {"nargs": "+", "action": "extend"}  # an option given twice adds up
    parser.add_argument("--sources", **several, choices=SOURCES)
    parser.add_argument(
        "--folds",
        type=int,
        choices=range(1, N_FOLDS + 1),
        default=N_FOLDS,
        help="group folds of wesad and mitbih",
    )
    parser.add_argument(
        "--rows", **several, choices=list(ROWS), metavar="NAME", help=", ".join(map(repr, ROWS))
    )
    parser.add_argument("--seeds", **several, type=int, help="default: 0")
    parser.add_argument("--updates", type=int, default=100, help="updates of 8,192 time steps each")
    parser.add_argument("--output", default="output/ingredients.json")
    parser.add_argument("--data-home", default=None)
    args = parser.parse_args()
    if args.updates < 1:
        parser.error(f"argument --updates: must be at least 1, got {args.updates}")
    path = Path(args.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(path.read_text()) if path.exists() else {}
    rows, seeds = dict.fromkeys(args.rows or ROWS), dict.fromkeys(args.seeds or [0])
    for name in dict.fromkeys(args.sources or SOURCES):
        *arrays, folds = load(name, args.data_home)
        for fold, part in list(folds.items())[: args.folds]:
            source = prepare(fold, *arrays, part, path.parent)
            print(f"\n{fold}: {part.sum()} training windows, {(~part).sum()} held out", flush=True)
            keys = [("closed form", 0)] + [(row, seed) for seed in seeds for row in rows]
            for row, seed in keys:
                key = f"{fold} | {row} | {seed} | {args.updates}"
                if key not in results:
                    if row == "closed form":
                        theta = source.theta.numpy()
                        scores = {"accuracy": accuracies(source, theta)}
                        scores["r2"] = cross_view_r2(source, theta)
                    else:
                        scores = measure(source, ROWS[row], seed, args.updates)
                    results[key] = scores
                    partial = path.with_name(f"{path.name}.partial")
                    partial.write_text(json.dumps(results, indent=1))
                    partial.replace(path)
                print(line(row, seed, results[key]), flush=True)


if __name__ == "__main__":
    from _command import exit_status

    sys.exit(exit_status(main))
