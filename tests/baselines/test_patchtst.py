import copy
import math
import subprocess
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from sklearn_pulse import presets
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.baselines import PatchTSTTransformer
from sklearn_pulse.baselines._patchtst import PatchReconstruction, draw_hidden
from sklearn_pulse.networks._patches import standardize
from tests.baselines import literal_transformer as literal
from tests.helpers import SMALL, BatchSpy, InDouble, accepted, callback_of, make_windows, small
from tests.kills import killed

X = make_windows()[0]
SIZES = {"encoder_depth": 2, "n_heads": 2, "patch_length": 4}
PATCHTST = accepted(PatchTSTTransformer, SMALL) | SIZES
patchtst = partial(small, PatchTSTTransformer, **SIZES)


def objective(n_channels=2, n_timesteps=16, **params):
    torch.manual_seed(0)
    sizes = {"embedding_dim": 8, "encoder_hidden_dim": 12, "encoder_depth": 2}
    sizes |= {"n_heads": 2, "patch_length": 4}
    return PatchReconstruction(n_channels, n_timesteps, **sizes | params)


# --- the published formula ---


def literal_positions(n_positions, dim):
    angle = [[i / 10_000 ** (j // 2 * 2 / dim) for j in range(dim)] for i in range(n_positions)]
    table = np.array(
        [[math.sin(a) if j % 2 == 0 else math.cos(a) for j, a in enumerate(r)] for r in angle]
    )
    return torch.from_numpy((table - table.mean()) / (10 * table.std(ddof=1)))


def literal_loss(patchtst, x, hidden):
    """Standardise, cut, hide, encode token by token, reconstruct, average: one series at a time."""
    encoder = patchtst.encoder
    length, stride, dim = encoder.patch_length, encoder.patch_stride, len(encoder.cls_token)
    batch, n_timesteps, n_channels = x.shape
    n_patches = (n_timesteps - length) // stride + 1
    discarded = n_timesteps - length - stride * (n_patches - 1)
    positions = literal_positions(n_patches + 1, dim)
    targets, tokens = [], []
    for i in range(batch):
        for c in range(n_channels):
            series = x[i, :, c]
            mean = series.sum() / n_timesteps
            variance = (series - mean).square().sum() / n_timesteps
            series = ((series - mean) / (variance + 1e-5).sqrt())[discarded:]
            patches = [series[j * stride : j * stride + length] for j in range(n_patches)]
            shown = [p * (0.0 if hidden[i, c, j] else 1.0) for j, p in enumerate(patches)]
            embedded = [
                literal.linear(encoder.embed, p) + positions[j + 1] for j, p in enumerate(shown)
            ]
            targets.append(patches)
            tokens += [encoder.cls_token + positions[0], *embedded]
    for block in encoder.blocks:
        normed, attended = literal.batch_norm(block.norm1, tokens), []
        for first in range(0, len(tokens), n_patches + 1):
            sequence = normed[first : first + n_patches + 1]
            heads = block.attention.n_heads
            attended += literal.attention(block.attention, sequence, sequence, heads)
        tokens = [a + b for a, b in zip(tokens, attended, strict=True)]
        forward = literal.feed_forward(block.feed_forward, literal.batch_norm(block.norm2, tokens))
        tokens = [a + b for a, b in zip(tokens, forward, strict=True)]
    errors = []
    for row, patches in enumerate(targets):
        for j, patch in enumerate(patches):
            if hidden[row // n_channels, row % n_channels, j]:
                predicted = literal.linear(patchtst.head, tokens[row * (n_patches + 1) + 1 + j])
                errors.append((predicted - patch).square().sum() / length)
    return sum(errors) / len(errors)


@pytest.mark.parametrize("params", [{}, {"patch_stride": 1.0}, {"patch_length": 3, "n_heads": 4}])
def test_loss_and_gradients_literally(params):
    ours = objective(n_timesteps=12, **params).double().train()
    for p in ours.parameters():
        torch.nn.init.normal_(p, std=0.3)
    theirs = copy.deepcopy(ours)
    x = torch.randn(2, 12, 2).double() * 3 + 1
    hidden = torch.rand(2, 2, ours.encoder.n_patches) < 0.4
    hidden[0, 0, 0] = True
    loss, expected = ours(x=x, hidden=hidden), literal_loss(theirs, x, hidden)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    loss.backward()
    expected.backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "params",
    [{}, {"schedule": "constant", "betas": (0.95, 0.999), "gradient_clip_value": None}],
)
def test_twenty_updates_equal_an_independent_training(params):
    """Masks, loss, clipping, AdamW and the schedule, written out in plain torch."""
    fitted = patchtst(
        max_epochs=10,
        lr=1e-2,
        weight_decay=0.1,
        patch_stride=1.0,
        n_heads=1,
        batch_size=2,
        validation_fraction=0,
        select="last",
        embedding_dim=4,
        encoder_depth=1,
        gradient_clip_value=1e-2,
        callbacks=[InDouble(), BatchSpy()],
    )
    fitted.set_params(**params).fit(X[:4])
    spy = callback_of(fitted, BatchSpy)
    theirs, draws = spy.before_, torch.Generator().manual_seed(spy.before_.seed)
    optimizer = torch.optim.AdamW(
        theirs.parameters(), lr=1e-2, weight_decay=0.1, betas=params.get("betas", (0.9, 0.999))
    )
    schedule = None
    if not params:
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=20)
    assert len(spy.batches_) == 20
    for x in (batch["x"] for batch in spy.batches_):
        noise = torch.rand(2, 2, 4, generator=draws)
        n_kept = int(4 * (1 - 0.4))
        hidden = noise > noise.sort(-1).values[..., n_kept - 1 : n_kept]
        optimizer.zero_grad()
        literal_loss(theirs, x, hidden).backward()
        if not params:
            for p in theirs.parameters():
                p.grad.clamp_(-1e-2, 1e-2)
        optimizer.step()
        if schedule is not None:
            schedule.step()
    trained = dict(fitted.net_.module_.named_parameters())
    for name, expected in theirs.named_parameters():
        torch.testing.assert_close(trained[name], expected, rtol=0, atol=1e-6)


# --- masks and patches ---


@pytest.mark.parametrize("n_patches", [1, 2, 3, 7, 10, 20])
@pytest.mark.parametrize("mask_ratio", [0.1, 0.4, 0.8, 0.9, 1.0])
def test_how_many_patches_are_hidden(n_patches, mask_ratio):
    hidden = draw_hidden((5, 3, n_patches), mask_ratio, torch.Generator().manual_seed(0))
    n_kept = int(n_patches * (1 - Fraction(str(mask_ratio))))  # 10 * (1 - 0.8) in floats is below 2
    assert (hidden.sum(-1) == n_patches - n_kept).all()


def test_every_channel_and_window_hides_others_and_every_patch_is_as_likely():
    hidden = draw_hidden((2000, 2, 10), 0.4, torch.Generator().manual_seed(0))
    assert (hidden[:, 0] != hidden[:, 1]).any(-1).float().mean() > 0.9
    np.testing.assert_allclose(hidden.float().mean((0, 1)), 0.4, atol=0.05)


def test_patches_without_an_observed_step_are_not_counted():
    visible = torch.arange(10).expand(3, 10) < torch.tensor([[10], [5], [0]])
    hidden = draw_hidden((3, 2, 10), 0.4, torch.Generator().manual_seed(0), visible)
    assert not (hidden & ~visible.unsqueeze(1)).any()
    assert hidden.sum(-1).tolist() == [[4, 4], [2, 2], [0, 0]]
    full = torch.ones_like(visible)
    draws = [
        draw_hidden((3, 2, 10), 0.4, torch.Generator().manual_seed(0), v) for v in (None, full)
    ]
    assert torch.equal(*draws)


@pytest.mark.parametrize(("stride", "seen"), [(1.0, False), (0.5, True)])
def test_hidden_steps_are_seen_by_nobody(stride, seen):
    """Where patches touch, what is hidden moves no prediction; where they overlap it does."""
    mine, predictions = objective(1, patch_stride=stride).double().eval(), []
    for p in mine.parameters():
        torch.nn.init.normal_(p, std=0.5)
    mine.head.register_forward_hook(lambda module, args, out: predictions.append(out))
    x = torch.randn(2, 16, 1).double()
    first = mine.encoder.patch_stride  # of the patch that is hidden
    other = x.clone()
    other[:, first : first + 4] = x[:, first : first + 4].flip(1)  # the mean and variance stay
    hidden = torch.zeros(2, 1, mine.encoder.n_patches, dtype=torch.bool)
    for _ in range(2):
        mine(x=x, hidden=hidden)
        mine(x=other, hidden=hidden)
        hidden[:, :, 1] = True
    assert not torch.allclose(predictions[0], predictions[1], atol=1e-3)
    assert torch.allclose(predictions[2], predictions[3], rtol=0, atol=1e-9) != seen


def test_missing_steps_do_not_count():
    """Loss with missing steps: the literal mean over the observed steps of the hidden patches."""
    mine = objective(patch_stride=1.0).eval()
    x, observed = torch.randn(3, 16, 2), torch.ones(3, 16, dtype=torch.bool)
    observed[0, 2] = observed[1, 4:8] = False
    hidden = torch.tensor([True, True, False, False]).expand(3, 2, 4) & mine.encoder.visible(
        observed
    ).unsqueeze(1)
    loss = mine(x=x, observed=observed, hidden=hidden)
    other = torch.where(observed.unsqueeze(-1), x, 7.0)
    assert torch.equal(mine(x=other, observed=observed, hidden=hidden), loss)

    predictions = []
    hook = mine.head.register_forward_hook(lambda module, args, out: predictions.append(out))
    mine(x=x, observed=observed, hidden=hidden)
    hook.remove()
    errors = []
    for i in range(3):
        for c in range(2):
            values = x[i, observed[i], c]
            mean, std = values.mean(), (values.var(correction=0) + 1e-5).sqrt()
            for j in range(4):
                steps = [t for t in range(4 * j, 4 * j + 4) if observed[i, t]]
                if hidden[i, c, j]:
                    target = [(x[i, t, c] - mean) / std for t in steps]
                    guess = [predictions[0][i, c, j, t - 4 * j] for t in steps]
                    squared = [(a - b) ** 2 for a, b in zip(target, guess, strict=True)]
                    errors.append(sum(squared) / len(squared))
    torch.testing.assert_close(loss, sum(errors) / len(errors))


def test_steps_that_no_patch_reads_do_not_make_a_window():
    fitted = patchtst(patch_length=7, patch_stride=7).fit(
        X
    )  # 16 steps: the first two are left over
    unread = X[:3].copy()
    unread[1, 2:] = np.nan
    with pytest.raises(ValueError, match="no finite time step among steps 2 to 15, .* sample 1"):
        fitted.transform(unread)
    bags = np.stack([unread[:2], unread[1:]])
    np.testing.assert_allclose(fitted.transform(bags), fitted.transform(unread[[0, 2]]), atol=1e-6)


def test_missing_stretches_leave_loss_and_gradients_finite():
    mine = objective().train()
    observed = torch.ones(3, 16, dtype=torch.bool)
    observed[0, 3:] = observed[1] = False
    loss = mine(x=torch.randn(3, 16, 2), observed=observed)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in mine.parameters())


# --- parameters ---


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_the_embedding_is_that_of_every_channel(pooling):
    fitted = patchtst(pooling=pooling).fit(X)
    assert fitted.encoder_.embedding_dim == 16
    embedding = fitted.transform(X)
    other = X.copy()
    other[:, :, 1] = np.random.default_rng(1).normal(size=(20, 16))
    changed = fitted.transform(other)
    np.testing.assert_allclose(changed[:, :8], embedding[:, :8], atol=1e-6)
    assert (changed[:, 8:] != embedding[:, 8:]).any(1).all()
    alike = X[:, :, [0, 0]]
    twice = fitted.transform(alike)
    np.testing.assert_array_equal(twice[:, :8], twice[:, 8:])


def test_pooling_reads_these_tokens():
    x = torch.from_numpy(X)
    mine = objective().eval()
    tokens = mine.encoder.encode_patches(
        mine.encoder.cut(
            (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        )
    )
    expected = {
        "cls": tokens[:, :, 0],
        "mean": tokens[:, :, 1:].mean(2),
        "max": tokens[:, :, 1:].amax(2),
    }
    for pooling, value in expected.items():
        mine.encoder.pooling = pooling
        torch.testing.assert_close(mine.encode(x), value.flatten(1))


def test_scale_and_offset_of_a_channel_do_not_matter():
    fitted = patchtst().fit(X)
    np.testing.assert_allclose(
        fitted.transform(X * [3.0, 0.5] + [10.0, -2.0]), fitted.transform(X), atol=1e-3
    )


def test_training_reads_the_last_block_at_hidden_patches_alone():
    """Eight windows whose loss reads two of four patches; at `transform`, every token counts."""

    class Tokens(Callback):
        def on_train_begin(self, net, **kwargs):
            self.n_tokens = []
            for block in net.module_.encoder.blocks:
                block.feed_forward.register_forward_pre_hook(
                    lambda _, arguments: self.n_tokens.append(arguments[0].shape[1])
                )

    estimator = patchtst(
        patch_length=4, patch_stride=4, mask_ratio=0.5, encoder_depth=2, callbacks=[Tokens()]
    )
    estimator.set_params(validation_fraction=0).fit(X[:8])
    tokens = callback_of(estimator, Tokens)
    assert set(tokens.n_tokens[::2]) == {5}
    assert set(tokens.n_tokens[1::2]) == {2}
    tokens.n_tokens.clear()
    estimator.transform(X[:8])
    assert set(tokens.n_tokens) <= {5}


def test_initial_weights_are_those_of_the_published_code():
    """Linear weights and the CLS token N(0, 0.02^2), biases zero, positions fixed."""
    mine = PatchReconstruction(1, 128, embedding_dim=128)
    for module in mine.modules():
        if isinstance(module, torch.nn.Linear):
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.15)
            assert not module.bias.any()
    assert mine.encoder.cls_token.std().item() == pytest.approx(0.02, rel=0.3)
    assert "encoder.positions" not in dict(mine.named_parameters())


def test_number_of_parameters():
    """The sum over the layers as the method describes them, here for the published HAR run."""
    d, p, ffn = 64, 12, 512
    block = 4 * (d * d + d) + (d * ffn + ffn) + (ffn * d + d) + 2 * 2 * d
    expected = (p * d + d) + d + 3 * block + (d * p + p)
    mine = PatchReconstruction(6, 128)
    assert sum(p.numel() for p in mine.parameters()) == expected


def test_published_loss_is_divided_by_the_batch():
    x, hidden = torch.from_numpy(X), torch.rand(20, 2, 7) < 0.5
    mean, published = (
        objective(loss_reduction=r)(x=x, hidden=hidden) for r in ("mean", "published")
    )
    torch.testing.assert_close(published, mean / 20)


@pytest.mark.parametrize(
    ("stride", "n_patches"), [(1, 117), (0.5, 20), (1.0, 10), (12, 10), (4, 30)]
)
def test_number_of_patches(stride, n_patches):
    assert PatchReconstruction(1, 128, patch_stride=stride).encoder.n_patches == n_patches


@pytest.mark.parametrize(
    "params",
    [
        {"dropout": 0.3},
        {"activation": "relu"},
        {"mask_ratio": 0.7},
        {"patch_stride": 1},
        {"n_heads": 4},
        {"schedule": "constant"},
        {"schedule": "constant", "betas": (0.5, 0.9)},
        {"gradient_clip_value": 1e-4},
        {"deterministic_validation": False},
    ],
)
def test_each_parameter_matters(params):
    """It changes what is learnt, from what the same parameters without its last one learn."""
    *others, last = params
    without = patchtst(lr=0.05, **{name: params[name] for name in others}).fit(X)
    with_it = patchtst(lr=0.05, **params).fit(X)
    assert with_it.history_[-1]["valid_loss"] != without.history_[-1]["valid_loss"], last


def test_dropout_is_off_in_deterministic_validation_and_at_transform():
    mine = objective(dropout=0.5)
    x, hidden = torch.from_numpy(X), torch.ones(20, 2, 7, dtype=torch.bool)
    assert mine.eval()(x=x, hidden=hidden) == mine(x=x, hidden=hidden)
    assert mine.train()(x=x, hidden=hidden) != mine(x=x, hidden=hidden)


def test_published_validation_moves_the_running_statistics():
    def mean(deterministic):
        return (
            patchtst(deterministic_validation=deterministic, lr=1e-12, max_epochs=1, select="last")
            .fit(X)
            .encoder_.blocks[0]
            .norm1.running_mean
        )

    assert not torch.equal(mean(True), mean(False))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"embedding_dim": 6, "n_heads": 4}, "embedding_dim=6 must be a multiple of n_heads=4"),
        ({"pooling": "last"}, "pooling must be one of 'cls', 'mean', 'max'"),
        ({"activation": "tanh"}, "activation must be one of"),
        ({"patch_length": 0}, "patch_length must be an integer of at least 1"),
        ({"patch_stride": 0}, "patch_stride must be an integer of at least 1"),
        ({"patch_stride": 1.1}, "patch_stride must be a number in"),
        ({"patch_stride": 5}, "patch_stride=5 leaves steps between patches of patch_length=4"),
        ({"mask_ratio": 0.0}, "mask_ratio must be a number in"),
        ({"dropout": 1.0}, "dropout must be a number in"),
        ({"loss_reduction": "sum"}, "loss_reduction must be one of"),
        ({"schedule": "cosine"}, "schedule must be one of"),
        ({"betas": (0.9, 0.999)}, "betas=.* goes with schedule='constant'"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        patchtst(**params).fit(X)


def test_fractions_of_numpy_are_fractions():
    strided = patchtst(patch_stride=np.float32(0.5)).fit(X)
    assert strided.encoder_.patch_stride == 2
    touching = patchtst(patch_length=np.float32(0.25), patch_stride=4).fit(X)
    assert (touching.encoder_.patch_length, touching.encoder_.patch_stride) == (4, 4)
    with pytest.raises(ValueError, match="patch_stride must be a number in"):
        patchtst(patch_stride=np.float32(1.5)).fit(X)


@pytest.mark.parametrize(("stride", "n_windows"), [(1.0, 16), (1, 5)])
def test_a_block_of_windows_holds_no_more_tokens_than_steps(stride, n_windows):
    """Of 4096: 16 windows of 128 steps and 192 tokens, or 5 of 750, fractions rounded up."""
    windows, batches = make_windows(40, 128, 6)[0], []
    fitted = patchtst(patch_stride=stride, max_epochs=1).fit(windows[:8])
    fitted.encoder_.register_forward_pre_hook(lambda module, args: batches.append(len(args[0])))
    fitted.transform(windows)
    assert set(batches) == {n_windows}


def test_a_killed_run_resumes_with_the_running_statistics(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    params = {"max_epochs": 5, "dropout": 0.2, "deterministic_validation": False}
    expected = patchtst(**params).fit(X)
    with killed(3, 2):
        patchtst(**params, checkpoint_dir=tmp_path).fit(X)
    resumed = patchtst(**params, checkpoint_dir=tmp_path).fit(X)
    states = [fit.net_.module_.state_dict() for fit in (resumed, expected)]
    assert any("running_mean" in name for name in states[0])
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    np.testing.assert_array_equal(resumed.transform(X), expected.transform(X))


def test_warm_start_at_another_length():
    """No weight depends on the number of patches."""
    estimator = patchtst(warm_start=True).fit(X)
    before = estimator.encoder_.embed.weight.clone()
    estimator.set_params(lr=1e-12, max_epochs=1).fit(X[:, :12])
    torch.testing.assert_close(estimator.encoder_.embed.weight, before)
    assert estimator.encoder_.n_patches == 5


# --- presets ---

# Data set: patch, width, lr, batch; mode, channels, window, down-sampling, strides, fractions.
TABLE = {
    "har": (12, 64, 1e-5, 64, "random", 6, 128, 1, 128, 128, 1.0, 1.0),
    "ecg": (12, 128, 1e-4, 64, "random", 2, 500, 5, 128, 128, 0.25, 0.1),
    "ppg": (12, 320, 1e-4, 64, "labeled", 1, 960, 4, None, None, 1.0, 1.0),
    "eeg": (12, 320, 1e-4, 64, "random", 2, 1000, 3, 250, 1000, 0.1, 0.1),
    "synthetic": (10, 128, 1e-3, 128, "labeled", 3, 100, 1, None, None, 1.0, 1.0),
    "har-transfer": (12, 64, 1e-5, 64, "random", 6, 500, 1, 128, 128, 1.0, 1.0),
    "eeg-transfer": (12, 320, 1e-4, 64, "random", 1, 200, 1, 200, 200, 0.1, 0.1),
}
PUBLISHED_WIDTHS = {"har": 384, "ecg": 256, "ppg": 320, "eeg": 640, "synthetic": 384}
PUBLISHED_PATCHES = {"har": 117, "ecg": 489, "ppg": 949, "eeg": 989, "synthetic": 91}


@pytest.mark.parametrize("dataset", TABLE)
def test_presets(dataset):
    *params, mode, channels, length, downsample, stride, stride_val, part, part_val = TABLE[dataset]
    estimator = PatchTSTTransformer(**presets.get("patchtst", dataset))
    names = ("patch_length", "embedding_dim", "lr", "batch_size")
    assert [getattr(estimator, name) for name in names] == params
    assert (estimator.max_epochs, estimator.weight_decay, estimator.n_heads) == (100, 1e-5, 4)
    assert (estimator.patch_stride, estimator.schedule) == (0.5, "one_cycle")
    assert presets.windows("patchtst", dataset) == {
        "mode": mode,
        "n_channels": channels,
        "length": length,
        "downsample": downsample,
        "stride": stride,
        "stride_val": stride_val,
        "fraction": part,
        "fraction_val": part_val,
    }
    assert set(presets.search_space("patchtst")) == {"max_epochs", "lr", "weight_decay"}


@pytest.mark.parametrize("dataset", TABLE)
def test_published_presets(dataset):
    """A constant lr / 25, a patch at every step, no clipping, the widths of the publication."""
    estimator = PatchTSTTransformer(**presets.get("patchtst", dataset, published=True))
    assert estimator.lr == pytest.approx(TABLE[dataset][2] / 25)
    assert (estimator.schedule, estimator.betas) == ("constant", (0.95, 0.999))
    assert (estimator.patch_stride, estimator.gradient_clip_value) == (1, None)
    assert PatchTSTTransformer().gradient_clip_value is None
    assert (estimator.loss_reduction, estimator.deterministic_validation) == ("published", False)
    if dataset in PUBLISHED_WIDTHS:
        cut = presets.windows("patchtst", dataset)
        encoder = PatchReconstruction(
            cut["n_channels"],
            cut["length"],
            embedding_dim=estimator.embedding_dim,
            patch_length=estimator.patch_length,
            patch_stride=estimator.patch_stride,
            encoder_depth=1,
        ).encoder
        assert encoder.embedding_dim == PUBLISHED_WIDTHS[dataset]
        assert encoder.n_patches == PUBLISHED_PATCHES[dataset]


@pytest.mark.parametrize("dataset", TABLE)
def test_official_presets(dataset):
    official = PatchTSTTransformer(**presets.get("patchtst", dataset, official=True))
    assert (official.patch_stride, official.n_heads, official.activation) == (1.0, 16, "relu")
    assert (official.dropout, official.patch_length, official.embedding_dim) == (0.2, 12, 128)
    assert (official.lr, official.batch_size) == TABLE[dataset][2:4]


def test_a_published_run_keeps_its_learning_rate():
    published = presets.get("patchtst", "har", published=True)
    fitted = PatchTSTTransformer(**published | PATCHTST, callbacks=[BatchSpy()])
    fitted.fit(X)
    spy = callback_of(fitted, BatchSpy)
    assert set(spy.setting("lr")) == {1e-5 / 25}
    assert set(spy.setting("betas")) == {(0.95, 0.999)}


# --- memory ---

LONG_WINDOWS = """
import resource
import sys

import numpy as np

from sklearn_pulse import presets
from sklearn_pulse.baselines import PatchTSTTransformer

params = presets.get("patchtst", "ppg", published=True) | {"max_epochs": 1, "num_threads": 1}
X = np.random.default_rng(0).normal(size=(params["batch_size"], 960, 2)).astype(np.float32)
patchtst = PatchTSTTransformer(**params, validation_fraction=0, device="cpu", random_state=0)
patchtst.fit(X)
assert patchtst.history_[0]["train_batch_count"] == 1
embedding = patchtst.transform(X[:8])
assert (patchtst.encoder_.n_patches, embedding.shape) == (949, (8, 640))
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""


@pytest.mark.slow
def test_long_windows_with_a_patch_at_every_step_fit_into_memory():
    """A published batch for PPG, in two channels: 949 tokens each, and no table of all pairs."""
    pytest.importorskip("resource")  # not on Windows
    result = subprocess.run(
        [sys.executable, "-c", LONG_WINDOWS], capture_output=True, text=True, check=True
    )
    assert int(result.stdout) < 4e9


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_missing_patches_are_not_pooled(pooling):
    x = torch.from_numpy(X)
    mine = objective().eval()
    mine.encoder.pooling = pooling
    seen = torch.ones(x.shape[:2], dtype=torch.bool)
    seen[:, : x.shape[1] // 2] = False
    visible = mine.encoder.visible(seen)
    patches = mine.encoder.cut(standardize(x, seen))
    with torch.no_grad():
        tokens = mine.encoder.encode_patches(patches, visible)[:, :, 1:][:, :, visible[0]]
        assert 0 < tokens.shape[2] < visible.shape[1]
        expected = tokens.mean(2) if pooling == "mean" else tokens.amax(2)
        torch.testing.assert_close(mine.encoder(x, seen), expected.flatten(1))


@pytest.mark.parametrize(
    ("n_timesteps", "n_channels", "sizes"),
    [
        (56, 1, {"embedding_dim": 6, "encoder_hidden_dim": 14, "patch_length": 7}),
        (54, 5, {"embedding_dim": 4, "encoder_hidden_dim": 24, "patch_length": 13}),
        (17, 5, {"embedding_dim": 10, "encoder_hidden_dim": 36, "patch_length": 7}),
    ],
)
def test_an_embedding_of_odd_widths_does_not_depend_on_its_place(n_timesteps, n_channels, sizes):
    X = np.random.default_rng(0).normal(size=(60, n_timesteps, n_channels))
    fitted = patchtst(pooling="mean", patch_stride=1, **sizes).fit(X[:6])
    embedding = fitted.transform(X)
    for first in range(1, 12):
        np.testing.assert_array_equal(fitted.transform(X[first:]), embedding[first:])
