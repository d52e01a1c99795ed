import copy
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pulse import presets
from sklearn_pulse.baselines import DSVAETransformer
from sklearn_pulse.baselines._dsvae import DisentangledSequence, Noise
from tests.helpers import BatchSpy, callback_of, make_windows, small

SIZES = {
    "embedding_dim": 6,
    "encoder_hidden_dim": 5,
    "encoder_depth": 2,
    "static_dim": 3,
    "dynamic_dim": 2,
    "posterior_hidden_dim": 4,
    "prior_hidden_dim": 3,
    "decoder_hidden_dim": 5,
}
X = make_windows()[0]


def make_objective(n_channels=2, seed=0, **params):
    """Build an objective whose posteriors differ from their priors by more than a little."""
    torch.manual_seed(seed)
    objective = DisentangledSequence(n_channels, **SIZES | params)
    with torch.no_grad():
        for parameter in objective.model.parameters():
            parameter *= 2.0
    return objective


dsvae = partial(small, DSVAETransformer)


# --- the formula, written out ---


def literal_lstm(weights, xs, hidden_dim):
    """States of an LSTM over a list of vectors, step by step."""
    w, u, b, c = weights
    h, cell, states = torch.zeros(hidden_dim), torch.zeros(hidden_dim), []
    for x in xs:
        i, f, g, o = (w @ x + b + u @ h + c).chunk(4)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(cell)
        states.append(h)
    return states


def literal_window(objective, x, theta, noise):
    """Squared errors of a window, and all that its divergences need."""
    model = objective.model
    v_mean, v_logvar = model.static(theta).chunk(2)
    v = v_mean + torch.exp(v_logvar / 2) * noise[0]
    inputs = [torch.cat([step, v]) for step in x]
    weights = [
        [
            getattr(model.lstm, f"{name}_l0{end}")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        for end in ("", "_reverse")
    ]
    forwards = literal_lstm(weights[0], inputs, 4)
    backwards = literal_lstm(weights[1], inputs[::-1], 4)[::-1]
    h, before, posteriors, zs, errors = torch.zeros(4), torch.zeros(2), [], [], []
    rnn = model.rnn
    for t in range(len(x)):
        h = torch.tanh(
            rnn.weight_ih_l0 @ torch.cat([forwards[t], backwards[t]])
            + rnn.bias_ih_l0
            + rnn.weight_hh_l0 @ h
            + rnn.bias_hh_l0
        )
        z_mean, z_logvar = model.dynamic(h).chunk(2)
        zs.append(z_mean + torch.exp(z_logvar / 2) * noise[1][t])
        posteriors.append((z_mean, z_logvar))
        first, second, last = model.decoder[0], model.decoder[2], model.decoder[4]
        errors.append(
            (last(torch.tanh(second(torch.tanh(first(torch.cat([v, zs[t]])))))) - x[t]) ** 2
        )
    prior_weights = [
        getattr(model.prior_lstm, f"{name}_l0")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    priors = [
        model.prior(state).chunk(2) for state in literal_lstm(prior_weights, [before, *zs[:-1]], 3)
    ]
    return torch.stack(errors), (v_mean, v_logvar), posteriors, priors


def published_kl(mean, logvar, prior_mean, prior_logvar):
    """Summed, and without the constant of the divergence."""
    ratio = (logvar.exp() + (mean - prior_mean) ** 2) / (prior_logvar.exp() + 1e-10)
    return -0.5 * (logvar - prior_logvar - ratio).sum()


def literal_loss(objective, x, noise, loss, kl_weight):
    theta = objective.encode(x)
    total, kl, constant = [], 0.0, 0.0
    for i in range(len(x)):
        errors, (v_mean, v_logvar), posteriors, priors = literal_window(
            objective, x[i], theta[i], (noise.static[i], noise.dynamic[:, i])
        )
        total.append(errors)
        kl += published_kl(v_mean, v_logvar, 0 * v_mean, 0 * v_mean)
        constant += 0.5 * len(v_mean)
        for posterior, prior in zip(posteriors, priors, strict=True):
            kl += published_kl(*posterior, *prior)
            constant += 0.5 * len(posterior[0])
    if loss == "weighted":
        return torch.stack(total).mean() + kl_weight * kl
    return (torch.stack(total).sum() + kl_weight * (kl - constant)) / len(x)


CASES = [
    ({}, "weighted", 1e-5),
    ({"kl_weight": 0.3}, "weighted", 0.3),
    ({"loss": "elbo"}, "elbo", 1.0),
    ({"loss": "elbo", "kl_weight": 0.1}, "elbo", 0.1),
]


@pytest.mark.parametrize(("params", "loss", "kl_weight"), CASES)
def test_loss_and_gradient_literally(params, loss, kl_weight):
    objective = make_objective(**params)
    x = torch.randn(3, 7, 2)
    noise = objective.draw_noise(x)
    actual = objective(x=x, noise=noise)
    expected = literal_loss(objective, x, noise, loss, kl_weight)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)
    names, parameters = zip(*objective.named_parameters(), strict=True)
    mine = torch.autograd.grad(actual, parameters, allow_unused=True)
    theirs = torch.autograd.grad(expected, parameters, allow_unused=True)
    for name, a, b, p in zip(names, mine, theirs, parameters, strict=True):
        a, b = (torch.zeros_like(p) if g is None else g for g in (a, b))
        torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-6, msg=name)


