import copy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, LRScheduler
from torch.distributions import Normal, kl_divergence
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from sklearn_pulse import presets
from sklearn_pulse._training._schedules import ReduceOnPlateau, ReduceOnValidationPlateau
from sklearn_pulse.baselines import LFADSTransformer
from sklearn_pulse.baselines._lfads import LatentFactorAnalysis, Noise
from tests.helpers import BatchSpy, callback_of, make_windows, small
from tests.kills import killed
from tests.test_checkpoint import histories_match

SIZES = {
    "embedding_dim": 6,
    "encoder_hidden_dim": 5,
    "encoder_depth": 2,
    "initial_condition_dim": 3,
    "generator_dim": 4,
    "factor_dim": 5,
    "inferred_input_dim": 2,
    "controller_dim": 6,
    "controller_encoder_dim": 3,
}
X = make_windows()[0]
SHORT = X[:, :6]


def make_objective(n_channels=2, seed=0, **params):
    """Build an objective none of whose weights is zero, so that each of them counts."""
    torch.manual_seed(seed)
    objective = LatentFactorAnalysis(n_channels, **SIZES | params)
    with torch.no_grad():
        for parameter in objective.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return objective


lfads = partial(small, LFADSTransformer)


# --- the formula, written out ---


def literal_gru(cell, x, h, clip):
    """One step: the reset gate acts on the state before the recurrent product."""
    (wz, wr, wn), (uz, ur, un) = cell.weight_ih.chunk(3), cell.weight_hh.chunk(3)
    bz, br, bn = cell.bias.chunk(3)
    z = torch.sigmoid(wz @ x + uz @ h + bz)
    r = torch.sigmoid(wr @ x + ur @ h + br)
    n = torch.tanh(wn @ x + un @ (r * h) + bn)
    return torch.clamp(z * h + (1 - z) * n, -clip, clip)


def literal_controller_inputs(model, x, lag, clip):
    encoder, n = model.controller_encoder, len(x)
    forwards, backwards = [None] * n, [None] * n
    h_forwards, h_backwards = encoder.initial_state[0, 0], encoder.initial_state[1, 0]
    for t in range(n):
        forwards[t] = h_forwards = literal_gru(encoder.forward_cell, x[t], h_forwards, clip)
    for t in reversed(range(n)):
        backwards[t] = h_backwards = literal_gru(encoder.backward_cell, x[t], h_backwards, clip)
    nothing = torch.zeros_like(h_forwards)
    return [
        torch.cat(
            [
                forwards[t - lag] if t - lag >= 0 else nothing,
                backwards[t + lag] if t + lag < n else nothing,
            ]
        )
        for t in range(n)
    ]


def literal_window(objective, x, theta, noise, lag, clip):
    """Negative log likelihoods of a window's entries and its two divergences."""
    model, decoder = objective.model, objective.model.decoder
    mean, logvar = model.initial_condition(theta).chunk(2)
    std = torch.sqrt(torch.exp(logvar) + 1e-4)
    prior = Normal(objective.prior_mean, np.sqrt(0.1))
    kl_initial = kl_divergence(Normal(mean, std), prior).sum()

    rows = decoder.factors.weight / decoder.factors.weight.square().sum(1, keepdim=True).sqrt()
    generator, control = model.initial_state(mean + std * noise[0]), decoder.controller_state[0]
    factors = rows @ generator
    alpha = torch.exp(-1 / torch.exp(objective.prior_log_tau))
    variance = torch.exp(objective.prior_logvar)
    errors, kl_inputs, before = [], 0.0, None
    for t, control_input in enumerate(literal_controller_inputs(model, x, lag, clip)):
        control = literal_gru(
            decoder.controller, torch.cat([control_input, factors]), control, clip
        )
        co_mean, co_logvar = decoder.posterior(control).chunk(2)
        co_std = torch.exp(co_logvar / 2)
        generator = literal_gru(decoder.generator, co_mean + co_std * noise[1][t], generator, clip)
        factors = rows @ generator
        signal_mean, signal_logvar = model.readout(factors).chunk(2)
        errors.append(
            torch.nn.functional.gaussian_nll_loss(
                signal_mean, x[t], signal_logvar.exp(), reduction="none"
            )
        )
        sample = co_mean + co_std * noise[2][t]  # another draw than the generator's
        if t == 0:
            step_prior = Normal(0 * sample, torch.sqrt(variance / (1 - alpha**2)))
        else:
            step_prior = Normal(alpha * before, torch.sqrt(variance))
        posterior = Normal(co_mean, co_std)
        kl_inputs += (posterior.log_prob(sample) - step_prior.log_prob(sample)).sum()
        before = sample
    return torch.stack(errors), kl_initial, kl_inputs


