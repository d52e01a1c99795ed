"""Linear steps as layers of a graph."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from torch import Tensor, nn

from ..preprocessing._statistics import LEAST, NORMAL_RANGE, ROUNDING
from ._steps import check_one_label, encoded_classes

# What to do with a step that has no layer.
_BEFORE = "do other steps before the graph, or serve the chain by save_pretrained"
_AFTER = "export the steps before it, as chain[:-1], and apply it to their embeddings"


class Affine(nn.Module):
    """Map of each column: subtract the centre, multiply by the factor, add the shift.

    The centre is subtracted in two parts, so that an offset that is large beside the spread loses
    no precision in float32.

    Parameters
    ----------
    center, factor, shift : array-like of shape (n_columns,), or scalar
        What each column is mapped by.
    limits : tuple of float, or None, default=None
        Range that the results are clipped to.
    """

    def __init__(
        self,
        center: ArrayLike = 0.0,
        factor: ArrayLike = 1.0,
        shift: ArrayLike = 0.0,
        limits: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        centre = np.asarray(center, dtype=np.float64)
        coarse = centre.astype(np.float32)
        self.coarse, self.fine = _fixed(coarse), _fixed(centre - coarse)
        self.factor, self.shift = _fixed(factor), _fixed(shift)
        self.limits = limits

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis."""
        y = ((x - self.coarse) - self.fine) * self.factor + self.shift
        return y if self.limits is None else y.clamp(*self.limits)


class ScaledWindows(nn.Module):
    """Windows of which each channel is scaled by its own mean and spread, or quartiles.

    The graph of a `WindowScaler` with ``per="window"``. It computes in float64, as the scaler.

    Parameters
    ----------
    scaler : WindowScaler
        The fitted scaler.
    """

    def __init__(self, scaler: Any) -> None:
        super().__init__()
        names = ("robust", "with_mean", "with_std")
        self.robust, self.with_mean, self.with_std = map(scaler._fitted, names)

    def forward(self, windows: Tensor) -> Tensor:
        """Scale windows (batch, n_timesteps, n_channels), NaN where missing."""
        x = windows.double()
        seen = ~torch.isnan(x)
        count = seen.sum(1, keepdim=True)
        low = x.masked_fill(~seen, torch.inf).amin(1, keepdim=True)
        high = x.masked_fill(~seen, -torch.inf).amax(1, keepdim=True)
        if self.robust:
            first, center, third = _quartiles(x.masked_fill(~seen, torch.inf), count)
            low, high, spread = first, third, (third - first) / NORMAL_RANGE
        else:
            center, spread = _moments(x.masked_fill(~seen, 0.0), seen, count)
            center = torch.where(low == high, low, center)
        least = (ROUNDING * torch.maximum(low.abs(), high.abs())).clamp(min=LEAST)
        scale = torch.where((low == high) | (spread <= least), 1.0, spread)
        if self.with_mean:
            x = x - center
        return (x / scale if self.with_std else x).float()


class WhitenedWindows(nn.Module):
    """Windows whose channels are combined by a matrix.

    The graph of a `ChannelWhitener`. It computes in float64, as the step.

    Parameters
    ----------
    whitener : ChannelWhitener
        The fitted step.
    """

    center: Tensor
    matrix: Tensor

    def __init__(self, whitener: Any) -> None:
        super().__init__()
        self.register_buffer("center", torch.from_numpy(whitener.center_.copy()))
        self.register_buffer("matrix", torch.from_numpy(whitener.whitening_.T.copy()))

    def forward(self, windows: Tensor) -> Tensor:
        """Combine the channels of windows (batch, n_timesteps, n_channels), NaN where missing."""
        x = windows.double() - self.center
        missing = torch.isnan(x)
        return (x.masked_fill(missing, 0.0) @ self.matrix).masked_fill(missing, torch.nan).float()


