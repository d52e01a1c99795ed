"""Regression head on an encoder, trained with targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from torch import Tensor

from .._data._labeled import LabeledBatches, LabeledWindows
from .._data._labels import check_sample_weight, check_targets
from .._groups import nan_where_masked
from .._tags import WindowTags
from .._training._progress import with_callbacks
from ..objectives import Regression
from ._fit_data import FitData
from ._labeled import LabeledEmbedder

_FARTHEST = 1e15  # standard deviations of a target, whose square float32 holds with room to spare
_ALMOST_NO_WEIGHT = (  # alone, no target can lie that far from the mean
    "sample_weight gives its sample almost no weight beside others, so set this weight to 0, or"
    " weight the samples more evenly"
)


class BaseWindowRegressor(RegressorMixin, LabeledEmbedder):
    """A regression head on an encoder, trained together with targets.

    The targets are standardised for the training, each to mean 0 and standard deviation 1, and
    predictions are in the units of `y`. A subclass stores its parameters in `__init__`.

    Attributes
    ----------
    target_mean_ : float or ndarray of shape (n_targets,)
        Weighted mean of the targets that were trained on; a float if `y` has one dimension.
    target_scale_ : float or ndarray of shape (n_targets,)
        Weighted standard deviation of the targets that were trained on; 0 for a target that is
        constant.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import FineTuneRegressor
    >>> from sklearn_pulse.base import BaseWindowRegressor
    >>> X = np.random.default_rng(0).normal(size=(12, 32, 2))
    >>> y = np.arange(60.0, 120.0, 5.0)  # heart rate in beats per minute
    >>> regressor = FineTuneRegressor(embedding_dim=8, encoder_depth=2, random_state=0).fit(X, y)
    >>> isinstance(regressor, BaseWindowRegressor), regressor.target_mean_
    (True, 87.5)
    """

    _objective_class = Regression

    def _objective_params(self) -> dict[str, Any]:
        return super()._objective_params() | {"n_targets": int(np.size(self.target_mean_))}

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> BaseWindowRegressor:
        """Train encoder and head.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, in any units. Every sample has every target.
        y_val : array-like, default=None
            Targets of `X_val`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. A weight of two counts as the sample twice; a weight of zero
            leaves the sample out. None weights all samples alike.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            For a parameter out of its range, an input outside the data contract, or a target that
            is missing, infinite or no number.
        FloatingPointError
            If a loss becomes NaN or infinite.
        """
        return self._fit(FitData(X, y, groups, X_val, y_val, sample_weight))

    def _check_y(self, y: ArrayLike | None, n_samples: int) -> NDArray[Any]:
        return check_targets(y, n_samples, type(self).__name__)

    def _learn_y(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def _check_y_val(self, y_val: ArrayLike, n_samples: int) -> NDArray[Any]:
        return check_targets(y_val, n_samples, type(self).__name__, "y_val")

    def _weighted_batches(
        self, train: LabeledWindows, valid: LabeledWindows | None
    ) -> tuple[LabeledBatches, LabeledBatches | None]:
        if valid is not None and valid.y.shape[1:] != train.y.shape[1:]:
            shape = train.windows.n_samples, *train.y.shape[1:]  # before equal samples were merged
            raise ValueError(
                f"y_val has shape {valid.y.shape}, y has {shape}: pass the same targets."
            )
        self.target_mean_, self.target_scale_ = _mean_and_scale(train.y, train.weight)
        training = self._standardized(train, "train", _ALMOST_NO_WEIGHT)
        if valid is None:
            return training, None
        return training, self._standardized(
            valid, "validate", "check its unit, or leave its sample out"
        )

    def _standardized(self, part: LabeledWindows, use: str, remedy: str) -> LabeledBatches:
        """Return batches of standardised targets; raise if one is too far away for float32."""
        divisor = np.where(self.target_scale_ > 0, self.target_scale_, 1.0)
        with np.errstate(over="ignore"):  # an infinite distance is too far, too
            y = ((part.y - self.target_mean_) / divisor).reshape(len(part.y), -1)
        farthest = np.abs(y).max()
        if not farthest <= _FARTHEST:
            raise ValueError(
                f"a target to {use} on lies {farthest:.1e} standard deviations from the mean of"
                f" those to train on, too far for a loss in float32: {remedy}."
            )
        weight = part.weight / np.mean(part.weight)
        return LabeledBatches(part._replace(y=y, weight=weight), self._device)

    def predict(
        self,
        X: ArrayLike,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> NDArray[np.float64]:
        """Predict the targets of each sample.

        Returns
        -------
        ndarray of float64, of shape (n_samples,) or (n_samples, n_targets)
            The targets, in the units and with the dimensions of the `y` of `fit`.
        """
        windows = self._check_input(X, (sampling_rate, channel_names))
        output = self._head_output(self._embed(windows))
        if np.ndim(self.target_mean_) == 0:
            output = output[:, 0]
        return self.target_mean_ + self.target_scale_ * output

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> float:
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows, as for `predict`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            True targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. None weights all samples alike.

        Returns
        -------
        float
            R2, at most 1; of several targets, the mean.

        Raises
        ------
        ValueError
            If a target or a weight is missing: NaN, None or masked.
        """
        predicted = self.predict(X, sampling_rate=sampling_rate, channel_names=channel_names)
        if sample_weight is not None:
            check_sample_weight(sample_weight, len(predicted))
        true = nan_where_masked(y)
        return float(r2_score(true, predicted, sample_weight=sample_weight))

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        names = ("target_mean_", "target_scale_")
        mean, scale = (np.asarray(vars(self).get(name)) for name in names)
        alike = mean.dtype == scale.dtype == np.float64 and mean.shape == scale.shape
        if not alike or mean.ndim > 1 or not np.isfinite([mean, scale]).all() or scale.min() < 0:
            raise ValueError(
                "target_mean_ and target_scale_ must be finite numbers of one shape, and a scale"
                " is not negative: save the model again."
            )
        super()._restore(weights)

    def __sklearn_tags__(self) -> WindowTags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _mean_and_scale(y: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return the weighted mean and standard deviation of each target; 0 for a constant."""
    # In units of about the largest target, squares neither overflow nor vanish. The unit is a
    # power of two, by which divisions are exact.
    exponent = np.frexp(np.abs(y).max(axis=0))[1]
    relative = np.ldexp(y, -exponent)
    mean = np.average(relative, axis=0, weights=weight)
    deviation = relative - mean
    error = np.average(deviation, axis=0, weights=weight)  # rounding error of the mean
    scale = np.sqrt(np.average((deviation - error) ** 2, axis=0, weights=weight))
    constant = y.min(axis=0) == y.max(axis=0)
    mean = np.where(constant, relative[0], mean + error)
    found = np.ldexp(mean, exponent), np.ldexp(np.where(constant, 0.0, scale), exponent)
    mean, scale = (of_targets if y.ndim > 1 else of_targets.item() for of_targets in found)
    return mean, scale