def literal_loss(objective, x, noise, lag=2, clip=1.0, kl_weight=1e-5, scale=0.1, n_ramp=10):
    errors, kl = [], 0.0
    theta = objective.encode(x)
    for i in range(len(x)):
        draws = noise.initial[i], noise.inputs[:, i], noise.divergence[:, i]
        error, kl_initial, kl_inputs = literal_window(objective, x[i], theta[i], draws, lag, clip)
        errors.append(error)
        kl += (kl_initial + kl_inputs) / len(x)
    ramp = min(max((objective.epoch + 1) / (n_ramp + 1), 0), 1)
    return scale * (torch.stack(errors).mean() + ramp * kl_weight * kl)


CASES = [
    ({}, {}),
    ({"kl_weight": 0.3}, {"kl_weight": 0.3}),
    ({"kl_weight": 0.3, "ramp_epochs": 0}, {"kl_weight": 0.3, "n_ramp": 0}),
    ({"controller_lag": 0, "loss_scale": 1.0}, {"lag": 0, "scale": 1.0}),
    ({"controller_lag": 9, "state_clip": 0.3}, {"lag": 9, "clip": 0.3}),
]


@pytest.mark.parametrize(("params", "literal"), CASES)
@pytest.mark.parametrize("epoch", [0, 4, 30])
def test_loss_and_gradient_literally(params, literal, epoch):
    objective = make_objective(**params)
    objective.epoch = epoch
    x = torch.randn(3, 7, 2)
    noise = objective.draw_noise(x)
    loss, expected = objective(x=x, noise=noise), literal_loss(objective, x, noise, **literal)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    names, parameters = zip(*objective.named_parameters(), strict=True)
    actual = torch.autograd.grad(loss, parameters, allow_unused=True)
    expected = torch.autograd.grad(expected, parameters, allow_unused=True)
    for name, mine, theirs, p in zip(names, actual, expected, parameters, strict=True):
        mine, theirs = (torch.zeros_like(p) if g is None else g for g in (mine, theirs))
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6, msg=name)


def test_a_variance_below_the_floor_counts_as_the_floor_and_may_grow():
    objective = make_objective()
    with torch.no_grad():
        objective.model.readout.weight.zero_()
        objective.model.readout.bias[:] = torch.tensor([0.0, 0.0, -20.0, -20.0])
    x = torch.full((2, 5, 2), 1e-2)
    loss = objective(x=x, noise=objective.draw_noise(x))
    loss.backward()
    expected = 0.1 * 0.5 * (np.log(1e-6) + 1e-4 / 1e-6)
    assert loss.item() == pytest.approx(expected, rel=1e-3)
    assert (objective.model.readout.bias.grad[2:] < 0).all()


def test_initial_weights_are_those_of_the_published_code():
    objective = LatentFactorAnalysis(6)
    model = objective.model
    fans = {
        model.initial_condition.weight: 320,
        model.initial_state.weight: 64,
        model.readout.weight: 128,
        model.decoder.posterior.weight: 64,
        model.decoder.factors.weight: 64,
        model.decoder.controller.weight_ih: 128 + 128,
        model.decoder.controller.weight_hh: 64,
        model.decoder.generator.weight_ih: 64,
        model.decoder.generator.weight_hh: 64,
        model.controller_encoder.forward_cell.weight_ih: 6 + 64,
        model.controller_encoder.backward_cell.weight_hh: 6 + 64,
    }
    for weight, fan in fans.items():
        assert weight.std().item() == pytest.approx(fan**-0.5, rel=0.1)
    for cell in (model.decoder.controller, model.decoder.generator):
        assert cell.bias.tolist() == [1.0] * 128 + [0.0] * 64
    zeros = [model.readout.bias, model.initial_condition.bias, model.decoder.controller_state]
    assert not any(tensor.any() for tensor in [*zeros, model.controller_encoder.initial_state])
    assert not objective.prior_mean.any()
    torch.testing.assert_close(objective.prior_log_tau.exp(), torch.full((64,), 10.0))
    torch.testing.assert_close(objective.prior_logvar.exp(), torch.full((64,), 0.1))


