"""
HAR: reconstruction and linear probe after a given budget
=========================================================

This script pretrains PULSE with the published settings, validation included, on random windows of
the training recordings, cut as published. It prints

- the validation loss, beside the loss of predicting the training mean of each channel,
- the accuracy of a linear probe on the validation recordings with all, 5 % and 1 % of the labels,
  beside the untrained encoder of the same seed and per-channel statistics.

    python examples/reproduce/har.py --epochs 20 --fraction 0.25 --seed 0
    python examples/reproduce/har.py --epochs 20 --fraction 0.25 --seed 0 --split test
    python examples/reproduce/har.py --budget full --precision bfloat16 --seed 0

`--budget full` is the published training: all 19,106 windows, 100 epochs. Every `--every` epochs
the labelled windows are embedded and probed on the validation recordings; the scores are written
to `curve-<seed>-<settings>.json` beside the checkpoints. An interrupted run resumes when it is
started again. Score the test recordings only once: each time is noted in `test_looks.jsonl` there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch
from skorch.callbacks import Callback

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.datasets import fetch_har
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.model_selection import mask_labels
from sklearn_pulse.windows import random_windows

N_DRAWS = 5
FULL = {"epochs": 100, "fraction": 1.0}  # the published budget


load_har = cache(fetch_har)


class ProbeCurve(Callback):
    """Callback that probes the encoder during training and writes the scores to a file.

    It holds no windows, which would be stored in every checkpoint.

    Parameters
    ----------
    data_home : str or None
        Folder of the data sets, as in `fetch_har`.
    path : str
        JSON file of the scores: epoch to accuracy with all, 5 % and 1 % of the labels.
    every : int
        Number of epochs between two probes.
    """

    def __init__(self, data_home, path, every):
        self.data_home = data_home
        self.path = path
        self.every = every

    def on_epoch_end(self, net, **kwargs):
        """Probe if the number of epochs is a multiple of `every`."""
        epoch = len(net.history)
        if epoch % self.every:
            return
        har, file = load_har(self.data_home), Path(self.path)
        train, val = har.split == "train", har.split == "val"
        curve = json.loads(file.read_text()) if file.exists() else {}
        scores = curve[str(epoch)] = probe_scores(embed(net, har.X), har.y, train, val)
        partial = file.with_name(f"{file.name}.partial")  # which a killed run leaves
        partial.write_text(json.dumps(curve, indent=1))
        partial.replace(file)
        print(f"epoch {epoch}: probe", *(f"{score:.3f}" for score in scores), flush=True)


def embed(net, X):
    """Embed windows in float32 by a net that is still in training."""
    net.module_.eval()
    with torch.inference_mode():
        blocks = torch.from_numpy(np.asarray(X, dtype=np.float32)).split(256)
        rows = [net.module_.encode(block.to(net.device)).cpu() for block in blocks]
    return torch.cat(rows).numpy()


def pretraining_windows(har, part, stride, fraction, seed):
    """Return random windows of the recordings of one part, cut as in the published code."""
    length = presets.windows("pulse", "har")["length"]
    recordings = [
        recording
        for recording, split in zip(har.recordings, har.recording_split, strict=True)
        if split == part
    ]
    return random_windows(recordings, length, stride, fraction, random_state=seed).X


def validation_losses(pulse, X_train, X_val):
    """Return the losses of the model and of each channel's training mean, on the same crops."""
    mean = torch.from_numpy(X_train.mean((0, 1)))
    net, objective = pulse.net_, pulse.net_.module_
    losses = []
    with objective.eval().seeded(net.seed), torch.inference_mode():
        for batch in torch.from_numpy(X_val).to(net.device).split(pulse.batch_size):
            passes = objective.reconstruct(batch)
            inside = torch.arange(len(passes.target), device=batch.device).view(-1, 1, 1)
            inside = inside < batch.shape[1] - 1 - passes.starts
            constant = passes._replace(prediction=mean.to(batch.device) * inside.unsqueeze(-1))
            losses.append(
                [objective.total(objective.pass_losses(p)).item() for p in (passes, constant)]
            )
    return np.mean(losses, axis=0)


