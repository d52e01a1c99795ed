import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.frozen import FrozenEstimator
from torch import nn

from sklearn_pulse import FineTuneClassifier, presets
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.baselines import RandomEncoderTransformer, SimMTMTransformer
from sklearn_pulse.baselines._simmtm import MaskedNeighbors
from sklearn_pulse.networks import ConvEncoder
from sklearn_pulse.sampling import geometric_mask
from tests.helpers import SMALL, SMALL_ENCODER, BatchSpy, accepted, callback_of, make_windows, small
from tests.kills import killed
from tests.networks.test_conv_encoder import literal_encoder

X = make_windows()[0]
BACKBONES = ("cnn", "dilated")
simmtm = partial(small, SimMTMTransformer)


def objective(n_channels=2, n_timesteps=16, **params):
    torch.manual_seed(0)
    return MaskedNeighbors(n_channels, n_timesteps, **SMALL_ENCODER | params)


def draw(*shape, p=0.5, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < p


# --- the masks ---


def literal_chain(draws, ratio, mean_length):
    """A chain written out, one step after the other."""
    leave, enter = 1 / mean_length, ratio / (1 - ratio) / mean_length
    hidden = [bool(draws[0] < ratio)]
    for u in draws[1:]:
        if hidden[-1]:
            hidden.append(bool(u < 1 - leave))
        else:
            hidden.append(bool(u < enter))
    return hidden


@pytest.mark.parametrize(("ratio", "mean_length"), [(0.5, 3.0), (0.2, 5.0), (0.5, 1.2), (0.6, 2.0)])
def test_masks_are_markov_chains(ratio, mean_length):
    shape = (3, 50, 2)
    mask = geometric_mask(shape, ratio, mean_length, torch.Generator().manual_seed(1))
    draws = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    for i in range(3):
        for c in range(2):
            expected = literal_chain(draws[i, :, c].double().numpy(), ratio, mean_length)
            assert mask[i, :, c].tolist() == expected


@pytest.mark.parametrize(("ratio", "mean_length"), [(0.5, 3.0), (0.2, 5.0), (0.5, 1.2), (0.6, 2.0)])
def test_mask_statistics(ratio, mean_length):
    generator = torch.Generator().manual_seed(0)
    mask = geometric_mask((400, 200, 2), ratio, mean_length, generator).numpy()
    assert mask[:, 0].mean() == pytest.approx(ratio, abs=0.05)
    assert mask.mean() == pytest.approx(ratio, abs=0.02)
    before, after = mask[:, :-1], mask[:, 1:]
    assert (~after[before]).mean() == pytest.approx(1 / mean_length, abs=0.01)
    enter = ratio / (1 - ratio) / mean_length
    assert after[~before].mean() == pytest.approx(enter, abs=0.01)
    # Samples and channels have chains of their own.
    assert abs(np.corrcoef(mask[:, 50, 0], mask[:, 50, 1])[0, 1]) < 0.2
    # A run does not remember how long it has lasted.
    twice = before[:, :-1] & before[:, 1:]
    assert (~after[:, 1:][twice]).mean() == pytest.approx(1 / mean_length, abs=0.02)


def test_runs_of_one_step_alternate():
    mask = geometric_mask((5, 20, 1), 0.5, 1.0, torch.Generator().manual_seed(0))
    assert (mask[:, 1:] ^ mask[:, :-1]).all()


def test_one_chain_for_a_batch_runs_through_channels_and_samples():
    mine = objective(n_channels=3, mask_chain="batch", mean_mask_length=50.0, mask_ratio=0.3)
    x = torch.zeros(4, 16, 3)
    chain = mine.draw_masks(x).flatten()
    assert len(chain) == 3 * 4 * 16 * 3
    n_changes = (chain[1:] ^ chain[:-1]).sum().item()
    assert n_changes < 40  # along the flattened order; a chain a channel would have 36 starts
    expected = geometric_mask((1, len(chain), 1), 0.3, 50.0, torch.Generator().manual_seed(0))
    assert torch.equal(chain, expected.flatten())


def test_every_call_draws_other_masks():
    mine, x = objective(), torch.zeros(4, 16, 2)
    assert mine.draw_masks(x).shape == (12, 16, 2)
    assert not torch.equal(mine.draw_masks(x), mine.draw_masks(x))


# --- the published formula ---


def literal_loss(mine, x, masked, reconstruct, backbone, encoder=None):
    """The loss, one pair of views at a time."""
    batch = len(x)
    views = list(x)
    for k in range(mine.n_masks):
        for i in range(batch):
            views.append(torch.where(masked[k * batch + i], 0.0, x[i]))
    n = len(views)
    if backbone == "cnn":
        encoder = encoder or literal_encoder(mine.encoder)
        encoded = encoder(torch.stack(views).transpose(1, 2))
        steps = [row.T for row in encoded]  # (step, feature)
        flat = [row.flatten() for row in steps]
    else:
        steps = [mine.encoder.encode_steps(view.unsqueeze(0))[0] for view in views]
        flat = [mine.encoder.pool(row.unsqueeze(0))[0] for row in steps]
    projected = mine.projector(torch.stack(flat))
    similarity = [[None] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            norms = projected[i].square().sum().sqrt() * projected[j].square().sum().sqrt()
            similarity[i][j] = (projected[i] * projected[j]).sum() / norms
    constraint, rebuilt = 0.0, []
    for i in range(n):
        powers = [math.e ** (similarity[i][j] / mine.temperature) for j in range(n)]
        others = sum(powers[j] for j in range(n) if j != i)
        for j in range(n):
            if j != i and j % batch == i % batch:
                constraint -= torch.log(powers[j] / others) / n
        mean = sum(powers[j] / others * steps[j] for j in range(n) if j != i)
        if backbone == "cnn":
            rebuilt.append(mine.head(mean.flatten()).view_as(x[0]))
        else:
            rebuilt.append(torch.stack([mine.head(step) for step in mean]))
    rows = range(batch if reconstruct == "originals" else n)
    reconstruction = sum((rebuilt[i] - views[i]).square().mean() for i in rows) / len(rows)
    first, second = mine.loss_scale
    total = constraint / (2 * first**2) + torch.log(1 + first**2)
    return total + reconstruction / (2 * second**2) + torch.log(1 + second**2)


@pytest.mark.parametrize("reconstruct", ["originals", "inputs"])
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("n_masks", [1, 3])
def test_loss_is_the_published_formula(reconstruct, backbone, n_masks):
    params = {"reconstruct": reconstruct, "backbone": backbone, "n_masks": n_masks, "dropout": 0.0}
    mine = objective(n_timesteps=10, **params).eval()
    mine.loss_scale.data = torch.tensor([0.7, 1.6])
    x = torch.randn(3, 10, 2, generator=torch.Generator().manual_seed(1))
    masked = draw(3 * n_masks, 10, 2)
    loss = mine(x=x, masked=masked)
    literal = literal_loss(mine, x, masked, reconstruct, backbone)
    torch.testing.assert_close(loss, literal, rtol=1e-5, atol=1e-6)
    names = [name for name, _ in mine.named_parameters() if not name.startswith("encoder")]
    weights = [p for name, p in mine.named_parameters() if name in names]
    for ours, theirs in zip(
        torch.autograd.grad(loss, weights),
        torch.autograd.grad(literal, weights, allow_unused=True),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_batch_normalisation_sees_all_views_at_once():
    """In training the statistics are those of windows and copies together."""
    mine = objective(dropout=0.0).train()
    x, masked = torch.randn(4, 16, 2), draw(12, 16, 2)
    expected = literal_loss(copy.deepcopy(mine), x, masked, "originals", "cnn")
    torch.testing.assert_close(mine(x=x, masked=masked), expected, rtol=1e-5, atol=1e-5)


def test_dropout_in_training_only():
    mine, x, masked = objective(dropout=0.5), torch.randn(4, 16, 2), draw(12, 16, 2)
    for training in (True, False):
        mine.train(training)
        losses = {mine(x=x, masked=masked).item() for _ in range(2)}
        assert len(losses) == 1 + training


# --- missing steps ---


@pytest.mark.parametrize("reconstruct", ["originals", "inputs"])
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("training", [True, False])
def test_missing_steps_leave_no_trace_in_the_loss(backbone, training, reconstruct):
    mine = objective(backbone=backbone, reconstruct=reconstruct, dropout=0.0).train(training)
    for p in mine.encoder.parameters():
        nn.init.normal_(p, std=0.5)
    x, observed = torch.randn(4, 16, 2), draw(4, 16, p=0.7)
    batch = {"observed": observed, "masked": draw(12, 16, 2)}
    losses = []
    for fill in (0.0, 1e30 if backbone == "cnn" else 9.0):  # whose square float32 cannot hold
        filled = torch.where(observed.unsqueeze(-1), x, fill)
        losses.append(copy.deepcopy(mine)(x=filled, **batch))
    assert torch.equal(*losses)
    assert losses[0] != mine(x=x, masked=batch["masked"])


@pytest.mark.parametrize("backbone", BACKBONES)
def test_only_observed_steps_are_rebuilt(backbone):
    """The reconstruction is the mean over observed values, of windows with any number of them."""
    mine = objective(backbone=backbone).eval()
    mine.loss_scale.data = torch.tensor([1e4, 1.0])  # the constraint all but off
    nn.init.zeros_(mine.head.weight)
    nn.init.zeros_(mine.head.bias)
    x, observed = torch.randn(4, 16, 2), draw(4, 16)
    expected = x[observed].square().mean() / 2 + math.log(2) + math.log(1 + 1e8)
    loss = mine(x=x, observed=observed)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)


def test_running_statistics_do_not_count_missing_steps():
    mine = objective(dropout=0.0)
    for block in mine.encoder.blocks:
        nn.init.ones_(block.norm.bias)
    short, padded = objective(n_timesteps=8, dropout=0.0), copy.deepcopy(mine)
    short.encoder.load_state_dict(mine.encoder.state_dict())
    x, masked = torch.randn(4, 16, 2), draw(12, 16, 2)
    observed = torch.arange(16).expand(4, -1) < 8
    padded(x=x, observed=observed, masked=masked)
    short(x=x[:, :8], masked=masked[:, :8])
    for a, b in zip(padded.encoder.blocks, short.encoder.blocks, strict=True):
        torch.testing.assert_close(a.norm.running_mean, b.norm.running_mean)
        torch.testing.assert_close(a.norm.running_var, b.norm.running_var)


# --- parameters ---


def test_the_dilated_encoder_is_that_of_the_others():
    mine = simmtm(backbone="dilated", validation_fraction=0, lr=1e-12).fit(X)
    untrained = RandomEncoderTransformer(**SMALL_ENCODER, num_threads=1, random_state=0).fit(X)
    assert type(mine.encoder_) is type(untrained.encoder_)
    np.testing.assert_allclose(mine.transform(X), untrained.transform(X), atol=1e-5)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_windows_of_other_lengths_are_embedded_and_fine_tuned_on(backbone):
    fitted = simmtm(backbone=backbone).fit(X)
    assert fitted.transform(X[:, :9]).shape == (20, 8)
    with pytest.warns(UserWarning, match="never trained"):
        simmtm(backbone=backbone).fit(X[:, :7]).transform(X)
    tuned = FineTuneClassifier(FrozenEstimator(fitted), max_epochs=1, random_state=0, num_threads=1)
    assert tuned.fit(X[:, :9], make_windows()[1]).predict(X[:, :9]).shape == (20,)


def test_validation_of_another_length():
    with pytest.raises(ValueError, match="X_val has windows of 9 time steps, X of 16"):
        simmtm().fit(X, X_val=X[:, :9])
    history = simmtm(backbone="dilated").fit(X, X_val=X[:, :9]).history_
    assert np.isfinite(history[-1]["valid_loss"])


@pytest.mark.parametrize(
    "params",
    [
        {"backbone": "dilated"},
        {"dropout": 0.0},
        {"projector_hidden_dim": 32},
        {"projector_dim": 16},
        {"n_masks": 2},
        {"mask_ratio": 0.3},
        {"mean_mask_length": 6.0},
        {"mask_chain": "batch"},
        {"temperature": 0.5},
        {"reconstruct": "inputs"},
        {"schedule": "constant"},
        {"schedule": "cosine"},
        {"schedule": "constant", "betas": (0.5, 0.9)},
        {"deterministic_validation": False},
    ],
)
def test_each_parameter_matters(params):
    reference = {"schedule": params["schedule"]} if "betas" in params else {}
    losses = {
        simmtm(lr=0.05, **(reference | extra)).fit(X).history_[-1]["valid_loss"]
        for extra in ({}, params)
    }
    assert len(losses) == 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"backbone": "gru"}, "backbone must be one of 'cnn', 'dilated'"),
        ({"pooling": "cls"}, "pooling must be one of 'max', 'mean'"),
        ({"n_masks": 0}, "n_masks must be an integer of at least 1"),
        ({"projector_dim": 0}, "projector_dim must be an integer of at least 1"),
        ({"mask_ratio": 1.0}, "mask_ratio must be a number in"),
        ({"mask_ratio": 0.8}, "mask_ratio=0.8 leaves less than one step between"),
        ({"mean_mask_length": 0.5}, "mean_mask_length must be a number in"),
        ({"mask_chain": "time"}, "mask_chain must be one of 'channel', 'batch'"),
        ({"temperature": 0.0}, "temperature must be a number in"),
        ({"reconstruct": "copies"}, "reconstruct must be one of 'originals', 'inputs'"),
        ({"dropout": 1.0}, "dropout must be a number in"),
        ({"schedule": "step"}, "schedule must be one of 'one_cycle', 'cosine', 'constant'"),
        ({"betas": (0.9, 0.99)}, "goes with schedule='cosine' or 'constant' only"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        simmtm(**params).fit(X)


@pytest.mark.parametrize("mean_mask_length", [4, 9, 19.0])
def test_the_largest_ratio_leaves_one_step_between_two_runs(mean_mask_length):
    largest = mean_mask_length / (1 + mean_mask_length)
    params = {"mask_ratio": largest, "mean_mask_length": mean_mask_length}
    assert np.isfinite(simmtm(**params).fit(X).history_[-1]["train_loss"])
    with pytest.raises(ValueError, match="leaves less than one step between"):
        simmtm(**params | {"mask_ratio": largest + 1e-9}).fit(X)


def test_the_cosine_falls_by_the_epoch():
    fitted = simmtm(
        schedule="cosine", lr=0.01, betas=(0.9, 0.99), max_epochs=4, callbacks=[BatchSpy()]
    ).fit(X)
    spy = callback_of(fitted, BatchSpy)
    n_batches = fitted.history_[0]["train_batch_count"]
    rates = [0.005 * (1 + math.cos(math.pi * epoch / 4)) for epoch in range(4)]
    assert spy.setting("lr") == pytest.approx(np.repeat(rates, n_batches))
    assert set(spy.setting("betas")) == {(0.9, 0.99)}


def test_the_scales_of_the_losses_are_learnt():
    module = simmtm(lr=0.05).fit(X).net_.module_
    assert not torch.allclose(module.loss_scale, torch.ones(2), atol=1e-3)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_both_backbones_train_in_bfloat16(backbone):
    holes = X.copy()
    holes[::2, 5:] = np.nan
    for windows in (X, holes):
        fitted = simmtm(backbone=backbone, precision="bfloat16").fit(windows)
        exact = simmtm(backbone=backbone).fit(windows)
        assert fitted.history_[0]["train_loss"] != exact.history_[0]["train_loss"]
        embedding = fitted.transform(windows)
        assert embedding.dtype == np.float32
        assert np.isfinite(embedding).all()


def losses_of_encoded(mine, x, steps, projected):
    """Both losses in float64, and a bound on what bfloat16 changes in the second."""
    n, batch, unit = len(projected), len(x), 2.0**-9  # half of bfloat16's epsilon
    rows = projected.double() / projected.double().norm(dim=1, keepdim=True)
    powers = (rows @ rows.T / mine.temperature).exp().fill_diagonal_(0.0)
    shares = powers / powers.sum(1, keepdim=True)
    positive = [(i, (i + k) % n) for i in range(n) for k in range(batch, n, batch)]
    constraint = -sum(shares[i, j].log() for i, j in positive) / n
    steps = steps.double()
    shape = (batch, -1) if isinstance(mine.encoder, ConvEncoder) else (batch, *steps.shape[1:])
    pooled, size = (
        (shares[:batch] @ values.flatten(1)).view(shape) for values in (steps, steps.abs())
    )
    weight, bias = mine.head.weight.double(), mine.head.bias.double()
    errors = (pooled @ weight.T + bias).view_as(x) - x
    # The shares, the pooled steps, the weights, the bias and the output are rounded, each once;
    # the sixth unit holds the products of these errors and the rounding of the sums in float32.
    slack = 6 * unit * (size @ weight.abs().T + bias.abs()).view_as(x)
    bound = (2 * errors.abs() * slack + slack.square()).mean()
    return constraint, errors.square().mean(), bound


@pytest.mark.parametrize("backbone", BACKBONES)
def test_bfloat16_leaves_the_similarities_exact(backbone):
    """The loss is compared from the encoded views on: processors round the encoder differently."""
    mine, x, masked = objective(backbone=backbone), torch.randn(8, 16, 2), draw(24, 16, 2)
    encode, seen = mine._encode_views, []
    mine._encode_views = lambda *views: seen.append(encode(*views)) or seen[0]
    for scale in ([1.0, 1e6], [1e6, 1.0]):  # one of the losses, the other all but off
        mine.loss_scale.data = torch.tensor(scale)
        seen.clear()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            loss = mine(x=x, masked=masked).item()
        steps, projected = seen[0]
        assert projected.dtype == torch.bfloat16
        constraint, reconstruction, bound = losses_of_encoded(mine, x, steps, projected)
        offset = math.log(2) + math.log(1 + 1e12)
        if scale[0] == 1.0:
            # float32, of sums of 128 products: 128 + 32 roundings of 2**-24 and a few more
            assert 2 * (loss - offset) == pytest.approx(constraint.item(), rel=1e-4)
        else:
            assert 2 * (loss - offset) == pytest.approx(reconstruction.item(), abs=bound.item())


@pytest.mark.parametrize("schedule", ["one_cycle", "cosine"])
def test_a_killed_run_resumes(tmp_path, monkeypatch, schedule):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    params = {"max_epochs": 5, "deterministic_validation": False, "lr": 0.01, "schedule": schedule}
    expected = simmtm(**params).fit(X)
    with killed(3, 2):
        simmtm(**params, checkpoint_dir=tmp_path).fit(X)
    resumed = simmtm(**params, checkpoint_dir=tmp_path).fit(X)
    states = [fit.net_.module_.state_dict() for fit in (resumed, expected)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


# --- the training ---


@pytest.mark.parametrize("reconstruct", ["originals", "inputs"])
def test_twenty_updates_are_those_of_an_independent_step(reconstruct):
    """AdamW along one cycle, gradients clipped, on the literal loss of plain layers."""
    params = {"lr": 1e-3, "weight_decay": 1e-2, "gradient_clip_value": 0.01, "dropout": 0.0}
    params |= {"max_epochs": 4, "batch_size": 4, "validation_fraction": 0}
    fitted = simmtm(reconstruct=reconstruct, callbacks=[BatchSpy()], **params).fit(X)
    spy = callback_of(fitted, BatchSpy)
    assert [len(batch["x"]) for batch in spy.batches_] == [4] * 20
    mine, start = spy.before_.train(), spy.before_.state_dict()
    start = {name: tensor.clone() for name, tensor in start.items()}
    encoder = literal_encoder(mine.encoder)
    others = [mine.projector, mine.head]
    weights = [mine.loss_scale, *encoder.parameters()]
    weights += [p for module in others for p in module.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=20)
    for x in (batch["x"] for batch in spy.batches_):
        optimizer.zero_grad()
        literal_loss(mine, x, mine.draw_masks(x), reconstruct, "cnn", encoder).backward()
        for p in weights:
            p.grad.clamp_(-0.01, 0.01)
        optimizer.step()
        schedule.step()
    after, module = fitted.net_.module_.state_dict(), fitted.net_.module_
    for name in ("projector.0.weight", "projector.3.bias", "head.weight", "loss_scale"):
        torch.testing.assert_close(after[name], mine.state_dict()[name], rtol=1e-3, atol=1e-5)
        assert not torch.allclose(after[name], start[name], atol=1e-4)
    for i, block in enumerate(module.encoder.blocks):
        conv, norm = encoder[4 * i], encoder[4 * i + 1]
        torch.testing.assert_close(block.conv.weight, conv.weight, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(block.norm.weight, norm.weight, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(block.norm.running_mean, norm.running_mean, rtol=1e-3, atol=1e-5)
        assert not torch.allclose(block.conv.weight, start[f"encoder.blocks.{i}.conv.weight"])


def test_windows_to_validate_on_leave_the_statistics():
    params = {"deterministic_validation": False, "select": "last"}
    fits = [simmtm(**params).fit(X, X_val=X_val) for X_val in (X[:6], 20 * X[:6] + 7)]
    np.testing.assert_array_equal(*(fit.transform(X) for fit in fits))


def test_what_does_not_fill_a_batch_is_left_out():
    fitted = simmtm(batch_size=6, validation_fraction=0, callbacks=[BatchSpy()]).fit(X)
    spy = callback_of(fitted, BatchSpy)
    assert [len(batch["x"]) for batch in spy.batches_] == [6, 6, 6] * 2
    assert dict(fitted.net_.callbacks_)["lr_scheduler"].lr_scheduler_.total_steps == 6
    few = simmtm(batch_size=64, validation_fraction=0, callbacks=[BatchSpy()], max_epochs=1).fit(X)
    spy = callback_of(few, BatchSpy)
    assert [len(batch["x"]) for batch in spy.batches_] == [20]


# --- presets ---

# Data set: batch; mode, channels, window, down-sampling, strides, fraction.
TABLE = {
    "har": (64, "random", 6, 128, 1, 32, 128, 1.0),
    "ecg": (64, "labeled", 2, 500, 5, None, None, 0.5),
    "ppg": (64, "labeled", 1, 960, 4, None, None, 1.0),
    "eeg": (64, "random", 2, 1000, 3, 350, 1000, 0.5),
    "synthetic": (128, "random", 3, 100, 1, 50, 100, 1.0),
    "har-transfer": (64, "random", 6, 500, 1, 128, 128, 1.0),
    "eeg-transfer": (64, "random", 1, 200, 1, 200, 200, 0.1),
}
CUT = "mode n_channels length downsample stride stride_val fraction".split()


@pytest.mark.parametrize("dataset", TABLE)
def test_presets(dataset):
    estimator = SimMTMTransformer(**presets.get("simmtm", dataset))
    cut = presets.windows("simmtm", dataset)
    assert (estimator.batch_size, *(cut[name] for name in CUT)) == TABLE[dataset]
    assert cut["fraction_val"] == cut["fraction"]
    assert (estimator.n_masks, estimator.mask_ratio, estimator.mean_mask_length) == (3, 0.5, 3.0)
    assert (estimator.temperature, estimator.dropout) == (0.2, 0.2)
    assert (estimator.projector_hidden_dim, estimator.projector_dim) == (256, 128)
    assert (estimator.backbone, estimator.embedding_dim) == ("cnn", 128)
    assert (estimator.max_epochs, estimator.lr, estimator.weight_decay) == (100, 1e-3, 1e-5)
    assert (estimator.reconstruct, estimator.mask_chain) == ("originals", "channel")
    assert presets.get("simmtm", dataset, published=True) == presets.get("simmtm", dataset)
    assert set(presets.search_space("simmtm")) == {"max_epochs", "lr", "weight_decay"}


@pytest.mark.parametrize("dataset", TABLE)
def test_official_presets(dataset):
    official = SimMTMTransformer(**presets.get("simmtm", dataset, official=True))
    assert (official.lr, official.betas, official.schedule) == (1e-4, (0.9, 0.99), "cosine")
    assert (official.max_epochs, official.batch_size, official.weight_decay) == (10, 32, 0.0)
    assert (official.reconstruct, official.mask_chain) == ("inputs", "batch")
    official.set_params(**accepted(SimMTMTransformer, SMALL)).fit(X)