# --- missing steps ---


def test_padding_with_missing_steps_leaves_the_loss():
    objective = make_objective(kl_weight=0.3)
    x = torch.randn(3, 7, 2)
    padded = torch.cat([x, torch.full((3, 4, 2), 9.0)], dim=1)
    observed = torch.arange(11).expand(3, 11) < 7
    noise = objective.draw_noise(padded)
    short = noise._replace(inputs=noise.inputs[:7], divergence=noise.divergence[:7])
    torch.testing.assert_close(
        objective(x=padded, observed=observed, noise=noise), objective(x=x, noise=short)
    )
    assert objective(x=padded, noise=noise) > objective(x=x, noise=short)


def test_values_of_missing_steps_do_not_matter():
    objective = make_objective()
    x = torch.randn(3, 9, 2)
    observed = torch.ones(3, 9, dtype=torch.bool)
    observed[0, 3:5] = observed[1, 0] = observed[2, 8] = False
    noise = objective.draw_noise(x)
    other = torch.where(observed.unsqueeze(-1), x, 100.0)
    loss = objective(x=x, observed=observed, noise=noise)
    torch.testing.assert_close(loss, objective(x=other, observed=observed, noise=noise))
    assert loss != objective(x=x, noise=noise)
    everything = torch.ones_like(observed)
    torch.testing.assert_close(
        objective(x=x, observed=everything, noise=noise), objective(x=x, noise=noise)
    )


# --- the training around it ---


def test_weight_decay_rises_with_the_epochs():
    estimator = lfads(
        max_epochs=5, ramp_epochs=3, weight_decay=0.4, batch_size=20, callbacks=[BatchSpy()]
    )
    assert callback_of(estimator.fit(SHORT), BatchSpy).setting("weight_decay") == pytest.approx(
        [0.1, 0.2, 0.3, 0.4, 0.4]
    )
    constant = lfads(ramp_epochs=0, batch_size=20, callbacks=[BatchSpy()]).fit(SHORT)
    assert callback_of(constant, BatchSpy).setting("weight_decay") == [1e-3, 1e-3]
    own = LRScheduler(StepLR, step_size=1)  # in place of the estimator's learning rate alone
    estimator = lfads(ramp_epochs=1, weight_decay=0.4, batch_size=20, callbacks=[own, BatchSpy()])
    assert callback_of(estimator.fit(SHORT), BatchSpy).setting("weight_decay") == pytest.approx(
        [0.2, 0.4]
    )


def literal_plateau(losses, lr):
    """Learning rate of each batch: 5 % less after the 7th batch in a row that is no better."""
    rates, best, n_bad = [], np.inf, 0
    for loss in losses:
        rates.append(lr)
        best, n_bad = (loss, 0) if loss < best else (best, n_bad + 1)
        if n_bad == 7:
            lr, n_bad = max(0.95 * lr, 1e-5), 0
    return rates


def test_plateau_follows_every_batch():
    params = {"schedule": "plateau", "batch_size": 2, "max_epochs": 8, "lr": 0.03}
    spy = callback_of(lfads(**params, callbacks=[BatchSpy()]).fit(SHORT), BatchSpy)
    rates = spy.setting("lr")
    assert rates == pytest.approx(literal_plateau(spy.losses_, 0.03))
    assert len(set(rates)) > 3
    one_cycle = lfads(schedule="one_cycle", batch_size=2, callbacks=[BatchSpy()]).fit(SHORT)
    assert callback_of(one_cycle, BatchSpy).setting("lr")[0] == pytest.approx(1e-3 / 25)


