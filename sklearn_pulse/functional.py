"""Pure tensor functions: dropout, losses, divergences and densities."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

_LANES = 4  # 16-bit draws per 64-bit draw
_LEVELS = 2**16  # values of a 16-bit draw
# Similarities held in memory at once (512 MiB). More are computed in parts, in twice the time.
_MAX_LOGITS = 2**27
_EXCLUDED = -1e30  # logit of an excluded entry; -inf would give NaN in rows without other entries
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)  # constant of a normal log density


def keep_bits(shape: tuple[int, ...], p: float, generator: torch.Generator) -> Tensor:
    """Draw a dropout mask of integers: 1 with probability ``1 - p``, else 0.

    Four 16-bit draws are cut from each 64-bit random number, several times faster than one
    Bernoulli draw per element; ``p`` is therefore rounded to the nearest multiple of ``2**-16``
    below 1.
    The mask holds integers because PyTorch's CPU kernels convert integers to floats ten times
    faster than Booleans.

    Parameters
    ----------
    shape : tuple of int
        Shape of the mask.
    p : float
        Probability of a 0, in [0, 1).
    generator : torch.Generator
        Generator of the draws; the mask lies on its device.

    Returns
    -------
    Tensor of int16, of shape `shape`
        1 for the entries to keep, 0 for the others.

    Raises
    ------
    ValueError
        If `p` is out of its range.

    Examples
    --------
    >>> import torch
    >>> bits = keep_bits((100, 100), 0.25, torch.Generator().manual_seed(0))
    >>> bits.unique(), round(bits.float().mean().item(), 1)
    (tensor([0, 1], dtype=torch.int16), 0.8)
    """
    size = torch.Size(shape)
    n = size.numel()
    draws = torch.empty(-(-n // _LANES), dtype=torch.int64, device=generator.device)
    lanes = draws.random_(-(2**63), None, generator=generator).view(torch.int16)
    return lanes[:n].ge_(_level(p) - _LEVELS // 2).view(size)


def keep_mask(shape: tuple[int, ...], p: float, generator: torch.Generator) -> Tensor:
    """Draw a dropout mask of Booleans: True with probability ``1 - p``.

    Parameters
    ----------
    shape : tuple of int
        Shape of the mask.
    p : float
        Probability of a False, in [0, 1), rounded to a multiple of ``2**-16``.
    generator : torch.Generator
        Generator of the draws; the mask lies on its device.

    Returns
    -------
    Tensor of bool, of shape `shape`
        True for the entries to keep.

    Raises
    ------
    ValueError
        If `p` is out of its range.

    Examples
    --------
    >>> import torch
    >>> keep_mask((2, 2), 0.0, torch.Generator())
    tensor([[True, True],
            [True, True]])
    """
    return keep_bits(shape, p, generator).bool()


def keep_scale(p: float) -> float:
    """Return the factor by which dropout multiplies the entries that it keeps.

    Parameters
    ----------
    p : float
        Probability of a zero, in [0, 1), rounded to a multiple of ``2**-16``.

    Returns
    -------
    float
        ``1 / (1 - p)``, at least 1.

    Raises
    ------
    ValueError
        If `p` is out of its range.

    Examples
    --------
    >>> keep_scale(0.5)
    2.0
    """
    return 1.0 / (1.0 - _level(p) / _LEVELS)


def _level(p: float) -> int:
    """Return how many of the values of a draw make a 0: never all of them."""
    if not 0.0 <= p < 1.0:
        raise ValueError(f"p must be a probability in [0, 1), got {p!r}; pass for example p=0.5")
    return min(round(p * _LEVELS), _LEVELS - 1)


def dropout(
    x: Tensor,
    p: float,
    generator: torch.Generator,
    part: tuple[tuple[int, ...], Any] | None = None,
) -> Tensor:
    """Zero each element with probability `p` and rescale the others to keep the mean.

    In contrast to :func:`torch.nn.functional.dropout`, the mask comes from a generator that the
    caller owns. The same seed therefore gives the same bits, whatever else draws random numbers.

    Parameters
    ----------
    x : Tensor
        Values of any shape.
    p : float
        Probability of a zero, in [0, 1), rounded to a multiple of ``2**-16``.
    generator : torch.Generator
        Generator of the draws, on the device of `x`.
    part : (tuple of int, index) or None, default=None
        Shape of a whole tensor, and the index by which `x` was taken from it: the mask is then that
        part of the mask of the whole. None means that `x` is the whole.

    Returns
    -------
    Tensor
        Tensor of the shape of `x`; `x` itself if `p` rounds to 0.

    Raises
    ------
    ValueError
        If `p` is out of its range.

    Examples
    --------
    >>> import torch
    >>> x = torch.ones(1000)
    >>> dropout(x, 0.5, torch.Generator().manual_seed(0)).unique()
    tensor([0., 2.])
    """
    scale = keep_scale(p)
    if scale == 1.0:
        return x
    shape, index = (x.shape, ...) if part is None else part
    return x * keep_bits(shape, p, generator)[index].to(x.dtype).mul_(scale)


def pass_errors(
    prediction: Tensor,
    target: Tensor,
    scored: Tensor,
    n_steps: Tensor,
    reduction: Literal["published", "valid"],
    whole: Tensor | None = None,
) -> Tensor:
    """Compute the mean squared error of each reconstruction pass.

    Parameters
    ----------
    prediction : Tensor of shape (n_steps, n_passes, batch, n_channels)
        Reconstruction, time first.
    target : Tensor of shape (n_steps, n_passes, batch, n_channels)
        Signal, time first.
    scored : Tensor of bool, of shape (n_steps, n_passes, batch)
        Steps that count: observed steps inside the crop.
    n_steps : Tensor of int, of shape (n_passes,)
        Length of the longest crop of each pass.
    reduction : {"published", "valid"}
        "published" divides by all ``batch * n_steps * n_channels`` entries of a pass, including the
        entries past the end of shorter crops; "valid" divides by the number of entries that count.
    whole : Tensor of bool, of shape (n_steps, n_passes, n_windows), or None, default=None
        `scored` of a larger batch, of which this batch is a part. The result is then the part's
        contribution to the loss of the larger batch. None means that the batch is whole.

    Returns
    -------
    Tensor of shape (n_passes,)
        Loss of each pass (paper, Eq. 3, reconstruction term).

    Raises
    ------
    ValueError
        If `reduction` is unknown.

    Examples
    --------
    >>> import torch
    >>> prediction, target = torch.zeros(2, 1, 1, 1), torch.ones(2, 1, 1, 1)
    >>> scored = torch.tensor([True, False]).view(2, 1, 1)
    >>> pass_errors(prediction, target, scored, torch.tensor([2]), "published")
    tensor([0.5000])
    >>> pass_errors(prediction, target, scored, torch.tensor([2]), "valid")
    tensor([1.])
    """
    if reduction not in ("published", "valid"):
        raise ValueError(
            f"reduction must be one of 'published', 'valid', got {reduction!r}; choose one of them"
        )
    errors = (prediction - target).float().masked_fill(~scored.unsqueeze(-1), 0.0)
    total = errors.square().sum((0, 2, 3))
    counted = scored if whole is None else whole
    steps = counted.sum((0, 2)) if reduction == "valid" else counted.shape[2] * n_steps
    return total / (steps * target.shape[-1]).clamp(min=1)


def info_nce(
    anchors: Tensor,
    candidates: Tensor,
    positive: Tensor,
    temperature: float = 1.0,
    allowed: Tensor | None = None,
) -> Tensor:
    """Compute the cross-entropy of finding the positive among the candidates by cosine similarity.

    ``-log(exp(cos(a, p) / temperature) / sum_c exp(cos(a, c) / temperature))``, averaged over the
    anchors (InfoNCE, NT-Xent; paper, Appendix C). The computation runs in float32 under autocast
    too, since bfloat16 similarities are too coarse for a small temperature.

    Parameters
    ----------
    anchors : Tensor of shape (batch, dim)
        One vector per anchor.
    candidates : Tensor of shape (n_candidates, dim) or (batch, n_candidates, dim)
        Vectors that the anchors are compared with: the same for all anchors, or separate candidates
        for each anchor.
    positive : Tensor of int, of shape (batch,)
        Index of each anchor's positive among its candidates.
    temperature : float, default=1.0
        Divisor of the similarities.
    allowed : Tensor of bool, of shape (batch, n_candidates), or None, default=None
        Candidates that count; the positive must be among them. None means all.

    Returns
    -------
    Tensor, scalar
        Cross-entropy in nats.

    Examples
    --------
    >>> import torch
    >>> anchors = torch.eye(2)
    >>> info_nce(anchors, anchors, torch.tensor([0, 1]))  # log(1 + exp(-1))
    tensor(0.3133)
    """
    with torch.autocast(anchors.device.type, enabled=False):
        queries = F.normalize(anchors.float(), dim=-1)
        keys = F.normalize(candidates.float(), dim=-1)
        if keys.ndim == 2:
            logits = queries @ keys.T / temperature  # (batch, n_candidates)
        else:
            logits = (keys @ queries.unsqueeze(-1)).squeeze(-1) / temperature
        if allowed is not None:
            logits = logits.masked_fill(~allowed, -torch.inf)
        return F.cross_entropy(logits, positive)


def hierarchical_contrast(
    first: Tensor,
    second: Tensor,
    observed: Tensor | None = None,
    instance_weight: float = 0.5,
    temporal_unit: int = 0,
) -> Tensor:
    """Contrast two views of every step with other windows and other steps, at every scale.

    The loss is the cross-entropy of finding a step's counterpart in the other view by the dot
    product: among the windows of the batch at the same step, and among the steps of the same
    window. Time is then halved by the maximum of two neighbouring steps (an odd last step is
    dropped), until one step is left. The mean over the scales is returned (TS2Vec; paper, Appendix
    C).

    Parameters
    ----------
    first : Tensor of shape (batch, n_timesteps, dim)
        Encoded steps of the first view.
    second : Tensor of shape (batch, n_timesteps, dim)
        Encoded steps of the second view.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
        Steps that count in both views; None means all.
    instance_weight : float, default=0.5
        Weight of the contrast between windows; the contrast between steps has weight
        ``1 - instance_weight``.
    temporal_unit : int, default=0
        First scale at which steps are contrasted; 0 is the finest scale.

    Returns
    -------
    Tensor, scalar
        Cross-entropy in nats; zero for one window of one step.

    Raises
    ------
    ValueError
        If the views hold no window or no time step.

    Examples
    --------
    >>> import torch
    >>> view = torch.eye(4).unsqueeze(0)
    >>> hierarchical_contrast(view, 10.0 * view) < hierarchical_contrast(view, view)
    tensor(True)
    """
    if not first.shape[0]:
        raise ValueError("first and second hold no window: pass one window at least.")
    if not first.shape[1]:
        raise ValueError("first and second hold no time step: pass one step at least.")
    with torch.autocast(first.device.type, enabled=False):
        first, second = first.float(), second.float()
        total, scale = first.new_zeros(()), 0
        while True:
            n_timesteps = first.shape[1]
            if instance_weight > 0.0:
                seen = None if observed is None else observed.transpose(0, 1)
                windows = _counterpart_entropy(first.transpose(0, 1), second.transpose(0, 1), seen)
                total = total + instance_weight * windows
            if n_timesteps > 1 and instance_weight < 1.0 and scale >= temporal_unit:
                steps = _counterpart_entropy(first, second, observed)
                total = total + (1.0 - instance_weight) * steps
            scale += 1
            if n_timesteps == 1:
                return total / scale
            first, second = _halve(first, observed), _halve(second, observed)
            if observed is not None:
                observed = _pairs(observed).any(2)


def _counterpart_entropy(first: Tensor, second: Tensor, observed: Tensor | None) -> Tensor:
    """Compute the cross-entropy of finding each row's counterpart among all rows of its group.

    A group holds the rows of both views. `first` and `second` are of shape (n_groups, n, dim),
    `observed` of shape (n_groups, n).
    """
    n_groups, n = first.shape[:2]
    size = max(1, _MAX_LOGITS // (2 * n) ** 2)
    if size >= n_groups:
        errors = _row_entropies(first, second, observed)
    else:  # compute the logits of a few groups at a time, and again for the gradients
        parts = []
        for start in range(0, n_groups, size):
            some = slice(start, start + size)
            seen = None if observed is None else observed[some]
            parts.append(
                checkpoint(
                    _row_entropies,
                    first[some],
                    second[some],
                    seen,
                    use_reentrant=False,
                    preserve_rng_state=False,  # the function draws nothing
                )
            )
        errors = torch.cat(parts)
    if observed is None:
        return errors.mean()
    counts = observed.repeat(1, 2).flatten()  # (n_groups * 2 * n,)
    return (errors * counts).sum() / counts.sum().clamp(min=1)


def _row_entropies(first: Tensor, second: Tensor, observed: Tensor | None) -> Tensor:
    """Return the cross-entropy of each row of both views, of shape (n_groups * 2 * n,)."""
    n = first.shape[1]
    rows = torch.cat([first, second], dim=1)  # (n_groups, 2 * n, dim)
    logits = rows @ rows.mT  # (n_groups, 2 * n, 2 * n)
    logits.diagonal(dim1=-2, dim2=-1).fill_(_EXCLUDED)
    counterparts = torch.arange(2 * n, device=rows.device).roll(n).expand(len(rows), -1)
    if observed is not None:
        logits = logits.masked_fill(~observed.repeat(1, 2).unsqueeze(1), _EXCLUDED)
    return F.cross_entropy(logits.flatten(0, 1), counterparts.flatten(), reduction="none")


def _pairs(x: Tensor) -> Tensor:
    """Group neighbouring steps by two, without an odd last step: (batch, n // 2, 2, ...)."""
    n = x.shape[1] // 2
    return x[:, : 2 * n].reshape(len(x), n, 2, *x.shape[2:])


def _halve(x: Tensor, observed: Tensor | None) -> Tensor:
    """Return the maximum of two neighbouring steps over the observed steps; zero without any."""
    if observed is None:
        return _pairs(x).amax(2)
    pooled = _pairs(x.masked_fill(~observed.unsqueeze(-1), _EXCLUDED)).amax(2)
    return pooled.masked_fill(~_pairs(observed).any(2).unsqueeze(-1), 0.0)


def gaussian_kl(mean: Tensor, logvar: Tensor, prior_mean: Tensor, prior_logvar: Tensor) -> Tensor:
    """Compute the Kullback-Leibler divergence of two normal distributions, element by element.

    Parameters
    ----------
    mean : Tensor
        Mean of the posterior.
    logvar : Tensor
        Log variance of the posterior.
    prior_mean : Tensor
        Mean of the prior; all shapes broadcast.
    prior_logvar : Tensor
        Log variance of the prior.

    Returns
    -------
    Tensor
        Divergence of the posterior from the prior, in nats, of the broadcast shape.

    Examples
    --------
    >>> import torch
    >>> zero = torch.zeros(1)
    >>> gaussian_kl(torch.ones(1), zero, zero, zero)
    tensor([0.5000])
    """
    difference = logvar - prior_logvar
    squared = (mean - prior_mean).square() * (-prior_logvar).exp()
    return 0.5 * (difference.expm1() - difference + squared)  # rounds less near zero


def gaussian_nll(x: Tensor, mean: Tensor, logvar: Tensor, min_variance: float = 0.0) -> Tensor:
    """Compute the negative log likelihood of a normal distribution, without ``log(2 pi) / 2``.

    Parameters
    ----------
    x : Tensor
        Values.
    mean : Tensor
        Mean of the distribution; all shapes broadcast.
    logvar : Tensor
        Log variance of the distribution.
    min_variance : float, default=0.0
        Lower bound of the variance. Gradients ignore the bound, so that a variance below it can
        grow again.

    Returns
    -------
    Tensor
        Negative log likelihood in nats, element by element.

    Examples
    --------
    >>> import torch
    >>> gaussian_nll(torch.tensor([3.0]), torch.tensor([1.0]), torch.tensor([0.0]))
    tensor([2.])
    """
    squared = (x - mean).square()
    if min_variance == 0.0:
        return 0.5 * (logvar + squared * (-logvar).exp())
    variance = logvar.exp()
    variance = variance + (variance.clamp(min=min_variance) - variance).detach()
    return 0.5 * (variance.log() + squared / variance)


def ar1_log_density(x: Tensor, log_tau: Tensor, log_variance: Tensor) -> Tensor:
    """Compute the log density of each step of a stationary AR(1) process, given the previous step.

    ``x[t] = exp(-1 / tau) * x[t - 1] + noise``. The first step is drawn from the stationary
    distribution, whose variance is ``variance / (1 - exp(-2 / tau))``.

    Parameters
    ----------
    x : Tensor of shape (n_timesteps, batch, n_dims)
        Sample paths, time first.
    log_tau : Tensor of shape (n_dims,)
        Logarithm of the time constant in steps.
    log_variance : Tensor of shape (n_dims,)
        Logarithm of the variance of the noise.

    Returns
    -------
    Tensor of shape (n_timesteps, batch, n_dims)
        Log density in nats; its sum over time is the log density of a path.

    Examples
    --------
    >>> import torch
    >>> log_tau, log_variance = torch.zeros(1), torch.zeros(1)
    >>> ar1_log_density(torch.zeros(2, 1, 1), log_tau, log_variance).flatten()
    tensor([-0.9916, -0.9189])
    """
    rate = (-log_tau).exp()  # 1 / tau
    stationary = log_variance - torch.log(-torch.expm1(-2.0 * rate))
    first = gaussian_nll(x[:1], torch.zeros_like(x[:1]), stationary)
    later = gaussian_nll(x[1:], (-rate).exp() * x[:-1], log_variance)
    return -torch.cat([first, later]) - HALF_LOG_2PI
