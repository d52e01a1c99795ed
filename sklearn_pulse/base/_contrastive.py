"""Transformers that contrast the output of the encoder."""

from __future__ import annotations

from .._parameters import check_option, check_real
from ..objectives import ContrastiveObjective
from ._self_supervised import BaseSSLTransformer
from ._training import AVERAGES


class ContrastiveTransformer(BaseSSLTransformer):
    """An encoder whose output is contrasted with its output for other windows.

    Parameters
    ----------
    select : {"trailing_mean", "min_val", "last", "average", "average_min_val"}, \
default="trailing_mean"
        Weights that are kept. "trailing_mean" is the rule of the published code: an epoch's weights
        are kept if the mean of the last five validation losses is at most the validation loss of
        the epoch kept before. "min_val" keeps those of the lowest validation loss (paper), "last"
        those of the last epoch.
        "average" keeps the mean of the initial weights and of the weights after every update, as
        TS2Vec's own code does. "average_min_val" keeps that mean as it was after the epoch of the
        lowest validation loss, which is still the loss of the weights themselves, as REBAR's own
        code does; without validation it is "average".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.base import ContrastiveTransformer
    >>> from sklearn_pulse.baselines import TS2VecTransformer
    >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
    >>> ts2vec = TS2VecTransformer(embedding_dim=8, max_epochs=1, select="average", random_state=0)
    >>> isinstance(ts2vec, ContrastiveTransformer), ts2vec.fit_transform(X).shape
    (True, (8, 8))
    """

    _objective_class: type[ContrastiveObjective]
    _selections = {**BaseSSLTransformer._selections, **AVERAGES}

    layer_norm: str
    representation_dropout: float

    def _check_params(self) -> None:
        super()._check_params()
        check_option("layer_norm", self.layer_norm, ("embedding", "everywhere", "none"))
        check_real("representation_dropout", self.representation_dropout, 0.0, 1.0)