@pytest.mark.parametrize("plateau", [ReduceOnPlateau, ReduceOnValidationPlateau])
def test_the_floor_of_the_learning_rate(plateau):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=1e-3)
    callback = plateau()
    callback.on_train_begin(SimpleNamespace(optimizer_=optimizer))
    rates = []
    for _ in range(1000):
        rates.append(optimizer.param_groups[0]["lr"])
        callback.scheduler_.step(1.0)
    assert rates == pytest.approx(literal_plateau([1.0] * 1000, 1e-3), rel=1e-6)


@pytest.mark.parametrize("plateau", [ReduceOnPlateau, ReduceOnValidationPlateau])
def test_a_loss_that_falls_by_a_millionth_is_a_lower_loss(plateau):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    callback = plateau()
    callback.on_train_begin(SimpleNamespace(optimizer_=optimizer))
    for step in range(50):
        callback.scheduler_.step(1.0 - 1e-6 * step)
    assert optimizer.param_groups[0]["lr"] == 1e-3


class Errors(Callback):
    """Keep the reconstruction error of each validation, and the learning rate of each epoch."""

    def on_train_begin(self, net, **kwargs):
        self.errors_, self.rates_ = [], []

    def on_epoch_begin(self, net, **kwargs):
        self.rates_.append(net.optimizer_.param_groups[0]["lr"])
        self.batches = []

    def on_batch_end(self, net, batch, training, loss, **kwargs):
        if training:
            return
        module = net.module_
        with torch.no_grad(), module.seeded(net.seed):
            for seen in [*self.batches, batch["x"]]:  # the draws go on from batch to batch
                latent = module.model(seen, module.encode(seen), module.draw_noise(seen)[:2])
        error = module.error(batch["x"], latent, None)
        self.batches.append(batch["x"])
        self.errors_.append((len(self.rates_), len(batch["x"]), error.item()))


def smoothed_errors(errors):
    """Mean over the windows of a validation, then 0.3 of the last and 0.7 of the new one."""
    smoothed = {}
    for epoch in sorted({epoch for epoch, _, _ in errors}):
        parts = [(n, error) for e, n, error in errors if e == epoch]
        mean = sum(n * error for n, error in parts) / sum(n for n, _ in parts)
        last = smoothed[max(smoothed)] if smoothed else mean
        smoothed[epoch] = 0.3 * last + 0.7 * mean
    return smoothed


