"""Adapter of any transformer of the package to sktime's interface."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from .._pulse import PulseTransformer
from ..base import WindowEmbedder
from ..baselines import RandomEncoderTransformer
from ..features._base import BaseFeatureTransformer
from ._adapter import SMALL, PanelAdapter


class PanelTransformer(PanelAdapter):
    """Any transformer of windows as a transformer of sktime, on panels.

    Parameters
    ----------
    estimator : transformer of this package
        Transformer to wrap, for example `PulseTransformer` or `TS2VecTransformer`, with either
        `input_layout`. A clone of it is fitted. To keep a fitted transformer as it is, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`.

    Attributes
    ----------
    estimator_ : transformer
        The fitted clone, which takes arrays in its `input_layout`.
    channel_names_in_ : list of str or None
        Names of the channels in `fit`, those of the panel or, if it has none, those that the
        transformer was given; None without either.
    unequal_length_ : bool
        Whether the instances of `fit` differed in length.
    input_layout_ : "nct"
        Layout of arrays, whatever that of `estimator_`: "numpy3D" has channels first.

    See Also
    --------
    PulsePanelTransformer : PULSE, with its own parameters.
    as_panel_transformer : The same wrapper as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import RandomEncoderTransformer
    >>> from sklearn_pulse.panel import PanelTransformer
    >>> X = np.random.default_rng(0).normal(size=(5, 3, 40))  # numpy3D: 3 channels, 40 steps
    >>> encoder = PanelTransformer(RandomEncoderTransformer(embedding_dim=8, random_state=0))
    >>> encoder.fit_transform(X).shape
    (5, 8)
    """

    # The wrapped transformer holds the random_state, as in the composites of sktime.
    _tags = {"capability:random_state": False, "property:randomness": "stochastic"}

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()

    def _build_estimator(self) -> Any:
        _check_estimator(self.estimator)
        return clone(self.estimator)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return small parameters for sktime's tests.

        Parameters
        ----------
        parameter_set : str, default="default"
            Name of the set of parameters; there is only the default set.

        Returns
        -------
        list of dict
            Values for the parameters of `__init__`.
        """
        random = {name: SMALL[name] for name in ("embedding_dim", "num_threads", "random_state")}
        return [
            {"estimator": PulseTransformer(**SMALL)},
            {"estimator": RandomEncoderTransformer(**random, input_layout="nct")},
        ]


def as_panel_transformer(estimator: Any) -> PanelTransformer:
    """Return a transformer of windows as a transformer of sktime.

    Parameters
    ----------
    estimator : transformer of this package
        Transformer to wrap, which must not need labels.

    Returns
    -------
    PanelTransformer
        The unfitted wrapper.

    Raises
    ------
    TypeError
        If `estimator` is a classifier, an oracle, a pipeline, or not from this package.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import SimCLRTransformer
    >>> from sklearn_pulse.panel import as_panel_transformer
    >>> X = np.random.default_rng(0).normal(size=(6, 2, 32))
    >>> simclr = SimCLRTransformer(embedding_dim=8, max_epochs=1, random_state=0)
    >>> as_panel_transformer(simclr).fit_transform(X).columns[0]
    'simclrtransformer0'
    """
    _check_estimator(estimator)
    return PanelTransformer(estimator)


def _check_estimator(estimator: Any) -> None:
    """Raise unless `estimator` is a transformer of the package that needs no labels."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    name = type(inner).__name__
    if not isinstance(inner, WindowEmbedder | BaseFeatureTransformer):
        raise TypeError(
            "estimator must be a transformer of windows of sklearn_pulse, such as"
            f" PulseTransformer(), got {name}: wrap only the transformer, and put the steps after"
            " it into a pipeline, as_panel_transformer(...) * LogisticRegression()."
        )
    if get_tags(inner).target_tags.required:
        raise TypeError(
            f"{name} learns from labels, but a panel transformer is fitted without labels: pass a"
            " self-supervised transformer such as PulseTransformer(), or fit this estimator on a"
            f" numpy3D array, {name}(input_layout='nct').fit(X, y)."
        )
