"""
Windows of people in random order
=================================

`CrossPredictionTransformer` keeps what predicts the next window of a recording. If trials of a
person come in random order, or if windows were shuffled, the next window says nothing but who was
recorded. Then `views="auto"` lets the halves of each window predict each other.

This script shuffles the windows of each person of the sources of `blocks.py`, and compares the
accuracy of a linear probe (C = 1) on windows of other people: with the true recordings and starts;
in random order with adjacent windows as views; and in random order with `views="auto"`.

    python examples/reproduce/random_order.py --output output/random_order
    python examples/reproduce/random_order.py --sources hindmarsh-rose --alpha 0

It also compares windows of which no recording is known, with their nearest windows and without:

    python examples/reproduce/random_order.py --orders "no recordings" "no recordings, nearest=0"

recordings of which nobody knows who they are of:

    python examples/reproduce/random_order.py --orders "true order" "people unknown" \
        --sources exercises driving

and embeddings of fewer columns:

    python examples/reproduce/random_order.py --orders "true order" --embedding-dim 64

People are divided as in `blocks.py`. The gestures of UWave, of which nobody knows who made them,
are put in random order, twenty to a person, so that both orders are random. Scores that are in the
output folder are not computed again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

import blocks
import numpy as np

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.datasets import fetch_gesture

SOURCES = (
    "har",
    "exercises",
    "driving",
    "wesad",
    "mitbih",
    "hindmarsh-rose",
    "sleep-0",
    "ecg-each-0",
    "uwave",
)


class Order(NamedTuple):
    """What a fit is told of the recordings, and two settings."""

    recordings: str
    views: str = "auto"
    nearest: str | float = "auto"


ORDERS = {
    "true order": Order("true"),
    "people unknown": Order("recordings"),
    "random order, adjacent windows": Order("shuffled", "adjacent"),
    "random order, views='auto'": Order("shuffled"),
    "no recordings": Order("unknown"),
    "no recordings, nearest=0": Order("unknown", nearest=0.0),
}


def load(name, home):
    """Return a source, with windows in float32."""
    if name != "uwave":
        return blocks.load(name, home)
    data = fetch_gesture(home)
    order = np.random.default_rng(0).permutation(len(data.y))
    person = np.arange(len(order)) // 20
    return blocks.Source(
        np.float32(data.X)[order], data.y[order], person, person, np.arange(len(order))
    )


def score(part, order, **settings):
    """Return the accuracy in percent for each amount of labels, and the views that were used."""
    recordings, views, nearest = ORDERS[order]
    train = slice(part.n_train)
    shuffled = np.random.default_rng(0).permutation(part.n_train)
    known = {
        "true": {
            "groups": part.person[train],
            "recording": part.recording,
            "start": part.start,
        },
        "recordings": {"groups": part.recording, "start": part.start},
        "shuffled": {"groups": part.person[train], "start": shuffled},
        "unknown": {},
    }
    given = {"views": views, "nearest": nearest, "random_state": 0} | settings
    cross = CrossPredictionTransformer(**given)
    cross.fit(part.X[train], **known[recordings])
    Z = cross.transform(part.X)
    return {labels: part.probed(Z, amount) for labels, amount in blocks.LABELS.items()} | {
        "views": cross.views_
    }


def table(name, scores):
    """Return the lines of a source: means over its divisions."""
    head = " | ".join(blocks.LABELS)
    lines = [f"| {name} | divisions | views | {head} |", "|---|---|---|" + "---|" * 5]
    for order, of_divisions in scores.items():
        views = ", ".join(sorted({found["views"] for found in of_divisions}))
        means = [np.mean([found[labels] for found in of_divisions]) for labels in blocks.LABELS]
        cells = " | ".join(f"{mean:.1f}" for mean in means)
        lines.append(f"| {order} | {len(of_divisions)} | {views} | {cells} |")
    return "\n".join(lines)


def main():
    """Score the sources in each order, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--output", type=Path, default=Path("output/random_order"))
    several = {"nargs": "+", "action": "extend"}  # an option given twice adds up
    parser.add_argument("--sources", **several, choices=[*blocks.SOURCES, "uwave"])
    parser.add_argument(
        "--orders", **several, choices=ORDERS, metavar="NAME", help=", ".join(map(repr, ORDERS))
    )
    parser.add_argument("--alpha", type=float, help="share of the constant part; default: 'auto'")
    parser.add_argument("--embedding-dim", type=int, help="columns; default: 4,096")
    parser.add_argument("--divisions", type=int, choices=range(1, 6), default=3)
    parser.add_argument("--data-home", type=Path, help="folder of the data sets")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / "scores.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    given = {"alpha": args.alpha, "embedding_dim": args.embedding_dim}
    settings = {name: value for name, value in given.items() if value is not None}
    kind = "".join(f", {name.replace('_', ' ')} {value:g}" for name, value in settings.items())
    for name in dict.fromkeys(args.sources or SOURCES):
        source, scores = load(name, args.data_home), {}
        n_divisions = blocks.SOURCES[name].n_divisions if name in blocks.SOURCES else 5
        for division in range(min(args.divisions, n_divisions)):
            part = blocks.Part.of(name, source, division)
            for order in dict.fromkeys(args.orders or ORDERS):
                key = f"{part.name}, {order}{kind}"
                if key not in known:
                    known[key] = score(part, order, **settings)
                    partial = path.with_name(f"{path.name}.partial")
                    partial.write_text(json.dumps(known, indent=1))
                    partial.replace(path)
                scores.setdefault(order, []).append(known[key])
        print(table(name, scores), end="\n\n", flush=True)


if __name__ == "__main__":
    from _command import exit_status

    sys.exit(exit_status(main))