# --- missing steps ---


@settings(max_examples=20, deadline=None)
@given(
    n_timesteps=st.integers(2, 9),
    loss=st.sampled_from(["weighted", "elbo"]),
    seed=st.integers(0, 99),
)
def test_missing_steps_are_left_out(n_timesteps, loss, seed):
    """Given its embedding, a window with gaps has the loss of its observed steps alone."""
    objective = make_objective(loss=loss, kl_weight=0.3)
    theta = torch.randn(1, 6)
    objective.encode = lambda x, observed=None: theta
    draws = torch.Generator().manual_seed(seed)
    x = torch.randn(1, n_timesteps, 2, generator=draws)
    observed = torch.rand(1, n_timesteps, generator=draws) < 0.6
    observed[0, seed % n_timesteps] = True
    noise = objective.draw_noise(x)
    count = int(observed.sum())
    torch.testing.assert_close(
        objective(x=x, observed=observed, noise=noise),
        objective(x=x[:, observed[0]], noise=Noise(noise.static, noise.dynamic[:count])),
    )


def test_windows_with_other_gaps_do_not_touch_one_another():
    objective = make_objective(loss="elbo")
    x = torch.randn(3, 9, 2)
    observed = torch.ones(3, 9, dtype=torch.bool)
    observed[0, 3:5] = observed[1, 0] = observed[2, 4:] = False
    noise = objective.draw_noise(x)
    apart = [
        objective(
            x=x[[i]],
            observed=observed[[i]],
            noise=Noise(noise.static[[i]], noise.dynamic[:, [i]]),
        )
        for i in range(3)
    ]
    other = torch.where(observed.unsqueeze(-1), x, 100.0)
    for values in (x, other):
        loss = objective(x=values, observed=observed, noise=noise)
        torch.testing.assert_close(loss, sum(apart) / 3)


@pytest.mark.parametrize("loss", ["weighted", "elbo"])
def test_padding_with_missing_steps_leaves_the_loss(loss):
    objective = make_objective(loss=loss, kl_weight=0.3)
    x = torch.randn(3, 7, 2)
    padded = torch.cat([x, torch.full((3, 4, 2), 9.0)], dim=1)
    observed = torch.arange(11).expand(3, 11) < 7
    noise = objective.draw_noise(padded)
    expected = objective(x=x, noise=Noise(noise.static, noise.dynamic[:7]))
    torch.testing.assert_close(objective(x=padded, observed=observed, noise=noise), expected)


# --- parameters ---


@pytest.mark.parametrize("deterministic", [True, False])
def test_validation_draws_anew_only_if_asked_to(deterministic):
    params = {"lr": 1e-30, "weight_decay": 0.0, "validation_every": 1}
    history = dsvae(**params, deterministic_validation=deterministic).fit(X).history_
    losses = {epoch["valid_loss"] for epoch in history}
    assert len(losses) == (1 if deterministic else 2)


def test_each_size_is_that_of_its_layers():
    model = dsvae(
        static_dim=3,
        dynamic_dim=5,
        posterior_hidden_dim=7,
        prior_hidden_dim=2,
        decoder_hidden_dim=4,
    )
    model = model.fit(X).net_.module_.model
    assert model.static.out_features == 6
    assert (model.lstm.input_size, model.lstm.hidden_size, model.lstm.bidirectional) == (5, 7, True)
    assert (model.rnn.input_size, model.rnn.hidden_size) == (14, 7)
    assert (model.prior_lstm.input_size, model.prior_lstm.hidden_size) == (5, 2)
    assert [layer.out_features for layer in model.decoder[::2]] == [4, 4, 2]


@pytest.mark.slow
def test_bfloat16_on_a_processor_that_has_no_lstm_for_it():
    """oneDNN is told to pass for a processor without AVX-512, in an interpreter of its own."""
    code = """
import numpy as np
from tests.baselines.test_dsvae import X, dsvae
gaps = X.copy()
gaps[::3, 4:7] = np.nan
for windows in (X, gaps):
    assert np.isfinite(dsvae(precision="bfloat16").fit_transform(windows)).all()
"""
    old = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    subprocess.run([sys.executable, "-c", code], env=old, check=True, cwd=Path(__file__).parents[2])


