"""LFADS: variational autoencoder whose decoder is one dynamical system for all windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor, nn

from .._parameters import LARGEST_FLOAT32
from .._training._schedules import ReduceOnPlateau, ReduceOnValidationPlateau
from .._training._user_callbacks import sets_learning_rate
from .._typing import (
    BagPooling,
    Distributed,
    InputLayout,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Select,
)
from ..base import (
    BaseSSLTransformer,
    Callbacks,
    WindowBatches,
    check_integer,
    check_real,
    complete_docstring,
)
from ..functional import HALF_LOG_2PI, ar1_log_density, gaussian_kl, gaussian_nll
from ..networks import LatentFactorModel, LatentFactors, SystemEncoder, mask_steps
from ..objectives import Objective
from ..sampling import observed_span

_MIN_VARIANCE = 1e-6  # smallest variance of the signal in its likelihood
_PRIOR_LOGVAR = math.log(0.1)  # in the priors of initial conditions and inputs
_PRIOR_LOG_TAU = math.log(10.0)  # logarithm of the memory of the inputs' prior, in steps

_WIDTHS = (
    "initial_condition_dim",
    "generator_dim",
    "factor_dim",
    "inferred_input_dim",
    "controller_dim",
    "controller_encoder_dim",
)


class Noise(NamedTuple):
    """Standard normal draws for the samples of one loss."""

    initial: Tensor  # (batch, initial_condition_dim)
    inputs: Tensor  # (n_timesteps, batch, inferred_input_dim), to drive the generator
    divergence: Tensor  # of the same shape, to estimate the divergence of the inputs


@complete_docstring
class LatentFactorAnalysis(Objective):
    """Loss of LFADS, its encoder replaced by the dilated convolutions (paper, Appendix C).

    ``loss_scale * (nll + ramp * kl_weight * (divergence of initial conditions + of inputs))``,
    where `nll` is the mean Gaussian negative log likelihood of the observed entries. The initial
    condition diverges from N(m, 0.1) with a learnt m. The inferred inputs diverge from a learnt
    autoregressive process of first order; one sample of them estimates this divergence, up to the
    last observed step.

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    initial_condition_dim : int, default=64
        Width of the latent initial condition.
    inferred_input_dim : int, default=64
        Width of the inputs that the controller infers.
    kl_weight : float, default=1e-5
        Weight of the divergences of the initial condition and of the inferred inputs from their
        priors.
    loss_scale : float, default=0.1
        Factor of the whole loss.
    ramp_epochs : int, default=10
        Number of epochs over which the weight of the divergences rises to `kl_weight`.
    **model
        Other sizes of :class:`~sklearn_pulse.networks.LatentFactorModel`.

    Examples
    --------
    >>> import torch
    >>> objective = LatentFactorAnalysis(2, embedding_dim=16, encoder_depth=3)
    >>> x = torch.randn(4, 32, 2)
    >>> objective(x=x).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    """

    encoder: SystemEncoder
    replayed = "always"
    keeps = ("last_error",)
    last_error: Tensor | None = None  # negative log likelihood of the last batch, unscaled

    def __init__(
        self,
        n_channels: int,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        initial_condition_dim: int = 64,
        inferred_input_dim: int = 64,
        kl_weight: float = 1e-5,
        loss_scale: float = 0.1,
        ramp_epochs: int = 10,
        seed: int = 0,
        **model: Any,
    ) -> None:
        super().__init__(seed)
        self.kl_weight = kl_weight
        self.loss_scale = loss_scale
        self.ramp_epochs = ramp_epochs
        self.encoder = SystemEncoder(
            n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
        )
        self.model = LatentFactorModel(
            n_channels,
            embedding_dim,
            initial_condition_dim=initial_condition_dim,
            inferred_input_dim=inferred_input_dim,
            **model,
        )
        self.prior_mean = nn.Parameter(torch.zeros(initial_condition_dim))
        self.prior_log_tau = nn.Parameter(torch.full((inferred_input_dim,), _PRIOR_LOG_TAU))
        self.prior_logvar = nn.Parameter(torch.full((inferred_input_dim,), _PRIOR_LOGVAR))

    @property
    def reads_epoch(self) -> bool:
        """Whether the loss depends on `epoch`."""
        return self.epoch < self.ramp_epochs

    def forward(
        self, x: Tensor, observed: Tensor | None = None, noise: Noise | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            True where a step was observed; None means that every step was observed.
        noise : Noise or None, default=None
            Draws of the samples; None draws them.

        Returns
        -------
        Tensor, scalar
            The loss.
        """
        x = mask_steps(x, observed)  # the square of a huge value is infinite
        noise = self.draw_noise(x) if noise is None else noise
        latent = self.model(x, self.encode(x, observed), (noise.initial, noise.inputs), observed)
        divergence = self.initial_kl(latent) + self.input_kl(latent, noise.divergence, observed)
        weight = self.kl_weight * ramp(self.epoch, self.ramp_epochs)
        error = self.error(x, latent, observed)
        self.last_error = error.detach()
        return self.loss_scale * (error + weight * divergence)

    def draw_noise(self, x: Tensor) -> Noise:
        """Draw the noise of one loss; its shapes do not depend on the observed steps.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.

        Returns
        -------
        Noise
            Draws for the initial conditions and the inferred inputs.
        """
        batch, n_timesteps, _ = x.shape
        steps = (n_timesteps, batch, len(self.prior_log_tau))
        shapes = ((batch, len(self.prior_mean)), steps, steps)
        generator = self.generator(x.device)
        return Noise(*(torch.randn(s, generator=generator, device=x.device) for s in shapes))

    @staticmethod
    def error(x: Tensor, latent: LatentFactors, observed: Tensor | None) -> Tensor:
        """Compute the mean negative log likelihood of the observed entries.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        latent : LatentFactors
            Output of the model.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            True where a step was observed; None means that every step was observed.

        Returns
        -------
        Tensor, scalar
            The mean.
        """
        errors = gaussian_nll(
            x.transpose(0, 1), latent.signal_mean, latent.signal_logvar, _MIN_VARIANCE
        )
        if observed is None:
            return errors.mean()
        return (errors * observed.t().unsqueeze(-1)).sum() / (observed.sum() * x.shape[2])

    def initial_kl(self, latent: LatentFactors) -> Tensor:
        """Compute the divergence of the initial condition from its prior.

        Parameters
        ----------
        latent : LatentFactors
            Output of the model.

        Returns
        -------
        Tensor, scalar
            Mean over windows.
        """
        prior_logvar = torch.full_like(self.prior_mean, _PRIOR_LOGVAR)
        divergence = gaussian_kl(
            latent.initial_mean, latent.initial_logvar, self.prior_mean, prior_logvar
        )
        return divergence.sum(1).mean()

    def input_kl(self, latent: LatentFactors, noise: Tensor, observed: Tensor | None) -> Tensor:
        """Estimate the divergence of the inferred inputs from their prior by one sample.

        Parameters
        ----------
        latent : LatentFactors
            Output of the model.
        noise : Tensor of shape (n_timesteps, batch, inferred_input_dim)
            Standard normal draws of the sample.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            True where a step was observed; None means that every step was observed.

        Returns
        -------
        Tensor, scalar
            Mean over windows.
        """
        mean, logvar = latent.input_mean, latent.input_logvar
        sample = mean + (0.5 * logvar).exp() * noise
        log_posterior = -gaussian_nll(sample, mean, logvar) - HALF_LOG_2PI
        log_prior = ar1_log_density(sample, self.prior_log_tau, self.prior_logvar)
        steps = (log_posterior - log_prior).sum(2)
        if observed is not None:  # past the last observed step, inputs explain nothing
            time = torch.arange(len(steps), device=steps.device).unsqueeze(1)
            steps = steps * (time < observed_span(observed)[1])
        return steps.sum(0).mean()