# What is learnt of sines grows worse at this; in batches of three, the last one has two.
NOISE = 3 * np.random.default_rng(1).normal(size=(5, 6, 2)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 2])
def test_validation_plateau_follows_the_smoothed_error_of_validation(every):
    """The reconstruction alone: not the divergences, whose weight still rises."""
    fitted = lfads(
        schedule="validation_plateau",
        max_epochs=26,
        validation_every=every,
        batch_size=3,
        lr=0.02,
        kl_weight=10.0,
        ramp_epochs=100,
        callbacks=[Errors()],
    ).fit(SHORT, X_val=NOISE)
    errors = callback_of(fitted, Errors)
    smoothed = smoothed_errors(errors.errors_)
    assert list(smoothed) == list(range(1, 27, every))
    after = literal_plateau([*smoothed.values(), 0.0], 0.02)
    expected = [after[(epoch + every - 1) // every] for epoch in range(26)]
    assert errors.rates_ == pytest.approx(expected)
    assert len(set(errors.rates_)) > 1
    schedule = callback_of(fitted, ReduceOnValidationPlateau)
    assert schedule.smoothed_ == pytest.approx(list(smoothed.values())[-1], rel=1e-5)


@pytest.mark.parametrize("given", [{"validation_fraction": 0}, {}])
def test_validation_plateau_needs_something_to_validate_on(given):
    with pytest.raises(ValueError, match="nothing to validate on: pass X_val, raise"):
        lfads(schedule="validation_plateau", **given).fit(SHORT[: 20 if given else 1])


def test_a_killed_run_resumes_its_smoothed_error(tmp_path):
    params = {"schedule": "validation_plateau", "max_epochs": 14, "lr": 0.02}
    params |= {"validation_every": 1, "batch_size": 20, "deterministic_validation": False}
    expected = lfads(**params, callbacks=[BatchSpy()]).fit(SHORT, X_val=NOISE)
    rates = callback_of(expected, BatchSpy).setting("lr")
    assert rates[-1] != rates[0]
    stored = params | {"checkpoint_dir": tmp_path}
    with killed(5, 1):
        lfads(**stored, callbacks=[BatchSpy()]).fit(SHORT, X_val=NOISE)
    resumed = lfads(**stored, callbacks=[BatchSpy()]).fit(SHORT, X_val=NOISE)
    assert callback_of(resumed, BatchSpy).setting("lr") == rates
    assert histories_match(resumed.history_, expected.history_)
    np.testing.assert_array_equal(resumed.transform(SHORT), expected.transform(SHORT))
    first, second = (callback_of(fit, ReduceOnValidationPlateau) for fit in (resumed, expected))
    assert first.smoothed_ == second.smoothed_


@pytest.mark.parametrize("at", [(2, 3), (4, 1)])
def test_a_killed_run_resumes_to_the_same_bits(tmp_path, at):
    params = {
        "schedule": "plateau",
        "batch_size": 2,
        "max_epochs": 5,
        "lr": 0.1,
        "deterministic_validation": False,
    }
    expected = lfads(**params, callbacks=[BatchSpy()]).fit(SHORT)
    rates = callback_of(expected, BatchSpy).setting("lr")
    assert rates[-1] != rates[8]
    with killed(*at):
        lfads(**params, checkpoint_dir=tmp_path, callbacks=[BatchSpy()]).fit(SHORT)
    resumed = lfads(**params, checkpoint_dir=tmp_path, callbacks=[BatchSpy()]).fit(SHORT)
    assert histories_match(resumed.history_, expected.history_)
    assert callback_of(resumed, BatchSpy).setting("lr") == rates
    np.testing.assert_array_equal(resumed.transform(SHORT), expected.transform(SHORT))


@pytest.mark.parametrize("deterministic", [True, False])
def test_validation_draws_anew_only_if_asked_to(deterministic):
    params = {"lr": 1e-30, "weight_decay": 0.0, "ramp_epochs": 0, "validation_every": 1}
    history = lfads(**params, deterministic_validation=deterministic).fit(SHORT).history_
    losses = {epoch["valid_loss"] for epoch in history}
    assert len(losses) == (1 if deterministic else 2)


def test_defaults():
    estimator = LFADSTransformer()
    assert (estimator.gradient_clip_value, estimator.weight_decay) == (1.0, 1e-3)
    assert (estimator.kl_weight, estimator.loss_scale, estimator.ramp_epochs) == (1e-5, 0.1, 10)
    assert (estimator.initial_condition_dim, estimator.generator_dim) == (64, 64)
    assert (estimator.factor_dim, estimator.inferred_input_dim) == (128, 64)
    assert (estimator.controller_dim, estimator.controller_encoder_dim) == (64, 64)
    assert (estimator.controller_lag, estimator.state_clip) == (2, 1.0)
    assert estimator.schedule == "plateau"


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"generator_dim": 0}, ValueError),
        ({"factor_dim": 2.0}, TypeError),
        ({"controller_lag": -1}, ValueError),
        ({"ramp_epochs": -1}, ValueError),
        ({"state_clip": 0.0}, ValueError),
        ({"state_clip": 1e300}, ValueError),
        ({"loss_scale": 0.0}, ValueError),
        ({"kl_weight": -1.0}, ValueError),
        ({"schedule": "constant"}, ValueError),
    ],
)
def test_bad_parameters_are_named(params, error):
    (name,) = params
    with pytest.raises(error, match=f"{name} must be"):
        lfads(**params).fit(X)


# --- presets ---

