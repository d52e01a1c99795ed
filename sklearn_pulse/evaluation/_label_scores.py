"""Scores of a probe on frozen embeddings, for several amounts of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_array, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from .._blas import unshared_products
from .._data._labels import labeled_mask
from .._groups import check_groups, nan_where_masked
from .._inputs._numbers import of_tensor
from .._inputs._stored import take_rows
from .._parameters import check_integer, check_mapping, check_seed, check_share
from .._pipelines import last_step
from ..model_selection import LabeledTestSplit, mask_labels
from ._probe import make_linear_probe


class Split(NamedTuple):
    """Split of the labelled rows, and the training rows that keep their label in each draw."""

    train: NDArray[np.intp]  # positions among the labelled rows
    test: NDArray[np.intp]
    draws: list[list[NDArray[np.bool_]]]  # masks of `train`, by draw, then by amount


class Amounts(NamedTuple):
    """Ascending amounts of labels: shares of the labels, or numbers of labelled groups."""

    values: NDArray[Any]
    of_groups: bool  # whether the values count labelled groups of each class

    def keep(
        self, codes: NDArray[np.intp], groups: NDArray[Any] | None, seed: int
    ) -> list[NDArray[np.bool_]]:
        """Return the rows that keep their label, for each amount."""
        # One seed for all amounts, so that a larger amount only adds labels.
        if self.of_groups:
            masked = [
                mask_labels(codes, None, seed, n_groups=n_groups, groups=groups)
                for n_groups in self.values.tolist()
            ]
        else:
            masked = [mask_labels(codes, share, seed) for share in self.values.tolist()]
        return [labels != -1 for labels in masked]


def label_efficiency_scores(
    estimators: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None,
    cv: Any,
    fractions: Sequence[float] | None,
    n_groups: Sequence[int] | None,
    n_draws: int,
    probe: Any,
    scoring: Any,
    random_state: Any,
    unlabeled_label: int | str | None,
) -> tuple[dict[str, NDArray[np.float64]], float | None]:
    """Fit probes on a part of the labels and score them on held-out groups.

    Parameters
    ----------
    estimators : dict of str to transformer or array-like
        Fitted transformers, or embeddings of `X`, by method name.
    X : array-like of shape (n_samples, n_timesteps, n_channels) or None
        Windows; None if embeddings of all methods are passed.
    y : array-like of shape (n_samples,)
        Labels; `unlabeled_label` marks unlabelled windows.
    groups : array-like of shape (n_samples,) or None
        Recording or subject of each window.
    cv : int, splitter, iterable of (train, test) or None
        Splitter, or the number of folds; None means 5 folds.
    fractions : sequence of float or None
        Shares of the labels, ascending, in (0, 1]; None with `n_groups`.
    n_groups : sequence of int or None
        Numbers of labelled groups of each class, ascending; None with `fractions`.
    n_draws : int
        Number of times that labels are drawn in each split.
    probe : classifier or None
        Classifier of embeddings; None means :func:`make_linear_probe`.
    scoring : str, callable or None
        Scorer; None means the ``score`` of the probe, which is to be the accuracy.
    random_state : int, RandomState instance or None
        Seed of the draws.
    unlabeled_label : int, str or None
        Label of windows without a label; None means that every label is a class.

    Returns
    -------
    scores : dict of str to ndarray of shape (n_amounts, n_splits * n_draws)
        Scores by method name; all draws of one split stand together.
    majority_score : float or None
        Mean score of predicting the most frequent class of the training part, over the splits in
        which this has a score; None if there is none.
    """
    amounts = check_amounts(fractions, n_groups)
    if amounts.of_groups and groups is None:
        raise ValueError(
            "n_groups labels whole groups: pass the group of each window as groups, for example"
            " its subject."
        )
    check_integer("n_draws", n_draws, 1)
    check_seed("random_state", random_state)
    labeled = labeled_mask(y, unlabeled_label, "LabelEfficiencyDisplay")
    if not labeled.any():
        raise ValueError(
            f"All {labeled.size} rows of y are {unlabeled_label!r}, which marks a row without a"
            " label: label some rows of each class."
        )
    X, labeled, _ = indexable(X, labeled, groups)
    groups = check_groups(groups, len(labeled), unit="row")
    probe = make_linear_probe() if probe is None else probe
    scorer = _scorer(probe, scoring)
    rows = np.flatnonzero(labeled)
    embeddings = _embed(estimators, X, rows, len(labeled))
    y_labeled = np.asarray(take_rows(y, rows)).reshape(len(rows))
    classes = np.full(len(labeled), -1)  # numbers: text labels leave no room for -1
    classes[rows] = np.unique(y_labeled, return_inverse=True)[1]
    splits = list(
        _splits(X, classes, groups, _splitter(cv, groups), rows, amounts, n_draws, random_state)
    )
    scores = {}
    for name, Z in embeddings.items():
        with unshared_products(Z.size):
            of_splits = [_scores_of_split(split, Z, y_labeled, probe, scorer) for split in splits]
        scores[name] = np.concatenate(of_splits, axis=1)
    any_embedding = next(iter(embeddings.values()))
    majority = [_majority_score(split, any_embedding, y_labeled, scorer) for split in splits]
    defined = [score for score in majority if not np.isnan(score)]
    return scores, float(np.mean(defined)) if defined else None


def _scorer(probe: Any, scoring: Any) -> Callable[..., float]:
    """Return a scorer, which raises a TypeError if `scoring` gives several scores."""
    model = last_step(probe)
    own = getattr(model, "scoring", None)
    by_accuracy = getattr(type(model), "score", None) is ClassifierMixin.score
    if scoring is None and own is not None and not by_accuracy:
        raise ValueError(
            f"probe scores by its own scoring={own!r}, but the name of the axis and the score of"
            " the majority class would be those of the accuracy: pass the same score as scoring."
        )
    scorer = check_scoring(probe, scoring)

    def one_score(*args: Any) -> float:
        score = scorer(*args)
        if isinstance(score, dict):
            raise TypeError(
                f"scoring must give one score, but gives {', '.join(map(str, score))}: call once"
                " for each scorer, such as PROBE_SCORERS['auroc']."
            )
        return score

    return one_score


def check_amounts(fractions: Any, n_groups: Any) -> Amounts:
    """Return shares of labels or numbers of groups; raise unless one of them is given."""
    if (fractions is None) == (n_groups is None):
        raise ValueError(
            f"fractions={fractions!r} and n_groups={n_groups!r}: pass one of them, the shares of"
            " the labels or the numbers of labelled groups of each class."
        )
    if n_groups is None:
        what = "shares, for example (0.01, 0.1, 1.0)"
        shares = _ascending("fractions", fractions, what, check_share)
        return Amounts(shares.astype(float), of_groups=False)
    whole = partial(check_integer, minimum=1)
    numbers = _ascending("n_groups", n_groups, "numbers, for example (1, 2, 4)", whole)
    return Amounts(numbers.astype(np.intp), of_groups=True)


def _ascending(name: str, given: Any, what: str, check: Callable[..., Any]) -> NDArray[Any]:
    """Return a sequence as an array; raise unless each value passes `check`, and they ascend."""
    values = np.asarray(given)
    if values.ndim != 1 or values.size == 0:
        kind = TypeError if values.ndim == 0 else ValueError
        raise kind(f"{name} must be a sequence of {what}, got {given!r}")
    # NumPy turns a True beside numbers into a number, so the entries of a list are checked.
    for value in given if isinstance(given, list | tuple) else values.tolist():
        check(f"each of {name}", value)
    if (values[1:] <= values[:-1]).any():  # a difference of unsigned numbers is never negative
        raise ValueError(f"{name} must ascend, got {given}: sort them and drop repeats")
    return values


def _embed(
    estimators: Mapping[str, Any], X: Any, rows: NDArray[np.intp], n_samples: int
) -> dict[str, NDArray[Any]]:
    """Return the embeddings of the labelled rows by method name, each computed once."""
    content = "fitted transformers or embeddings by name"
    check_mapping("estimators", estimators, content, "{'PULSE': transformer}")
    embeddings = {}
    for name, estimator in estimators.items():
        if isinstance(estimator, type):
            raise TypeError(f"estimators[{name!r}] is a class: pass a fitted instance of it")
        if hasattr(estimator, "fit"):  # not transform, which a data frame has too
            _check_frozen(name, estimator, X)
            embedding = estimator.transform(take_rows(X, rows))
        else:
            embedding = np.asarray(nan_where_masked(of_tensor(estimator)))
            if not embedding.ndim:
                raise TypeError(
                    f"estimators[{name!r}]={estimator!r} is neither a transformer nor embeddings"
                )
            if len(embedding) != n_samples:
                raise ValueError(
                    f"estimators[{name!r}] holds {len(embedding)} embeddings for {n_samples}"
                    " labels in y: pass one embedding per sample"
                )
            embedding = embedding[rows]
        embeddings[name] = check_array(embedding, input_name=f"the embedding of {name!r}")
    return embeddings


def _check_frozen(name: str, estimator: Any, X: Any) -> None:
    """Raise unless the estimator is a fitted transformer and has windows to transform."""
    if not hasattr(estimator, "transform"):
        raise TypeError(
            f"estimators[{name!r}] has no transform: pass a fitted transformer; if it is a pipeline"
            " that ends in a classifier, pass its other steps, pipeline[:-1]"
        )
    if X is None:
        raise ValueError(
            f"X is None, so estimators[{name!r}] has nothing to transform: pass X, or embeddings"
            " instead of transformers"
        )
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise NotFittedError(
            f"estimators[{name!r}] is not fitted, and encoders are not fitted here: fit it first,"
            " on windows of recordings that no test fold holds"
        ) from error


def _splitter(cv: Any, groups: Any) -> LabeledTestSplit:
    """Return the splitter; folds keep groups whole if groups are passed."""
    cv = 5 if cv is None else cv
    if isinstance(cv, Integral) and groups is not None:
        cv = GroupKFold(int(cv))
    return LabeledTestSplit(cv)


def _splits(
    X: Any,
    classes: NDArray[np.intp],
    groups: NDArray[Any] | None,
    cv: LabeledTestSplit,
    rows: NDArray[np.intp],
    amounts: Amounts,
    n_draws: int,
    random_state: Any,
) -> Iterator[Split]:
    """Yield the splits, with labels drawn on each training part, the same for all methods."""
    rng = check_random_state(random_state)
    position = np.full(len(classes), -1)
    position[rows] = np.arange(len(rows))
    for number, (train, test) in enumerate(cv.split(classes if X is None else X, classes, groups)):
        train = position[train]
        train = train[train >= 0]  # the probe learns from labelled rows
        if train.size == 0:
            raise ValueError(
                f"The training part of split {number} holds no labelled row: label more rows, or"
                " pass another cv."
            )
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_draws).tolist()
        of_train = None if groups is None else groups[rows[train]]
        draws = [amounts.keep(classes[rows[train]], of_train, seed) for seed in seeds]
        yield Split(train, position[test], draws)


def _scores_of_split(
    split: Split, Z: NDArray[Any], y: NDArray[Any], probe: Any, scorer: Callable[..., float]
) -> NDArray[np.float64]:
    """Return scores of shape (n_amounts, n_draws)."""
    scores = np.empty((len(split.draws[0]), len(split.draws)))
    test = Z[split.test], y[split.test]
    known: dict[bytes, float] = {}  # draws of the same rows, such as all rows, are scored once
    for draw, kept_by_amount in enumerate(split.draws):
        for i, kept in enumerate(kept_by_amount):
            key = kept.tobytes()
            if key not in known:
                train = split.train[kept]
                known[key] = scorer(clone(probe).fit(Z[train], y[train]), *test)
            scores[i, draw] = known[key]
    return scores


def _majority_score(
    split: Split, Z: NDArray[Any], y: NDArray[Any], scorer: Callable[..., float]
) -> float:
    """Return the score of predicting the most frequent class of the training part."""
    majority = DummyClassifier(strategy="prior").fit(Z[split.train], y[split.train])
    return scorer(majority, Z[split.test], y[split.test])