def statistics(X):
    """Return the mean, standard deviation, minimum and maximum of each channel."""
    return np.concatenate([X.mean(1), X.std(1), X.min(1), X.max(1)], axis=1)


def probe_scores(Z, y, train, test):
    """Return the accuracy with all labels, and its mean over draws of 5 % and 1 % of the labels."""
    scores = [make_linear_probe().fit(Z[train], y[train]).score(Z[test], y[test])]
    for fraction in (0.05, 0.01):
        drawn = []
        for draw in range(N_DRAWS):
            labels = mask_labels(y[train], fraction, random_state=draw)
            few = labels != -1
            probe = make_linear_probe().fit(Z[train][few], labels[few])
            drawn.append(probe.score(Z[test], y[test]))
        scores.append(float(np.mean(drawn)))
    return scores


def log_look(path, record):
    """Add a line to the log of the looks at the test recordings; return how many there are."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with path.open("a") as log:
        log.write(json.dumps({"time": now, **record}) + "\n")
    return len(path.read_text().splitlines())


def main():
    """Train and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument(
        "--budget", choices=("full",), help="number of epochs and windows as published"
    )
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument(
        "--fraction", type=float, default=0.25, help="fraction of the training windows"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=("val", "test"), default="val")
    parser.add_argument("--data-home", default=None)
    parser.add_argument("--checkpoints", default="output/har")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument(
        "--theta-dropout",
        choices=("step", "sequence"),
        default="step",
        help="a dropout mask for each step of the decoder, or one for the whole crop",
    )
    parser.add_argument("--every", type=int, default=10, help="epochs between two probes")
    args = parser.parse_args()
    if args.budget == "full":
        parser.set_defaults(**FULL)
        args = parser.parse_args()
    if args.every < 1:  # else the first epoch ends in a division by zero
        parser.error(f"argument --every: must be at least 1, got {args.every}")
    settings = f"{args.fraction:g}-{args.epochs}-{args.precision}-{args.theta_dropout}"
    curve = Path(args.checkpoints, f"curve-{args.seed}-{settings}.json")
    curve.parent.mkdir(parents=True, exist_ok=True)

    har = load_har(args.data_home)
    cut = presets.windows("pulse", "har")
    X_train = pretraining_windows(har, "train", cut["stride"], args.fraction, args.seed)
    X_val = pretraining_windows(har, "val", cut["stride_val"], 1.0, args.seed)
    pulse = PulseTransformer(
        **presets.get("pulse", "har", published=True) | {"max_epochs": args.epochs},
        random_state=args.seed,
        checkpoint_dir=args.checkpoints,
        num_threads=args.threads,
        precision=args.precision,
        theta_dropout=args.theta_dropout,
        callbacks=[ProbeCurve(args.data_home, str(curve), args.every)],
        verbose=1,
    )
    pulse.fit(X_train, X_val=X_val)
    untrained = RandomEncoderTransformer(random_state=args.seed, num_threads=args.threads)
    untrained.fit(X_train)

    print(f"\n{len(X_train)} training windows, {args.epochs} epochs, seed {args.seed}")
    model, constant = validation_losses(pulse, X_train, X_val)
    print(f"weights of epoch {pulse.selected_epoch_ or args.epochs}")
    print(f"validation loss {model:.4f}, of the training mean of each channel {constant:.4f}")

    if args.split == "test":
        record = {"seed": args.seed, "settings": settings}
        n_looks = log_look(Path(args.checkpoints, "test_looks.jsonl"), record)
        print(f"\ntest recordings have been scored {n_looks} times so far")
    train, test = har.split == "train", har.split == args.split
    print(f"\nlinear probe on the {args.split} recordings, accuracy")
    print(f"{'':20s}{'100 %':>8s}{'5 %':>8s}{'1 %':>8s}")
    for name, Z in {
        "PULSE": pulse.transform(har.X),
        "untrained encoder": untrained.transform(har.X),
        "channel statistics": statistics(har.X),
    }.items():
        scores = probe_scores(Z, har.y, train, test)
        print(f"{name:20s}" + "".join(f"{score:8.3f}" for score in scores))


if __name__ == "__main__":
    from _command import exit_status

    sys.exit(exit_status(main))
