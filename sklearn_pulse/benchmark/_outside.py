"""Estimators of the user: from pairs of a name and a transformer to rows of the tables."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from ._digest import digest
from ._methods import Method, all_methods

PREFIX = "outside-"  # of the names of these methods
_NAME = re.compile(r"\w[\w .,=()+-]{0,59}", re.ASCII)  # a part of the names of files


@dataclass(frozen=True)
class OutsideMethod(Method):
    """Row of an estimator of the user, which is cloned for each run and trains as it likes.

    Its name ends in a digest of the estimator, so that results of another estimator, or of other
    parameters, are those of another method.

    Parameters
    ----------
    estimator : estimator, default=None
        The transformer.
    not_reused : str, default=""
        Why finished runs are not reused; empty if they are.
    """

    estimator: Any = None
    not_reused: str = ""

    @property
    def is_trained(self) -> bool:
        """Whether the benchmark pre-trains the transformer, within the limits of the budget."""
        return False

    def build(self, settings: dict[str, Any], seed: int, **execution: Any) -> Any:
        """Return a clone whose random states are the seed; its other parameters stay."""
        return _seeded(clone(self.estimator), seed)

    def parameters(self, settings: dict[str, Any], seed: int) -> dict[str, str]:
        """Return nothing, since the name of the method ends in a digest of the parameters."""
        return {}


def is_outside(method: str) -> bool:
    """Return whether a method is an estimator of the user."""
    return method.startswith(PREFIX)


def title_of(method: str) -> str:
    """Return the name that the user gave to an estimator; the name itself of a known method."""
    return _parts(method)[0] if is_outside(method) else method


def outside_rows(methods: Iterable[str]) -> list[Method]:
    """Return the rows of the estimators of the user among some methods, in order of their titles.

    Estimators that share a name are told apart by their digests.
    """
    parts = {method: _parts(method) for method in sorted({*methods}) if is_outside(method)}
    n_of = Counter(title for title, _ in parts.values())
    return [
        Method(method, title if n_of[title] == 1 else f"{title} ({ending})", object, {})
        for method, (title, ending) in parts.items()
    ]


def _parts(method: str) -> tuple[str, str]:
    """Return the name that the user gave, and the digest."""
    title, _, ending = method.removeprefix(PREFIX).rpartition("-")
    return title, ending


def as_outside(pairs: Iterable[Any]) -> list[OutsideMethod]:
    """Return pairs of a name and an estimator as methods.

    Parameters
    ----------
    pairs : iterable of tuple
        Name and unfitted transformer.

    Returns
    -------
    list of OutsideMethod
        The methods.

    Raises
    ------
    TypeError
        If an entry is no pair, or its second part is no transformer that can be cloned.
    ValueError
        If a name is taken or does not suit a file, or a transformer needs labels or is fitted.
    """
    taken = {name.casefold() for m in all_methods().values() for name in (m.name, m.title)}
    methods = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                "each of methods must be a name, or a pair of a name and an estimator such as"
                f" ('mine', MyTransformer()), got {pair!r}"
            )
        name, estimator = pair
        _check_name(name, taken)
        taken.add(name.casefold())
        _check_estimator(name, estimator)
        methods.append(_outside(name, estimator))
    return methods


def _outside(name: str, estimator: Any) -> OutsideMethod:
    """Return an estimator as a method, under a name of its own where it has no digest."""
    try:
        ending, reason = digest(_seeded(clone(estimator), 0)), ""
    except TypeError as error:
        ending, reason = uuid.uuid4().hex[:12], str(error)
    return OutsideMethod(
        f"{PREFIX}{name}-{ending}",
        name,
        type(estimator),
        {},
        estimator=estimator,
        not_reused=reason,
    )


def _check_name(name: Any, taken: set[str]) -> None:
    """Raise unless a name is new and suits a file."""
    if not isinstance(name, str):
        raise TypeError(
            f"methods: the first part of each pair must be the name of its row, got {name!r}"
        )
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"methods: {name!r} names files too: take 1 to 60 letters, digits, spaces and marks"
            " among _.,=()+- that begin with a letter or a digit."
        )
    if name.casefold() in taken:
        raise ValueError(
            f"methods: {name!r} is the name of another method, which the tables could not tell"
            " apart: take a new name."
        )


def _check_estimator(name: str, estimator: Any) -> None:
    """Raise unless an estimator is an unfitted transformer that needs no labels."""
    kind = f"methods: {name!r} is {estimator!r}"
    if isinstance(estimator, type):
        raise TypeError(f"{kind}, a class: pass an estimator, such as {estimator.__name__}().")
    for method in ("fit", "transform", "get_params", "set_params"):
        if not hasattr(estimator, method):
            raise TypeError(
                f"{kind}, which has no method {method}: pass a transformer of scikit-learn's kind;"
                " of a pipeline that ends in a classifier, pass pipeline[:-1]."
            )
    try:
        copy = clone(estimator)
    except Exception as error:  # of whatever kind: an object that cannot be copied chooses it
        raise TypeError(
            f"{kind}, which scikit-learn's clone cannot copy ({error}): see that its __init__ only"
            " stores parameters that can be copied."
        ) from error
    if hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).target_tags.required:
        raise ValueError(
            f"{kind}, which needs labels to fit: pass a transformer that learns from windows"
            " alone. The labels belong to the probes."
        )
    if _learnt(estimator) != _learnt(copy):
        raise ValueError(
            f"{kind}, which is fitted, and each run fits a clone: pass clone(estimator), or"
            " FrozenEstimator(estimator) to score what it has learnt."
        )


def _learnt(estimator: Any) -> set[str]:
    """Return the names of fitted attributes, of the estimator and of those inside it."""
    inside = {"": estimator} | estimator.get_params()
    return {
        f"{place} {name}"
        for place, part in inside.items()
        if hasattr(part, "get_params") and not isinstance(part, type)
        for name in getattr(part, "__dict__", ())
        if name.endswith("_") and not name.startswith("_")
    }


def _seeded(estimator: Any, seed: int) -> Any:
    """Set every parameter `random_state`, those of inner estimators too, and return it."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    if names:
        estimator.set_params(**dict.fromkeys(names, seed))
    return estimator