def test_defaults():
    estimator = DSVAETransformer()
    assert (estimator.static_dim, estimator.dynamic_dim) == (64, 64)
    assert (estimator.posterior_hidden_dim, estimator.prior_hidden_dim) == (64, 16)
    assert (estimator.decoder_hidden_dim, estimator.loss) == (64, "weighted")
    assert (estimator.gradient_clip_value, estimator.weight_decay) == (5.0, 1e-5)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"static_dim": 0}, ValueError, "static_dim must be an integer"),
        ({"prior_hidden_dim": 1.5}, TypeError, "prior_hidden_dim must be an integer"),
        ({"loss": "beta"}, ValueError, "loss must be one of 'weighted', 'elbo'"),
        ({"kl_weight": -1.0}, ValueError, "kl_weight must be a number"),
    ],
)
def test_bad_parameters_are_named(params, error, message):
    with pytest.raises(error, match=message):
        dsvae(**params).fit(X)


# --- presets ---

# Data set: learning rate, batch, weight of the divergences.
PARAMS = {
    "har": (1e-5, 64, 1e-5),
    "ecg": (1e-5, 64, 1e-5),
    "ppg": (1e-5, 64, 1e-5),
    "eeg": (1e-5, 64, 1e-5),
    "synthetic": (1e-3, 128, 1e-4),
    "har-transfer": (1e-5, 64, 1e-5),
    "eeg-transfer": (1e-4, 64, 1e-5),
}
# Data set: mode, channels, window, down-sampling, strides, fractions.
WINDOWS = {
    "har": ("random", 6, 128, 1, 128, 128, 1.0, 1.0),
    "ecg": ("random", 2, 500, 5, 500, 500, 1.0, 0.1),
    "ppg": ("labeled", 1, 960, 4, None, None, 1.0, 1.0),
    "eeg": ("random", 2, 1000, 3, 250, 1000, 0.1, 0.1),
    "synthetic": ("labeled", 3, 100, 1, None, None, 1.0, 1.0),
    "har-transfer": ("random", 6, 500, 1, 128, 128, 1.0, 1.0),
    "eeg-transfer": ("random", 1, 200, 1, 200, 200, 0.1, 0.1),
}


@pytest.mark.parametrize("dataset", PARAMS)
def test_presets(dataset):
    estimator = DSVAETransformer(**presets.get("dsvae", dataset))
    objective = DisentangledSequence(2, kl_weight=estimator.kl_weight)
    assert (estimator.lr, estimator.batch_size, objective.kl_weight) == PARAMS[dataset]
    assert (estimator.max_epochs, estimator.deterministic_validation) == (100, True)
    published = presets.get("dsvae", dataset, published=True)
    assert published == presets.get("dsvae", dataset) | {"deterministic_validation": False}
    official = DSVAETransformer(**presets.get("dsvae", dataset, official=True))
    assert (official.loss, official.kl_weight) == ("elbo", 1.0)
    keys = "mode n_channels length downsample stride stride_val fraction fraction_val".split()
    cut = presets.windows("dsvae", dataset)
    assert tuple(cut[key] for key in keys) == WINDOWS[dataset]


# --- a whole training ---


@pytest.mark.parametrize("loss", ["weighted", "elbo"])
def test_twenty_updates_equal_an_independent_training(loss):
    """Draws, loss, clipping, AdamW and the schedule, written out in plain torch."""
    estimator = dsvae(
        **SIZES | {"max_epochs": 10, "batch_size": 4, "loss": loss, "kl_weight": 0.1},
        lr=3e-3,
        weight_decay=0.1,
        gradient_clip_value=0.05,
        validation_fraction=0,
        callbacks=[BatchSpy()],
    ).fit(X[:8, :5])
    spy = callback_of(estimator, BatchSpy)
    objective = copy.deepcopy(spy.before_)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=1.0, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=20)
    draws = torch.Generator().manual_seed(objective.seed)
    assert len(spy.batches_) == 20
    for j, batch in enumerate(spy.batches_):
        noise = Noise(*(torch.randn(s, generator=draws) for s in ((4, 3), (5, 4, 2))))
        value = literal_loss(objective, batch["x"], noise, loss, 0.1)
        optimizer.zero_grad()
        value.backward()
        for parameter in objective.parameters():
            if parameter.grad is not None:
                parameter.grad.clamp_(-0.05, 0.05)
        optimizer.step()
        if j < 19:
            schedule.step()
        assert value.item() == pytest.approx(spy.losses_[j], rel=1e-4)
    pairs = zip(
        spy.before_.parameters(),
        objective.parameters(),
        estimator.net_.module_.parameters(),
        strict=True,
    )
    for start, expected, actual in pairs:
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)
        assert (actual - start).abs().max() > 5e-3


@pytest.mark.parametrize("loss", ["weighted", "elbo"])
def test_the_loss_falls(loss):
    history = dsvae(loss=loss, max_epochs=12, lr=0.02, validation_fraction=0).fit(X).history_
    assert history[-1]["train_loss"] < 0.8 * history[0]["train_loss"]