def _moments(x: Tensor, seen: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and population standard deviation over time, of zeros where nothing is seen."""
    number = count.clamp(min=1)
    center = x.sum(1, keepdim=True) / number
    deviation = torch.where(seen, x - center, 0.0)
    return center, (deviation.square().sum(1, keepdim=True) / number).sqrt()


def _quartiles(x: Tensor, count: Tensor) -> tuple[Tensor, ...]:
    """Return the quartiles over time of the first `count` values in order."""
    ordered = x.sort(1).values
    last = (count - 1).clamp(min=0)
    found = []
    for q in (0.25, 0.5, 0.75):
        place = last * q
        below = place.floor().long()
        lower = ordered.gather(1, below)
        upper = ordered.gather(1, torch.minimum(below + 1, last))
        found.append(lower + (place - below) * (upper - lower))
    return tuple(found)


class Linear(nn.Module):
    """Products with coefficients, plus the intercept; a vector of coefficients gives no last axis.

    Parameters
    ----------
    coef : array-like of shape (n_outputs, n_columns) or (n_columns,)
        Coefficients.
    intercept : array-like of shape (n_outputs,), or scalar
        Intercept.
    """

    def __init__(self, coef: NDArray[Any], intercept: ArrayLike) -> None:
        super().__init__()
        self.is_single = coef.ndim == 1
        self.coef = _fixed(np.atleast_2d(coef))
        self.intercept = _fixed(np.broadcast_to(intercept, len(np.atleast_2d(coef))))

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis."""
        y = F.linear(x, self.coef, self.intercept)
        return y.squeeze(-1) if self.is_single else y


class Probabilities(nn.Module):
    """Probability of each class from the decision values of a linear classifier.

    Parameters
    ----------
    one_versus_rest : bool
        Whether several classes have the sigmoids of their values as shares; else they have a
        softmax. Two classes have a sigmoid.
    """

    def __init__(self, one_versus_rest: bool) -> None:
        super().__init__()
        self.one_versus_rest = one_versus_rest

    def forward(self, scores: Tensor) -> Tensor:
        """Return probabilities, shape (batch, n_classes)."""
        if scores.ndim == 1:
            p = torch.sigmoid(scores)
            return torch.stack([1 - p, p], dim=1)
        if self.one_versus_rest:
            # Logarithms of the sigmoids, since runtimes round a small sigmoid up.
            scores = scores.clamp(max=0) - torch.log1p(torch.exp(-scores.abs()))
        return torch.softmax(scores, dim=1)


def layer_of(step: Any, *, takes_windows: bool = False) -> nn.Module:
    """Return the layer of a fitted step that maps rows to rows.

    Parameters
    ----------
    step : estimator
        A fitted step.
    takes_windows : bool, default=False
        Whether the step comes before the encoder. A scaler of a table, which maps each time step of
        univariate windows by numbers of its own, has no layer there.

    Returns
    -------
    torch.nn.Module
        From rows to rows.

    Raises
    ------
    TypeError
        If the step has no layer.
    """
    name = type(step).__name__
    if takes_windows and name not in ("WindowScaler", "ChannelWhitener"):
        raise _refused(f"{name} has no graph before the encoder", _BEFORE)
    if name == "ChannelWhitener":
        return WhitenedWindows(step)
    if name == "WindowScaler" and step._per == "window":
        return ScaledWindows(step)
    if name == "WindowScaler" and step._per == "channel":
        return Affine(_or(step.center_, 0.0), 1 / _or(step.scale_, 1.0))
    # scikit-learn goes by the present value of these parameters, not by that of `fit`.
    if name == "RobustScaler":
        center = step.center_ if step.with_centering else 0.0
        return Affine(center, 1 / step.scale_ if step.with_scaling else 1.0)
    if name == "StandardScaler":
        center = step.mean_ if step.with_mean else 0.0
        return Affine(center, 1 / step.scale_ if step.with_std else 1.0)
    if name == "MinMaxScaler":
        limits = tuple(map(float, step.feature_range)) if step.clip else None
        return Affine(0.0, step.scale_, step.min_, limits)  # type: ignore[arg-type]
    if name == "PCA":
        products = Linear(step.components_, 0.0)
        factor = 1 / _spread(step) if step.whiten else 1.0
        return nn.Sequential(Affine(step.mean_), products, Affine(0.0, factor))
    raise _refused(f"{name} has no graph", _BEFORE if takes_windows else _AFTER)


def _predicts_linearly(step: Any, coef: NDArray[Any]) -> bool:
    """Return whether predictions are sums of products with the coefficients, in any unit.

    Some models with coefficients centre the rows, take an exponential of the sums, or have a sum
    for each pair of classes.
    """
    if not hasattr(step, "intercept_"):
        return False
    rows = np.random.default_rng(0).normal(size=(64, coef.shape[-1]))
    sums = rows @ coef.T.astype(np.float64) + step.intercept_
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of names of features, which these rows lack
        predicted = np.asarray(step.predict(rows))
    if not hasattr(step, "classes_"):
        sums = sums.reshape(predicted.shape)
        return bool(np.allclose(predicted, sums, rtol=1e-4, atol=1e-4 * np.abs(sums).max()))
    n_classes = len(step.classes_)
    if n_classes == 2:
        return np.array_equal(predicted, step.classes_[(sums.ravel() > 0).astype(int)])
    is_one_each = sums.shape[1] == n_classes
    return is_one_each and np.array_equal(predicted, step.classes_[sums.argmax(1)])


def _refused(reason: str, remedy: str) -> TypeError:
    """Return the error for a step without a layer."""
    return TypeError(
        f"{reason}. A WindowScaler with per='channel' or 'window', a ChannelWhitener, then an"
        " estimator with a network, then StandardScaler, MinMaxScaler, RobustScaler, PCA and a"
        f" linear model have one: {remedy}."
    )


def last_layer(step: Any) -> tuple[nn.Module, str, dict[str, Any]]:
    """Return the layer of a fitted last step, the method that it replaces, and its output.

    Parameters
    ----------
    step : estimator
        The step.

    Returns
    -------
    layer : torch.nn.Module
        From rows to results.
    method : str
        Name of the method of the chain that gives the same.
    output : dict
        Name, axes and classes of the output.
    """
    if hasattr(step, "head_"):
        return _head_of(step)
    if not hasattr(step, "coef_"):
        return layer_of(step), "transform", {"name": "embedding", "dims": ["batch", "feature"]}
    check_one_label(step)
    coef = dense(step.coef_)
    if not _predicts_linearly(step, coef):
        reason = f"{type(step).__name__} has no graph, as it is no linear model as fitted"
        raise _refused(reason, _AFTER)
    if not hasattr(step, "classes_"):
        dims = ["batch"] if coef.ndim == 1 else ["batch", "target"]
        return Linear(coef, step.intercept_), "predict", {"name": "prediction", "dims": dims}
    if len(step.classes_) == 2:
        coef = coef.reshape(-1)
    linear = Linear(coef, step.intercept_)
    classes = {"classes": encoded_classes(step)["array"]}
    if hasattr(step, "predict_proba") and getattr(step, "loss", "log_loss") == "log_loss":
        layer = nn.Sequential(linear, Probabilities(_is_one_versus_rest(step)))
        dims = ["batch", "class"]
        return layer, "predict_proba", {"name": "probabilities", "dims": dims, **classes}
    dims = ["batch"] if coef.ndim == 1 else ["batch", "class"]
    return linear, "decision_function", {"name": "scores", "dims": dims, **classes}


def _head_of(model: Any) -> tuple[nn.Module, str, dict[str, Any]]:
    """Return what follows the encoder of a fine-tuned or supervised network, as `last_layer`."""
    if getattr(model, "score_with", "head") == "probe":
        model._check_probe()
        scale, classifier = (step for _, step in model.probe_.steps)
        layer, method, output = last_layer(classifier)
        return nn.Sequential(layer_of(scale), layer), method, output
    head = copy.deepcopy(model.head_).cpu()
    if hasattr(model, "classes_"):
        classes = {"classes": encoded_classes(model)["array"]}
        output = {"name": "probabilities", "dims": ["batch", "class"], **classes}
        return nn.Sequential(head, nn.Softmax(dim=1)), "predict_proba", output
    in_units = nn.Sequential(head, Affine(0.0, model.target_scale_, model.target_mean_))
    if np.ndim(model.target_mean_) == 0:
        output = {"name": "prediction", "dims": ["batch"]}
        return nn.Sequential(in_units, nn.Flatten(0)), "predict", output
    return in_units, "predict", {"name": "prediction", "dims": ["batch", "target"]}


def dense(coef: Any) -> NDArray[Any]:
    """Return coefficients as an array, those of a classifier after `sparsify` included."""
    return coef.toarray() if issparse(coef) else np.asarray(coef)


def _spread(step: Any) -> NDArray[Any]:
    """Return the divisors of a PCA that whitens, with the floor of scikit-learn."""
    spread = np.sqrt(step.explained_variance_)
    return np.maximum(spread, np.finfo(spread.dtype).eps)


def _is_one_versus_rest(step: Any) -> bool:
    """Return whether a classifier tells each of several classes from all others by itself."""
    if getattr(step, "solver", None) == "liblinear" or hasattr(step, "loss"):
        return True
    return getattr(step, "multi_class", None) == "ovr"


def _or(value: Any, default: float) -> Any:
    return default if value is None else value


def _fixed(values: ArrayLike) -> nn.Parameter:
    """Return values that are part of a graph and never trained."""
    data = np.array(values, dtype=np.float32)  # a copy, since torch takes no reversed views
    return nn.Parameter(torch.from_numpy(data), requires_grad=False)
