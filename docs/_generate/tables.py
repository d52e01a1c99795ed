"""What is written from the package and from measurements: the table of estimators, the figures."""

from pathlib import Path

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

import sklearn_pulse
from sklearn_pulse import baselines, features

from . import figures, measured

# What speaks for each estimator; an estimator that is missing here is an error.
BEST_FOR = {
    "CrossPredictionTransformer": "few labels, or labels of few people",
    "PulseTransformer": "the published method; reconstructions that can be looked at",
    "PulseOracleTransformer": "how far PULSE is from knowing the pairs",
    "FineTuneClassifier": "classes, where there are enough labels to train a network",
    "FineTuneRegressor": "numbers such as heart rate, with enough labels",
    "RandomEncoderTransformer": "a control: the same network, untrained",
    "MiniRocketTransformer": "many labels; a control that is hard to beat",
    "SupervisedClassifier": "a control: the same network, trained with labels alone",
    "DSVAETransformer": "comparison with the paper",
    "LFADSTransformer": "comparison with the paper",
    "PatchTSTTransformer": "comparison with the paper",
    "REBARTransformer": "comparison with the paper",
    "SimCLRTransformer": "comparison with the paper",
    "SimMTMTransformer": "comparison with the paper; the cheapest training",
    "TS2VecTransformer": "comparison with the paper",
    "TimeMAETransformer": "comparison with the paper",
    "AutocorrelationTransformer": "rhythm, as plain features",
    "CovarianceTransformer": "which channels move together, as plain features",
    "EnvelopeCovarianceTransformer": "how the power of bands changes, as plain features",
    "HydraTransformer": "patterns that come back, as plain features",
    "IntervalQuantileTransformer": "where in the window values lie, as plain features",
    "RandomConvolutionTransformer": "local shapes, as plain features",
    "RhythmTransformer": "regularity of beats or strokes, as plain features",
    "StatisticsTransformer": "a control: moments and band powers of each channel",
}
_COST_ROWS = {
    "PulseTransformer": "PULSE",
    "CrossPredictionTransformer": "cross-prediction",
    "RandomEncoderTransformer": "untrained encoder",
    "MiniRocketTransformer": "MiniRocket",
    "StatisticsTransformer": "channel statistics",
}
_HEADER = (
    "| method | learns from labels | reads recordings | other lengths | missing values"
    " | training, windows/s | embedding, windows/s | best for |"
)


def estimators() -> dict[str, type[BaseEstimator]]:
    """Return the public estimators of windows, by name."""
    found = {}
    for room in (sklearn_pulse, baselines, features):
        for name in room.__all__:
            value = getattr(room, name)
            if isinstance(value, type) and issubclass(value, BaseEstimator):
                found[name] = value
    return found


def estimator_table() -> str:
    """Return the table of all estimators, from their tags, as Markdown."""
    costs = measured.costs()
    lines = [_HEADER, "|---" * (_HEADER.count("|") - 1) + "|"]
    for name, cls in estimators().items():
        tags = get_tags(cls())
        if name not in BEST_FOR:
            raise ValueError(f"docs/_generate/tables.py: BEST_FOR has no entry for {name}.")
        short = name.removesuffix("Transformer").removesuffix("Classifier")
        cost = costs.get(_COST_ROWS.get(name, short), {})
        cells = [
            f"`{name}`",
            _yes(tags.target_tags.required),
            _yes(tags.uses_recordings),
            _yes(tags.variable_length),
            _yes(tags.input_tags.allow_nan),
            cost.get("training, windows/s", ""),
            cost.get("embedding, windows/s", ""),
            BEST_FOR[name],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def write(folder: Path) -> None:
    """Write what changed into a folder that pages include."""
    folder.mkdir(exist_ok=True)
    texts = {
        "estimators.md": estimator_table(),
        "decision.svg": figures.decision(),
        "cost_and_score.svg": figures.cost_and_score(),
    }
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