# Data set: epochs, batch, learning rate.
PARAMS = {
    "har": (10, 128, 1e-3),
    "ecg": (10, 128, 1e-3),
    "ppg": (10, 64, 1e-3),
    "eeg": (10, 128, 1e-3),
    "synthetic": (100, 128, 1e-3),
    "har-transfer": (100, 32, 1e-3),
    "eeg-transfer": (100, 128, 1e-4),
}
# Data set: mode, channels, window, down-sampling, strides, fractions.
WINDOWS = {
    "har": ("labeled", 6, 128, 1, None, None, 1.0, 0.5),
    "ecg": ("labeled", 2, 500, 5, None, None, 0.25, 0.1),
    "ppg": ("labeled", 1, 960, 4, None, None, 1.0, 1.0),
    "eeg": ("labeled", 2, 1000, 3, None, None, 0.1, 0.1),
    "synthetic": ("labeled", 3, 100, 1, None, None, 1.0, 1.0),
    "har-transfer": ("random", 6, 500, 1, 128, 128, 1.0, 1.0),
    "eeg-transfer": ("random", 1, 200, 1, 200, 200, 0.1, 0.1),
}


@pytest.mark.parametrize("dataset", PARAMS)
def test_presets(dataset):
    estimator = LFADSTransformer(**presets.get("lfads", dataset))
    assert (estimator.max_epochs, estimator.batch_size, estimator.lr) == PARAMS[dataset]
    assert (estimator.schedule, estimator.deterministic_validation) == ("plateau", True)
    published = LFADSTransformer(**presets.get("lfads", dataset, published=True))
    assert (published.schedule, published.deterministic_validation) == ("plateau", False)
    official = LFADSTransformer(**presets.get("lfads", dataset, official=True))
    assert (official.schedule, official.validation_every) == ("validation_plateau", 1)
    assert (official.max_epochs, official.batch_size, official.lr) == PARAMS[dataset]
    keys = "mode n_channels length downsample stride stride_val fraction fraction_val".split()
    cut = presets.windows("lfads", dataset)
    assert tuple(cut[key] for key in keys) == WINDOWS[dataset]


# --- a whole training ---


def test_twenty_updates_equal_an_independent_training():
    """Draws, loss, ramps, clipping, AdamW and the schedule, written out in plain torch."""
    estimator = lfads(
        **SIZES | {"max_epochs": 10, "ramp_epochs": 3, "batch_size": 4, "kl_weight": 0.1},
        schedule="plateau",
        lr=3e-3,
        weight_decay=0.1,
        gradient_clip_value=0.01,
        validation_fraction=0,
        callbacks=[BatchSpy()],
    ).fit(X[:8, :5])
    spy = callback_of(estimator, BatchSpy)
    objective = copy.deepcopy(spy.before_)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=3e-3)
    schedule = ReduceLROnPlateau(optimizer, factor=0.95, patience=6, threshold=0.0, min_lr=1e-5)
    draws = torch.Generator().manual_seed(objective.seed)
    assert len(spy.batches_) == 20
    for j, x in enumerate(batch["x"] for batch in spy.batches_):
        shapes = (4, 3), (5, 4, 2), (5, 4, 2)
        noise = Noise(*(torch.randn(shape, generator=draws) for shape in shapes))
        objective.epoch = j // 2
        optimizer.param_groups[0]["weight_decay"] = 0.1 * min((j // 2 + 1) / 4, 1.0)
        loss = literal_loss(objective, x, noise, kl_weight=0.1, n_ramp=3)
        optimizer.zero_grad()
        loss.backward()
        for parameter in objective.parameters():
            if parameter.grad is not None:
                parameter.grad.clamp_(-0.01, 0.01)
        optimizer.step()
        schedule.step(loss.item())
        assert loss.item() == pytest.approx(spy.losses_[j], rel=1e-4)
    pairs = zip(
        spy.before_.parameters(),
        objective.parameters(),
        estimator.net_.module_.parameters(),
        strict=True,
    )
    for start, expected, actual in pairs:
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)
        assert (actual - start).abs().max() > 5e-3


def test_the_loss_falls():
    history = lfads(max_epochs=12, lr=0.02, validation_fraction=0).fit(SHORT).history_
    assert history[-1]["train_loss"] < history[0]["train_loss"] - 0.01