def ramp(epoch: int, n_epochs: int) -> float:
    """Compute a factor that rises linearly over `n_epochs` epochs and stays at one from then on.

    Examples
    --------
    >>> [ramp(epoch, 3) for epoch in range(5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """
    return min((epoch + 1) / (n_epochs + 1), 1.0)


class RampWeightDecay(Callback):
    """Raise the weight decay to its value along with the weight of the divergences.

    Parameters
    ----------
    weight_decay : float
        Weight decay at the end of the rise.
    n_epochs : int
        Number of epochs of the rise.
    """

    def __init__(self, weight_decay: float, n_epochs: int) -> None:
        self.weight_decay = weight_decay
        self.n_epochs = n_epochs

    def on_epoch_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Set the optimizer's weight decay for an epoch."""
        for group in net.optimizer_.param_groups:
            group["weight_decay"] = self.weight_decay * ramp(net.module_.epoch, self.n_epochs)


class LFADSTransformer(BaseSSLTransformer):
    """Embed windows by latent factor analysis via dynamical systems (LFADS).

    LFADS is a variational autoencoder. Every window is the run of one dynamical system, a GRU that
    all windows share. A window has its own initial state, and inputs that a controller infers. As
    in the paper, the likelihood is Gaussian and the encoder of the initial state is PULSE's, whose
    pooled output is the embedding.

    Parameters
    ----------
    initial_condition_dim : int, default=64
        Width of the latent initial condition.
    generator_dim : int, default=64
        Width of the generator, the GRU that is the dynamical system.
    factor_dim : int, default=128
        Number of factors that are read from the generator's state.
    controller_dim : int, default=64
        Width of the controller, the GRU that infers the inputs.
    controller_encoder_dim : int, default=64
        Width of each direction of the GRU through which the controller reads the window.
    controller_lag : int, default=2
        Number of steps between a step and the nearest steps, past and future, that the controller
        sees there.
    inferred_input_dim : int, default=64
        Width of the inputs that the controller infers.
    state_clip : float, default=1.0
        Largest absolute value of the states of all GRUs; larger values are clipped.
    kl_weight : float, default=1e-5
        Weight of the divergences of the initial condition and of the inferred inputs from their
        priors.
    loss_scale : float, default=0.1
        Factor of the whole loss.
    ramp_epochs : int, default=10
        Number of epochs over which the weight of the divergences and the weight decay rise to their
        values; with 0 they have these values from the start.
    lr : float, default=1e-3
        Learning rate of AdamW at the start; with ``schedule="one_cycle"`` its peak.
    schedule : {"plateau", "validation_plateau", "one_cycle"}, default="plateau"
        Schedule of the learning rate. "plateau" multiplies it by 0.95 after 7 batches in a row
        without a lower training loss, down to 1e-5 (published code). "validation_plateau"
        multiplies it by 0.95 after 7 validations in a row without a lower reconstruction error,
        which is smoothed as 0.3 of the value before and 0.7 of the new value (the method's
        authors); it needs a validation part. "one_cycle" rises to `lr` and falls again, with one
        step per batch.
    weight_decay : float, default=1e-3
        Decoupled weight decay of AdamW at the end of its rise.

    References
    ----------
    Sussillo, Jozefowicz, Abbott and Pandarinath, "LFADS - Latent Factor Analysis via Dynamical
    Systems", 2016; Sedler and Pandarinath, "lfads-torch", 2023; "PULSE", ICML 2026, Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import LFADSTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> LFADSTransformer(embedding_dim=16, max_epochs=2, random_state=0).fit_transform(X).shape
    (20, 16)
    """

    _objective_class = LatentFactorAnalysis
    _objective_names = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        *_WIDTHS,
        "controller_lag",
        "state_clip",
        "kl_weight",
        "loss_scale",
        "ramp_epochs",
    )
    _schedules = ("plateau", "validation_plateau", "one_cycle")

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        initial_condition_dim: int = 64,
        generator_dim: int = 64,
        factor_dim: int = 128,
        controller_dim: int = 64,
        controller_encoder_dim: int = 64,
        controller_lag: int = 2,
        inferred_input_dim: int = 64,
        state_clip: float = 1.0,
        kl_weight: float = 1e-5,
        loss_scale: float = 0.1,
        ramp_epochs: int = 10,
        max_epochs: int = 100,
        lr: float = 1e-3,
        schedule: Literal["plateau", "validation_plateau", "one_cycle"] = "plateau",
        weight_decay: float = 1e-3,
        batch_size: int = 128,
        gradient_clip_value: float | None = 1.0,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        deterministic_validation: bool = True,
        select: Select = "trailing_mean",
        bag_pooling: BagPooling = "mean",
        checkpoint_dir: PathLike | None = None,
        precision: Precision = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        distributed: Distributed = False,
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.initial_condition_dim = initial_condition_dim
        self.generator_dim = generator_dim
        self.factor_dim = factor_dim
        self.controller_dim = controller_dim
        self.controller_encoder_dim = controller_encoder_dim
        self.controller_lag = controller_lag
        self.inferred_input_dim = inferred_input_dim
        self.state_clip = state_clip
        self.kl_weight = kl_weight
        self.loss_scale = loss_scale
        self.ramp_epochs = ramp_epochs
        self.max_epochs = max_epochs
        self.lr = lr
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.gradient_clip_value = gradient_clip_value
        self.validation_fraction = validation_fraction
        self.validation_every = validation_every
        self.deterministic_validation = deterministic_validation
        self.select = select
        self.bag_pooling = bag_pooling
        self.checkpoint_dir = checkpoint_dir
        self.precision = precision
        self.compile = compile
        self.device = device
        self.num_threads = num_threads
        self.distributed = distributed
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        for name in _WIDTHS:
            check_integer(name, getattr(self, name), 1)
        check_integer("controller_lag", self.controller_lag, 0)
        check_integer("ramp_epochs", self.ramp_epochs, 0)
        check_real("state_clip", self.state_clip, 0, LARGEST_FLOAT32, open_minimum=True, example=1)
        check_real("loss_scale", self.loss_scale, open_minimum=True)
        check_real("kl_weight", self.kl_weight)

    def _schedule(self, train: WindowBatches) -> Callbacks:
        plateaus = {"plateau": ReduceOnPlateau, "validation_plateau": ReduceOnValidationPlateau}
        if self.schedule in plateaus:
            return [("lr_scheduler", plateaus[self.schedule]())]
        return super()._schedule(train)

    def _callbacks(self, train: WindowBatches, valid: WindowBatches | None) -> Callbacks:
        follows = self.schedule == "validation_plateau" and not sets_learning_rate(self.callbacks)
        if follows and valid is None:
            raise ValueError(
                "schedule='validation_plateau' follows the validation error, but there is nothing"
                " to validate on: pass X_val, raise validation_fraction, or set"
                " schedule='plateau'."
            )
        decay = RampWeightDecay(self.weight_decay, self.ramp_epochs)
        return [("ramp_weight_decay", decay), *super()._callbacks(train, valid)]
