import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from sklearn_pulse import presets
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.baselines import TimeMAETransformer
from sklearn_pulse.baselines._timemae import MaskedSegments
from tests.baselines import literal_transformer as literal
from tests.helpers import BatchSpy, InDouble, callback_of, make_windows, small
from tests.kills import killed

X = make_windows()[0]
SIZES = {"encoder_depth": 2, "regressor_depth": 1, "n_heads": 2, "patch_length": 4, "vocab_size": 6}
timemae = partial(small, TimeMAETransformer, **SIZES)


def objective(n_channels=2, n_timesteps=16, **params):
    torch.manual_seed(0)
    sizes = {"embedding_dim": 8, "encoder_hidden_dim": 12, "encoder_depth": 2}
    sizes |= {"n_heads": 2, "patch_length": 4}
    return MaskedSegments(
        n_channels, n_timesteps, **sizes | {"regressor_depth": 1, "vocab_size": 6} | params
    )


def without_dropout(**params):
    return objective(dropout=0.0, regressor_dropout=0.0, **params)


# --- the published formula ---


def literal_block(block, tokens, memory):
    """norm(x + a * attention(x)), norm(x + a * feed_forward(x))."""
    attended = literal.attention(block.attention, tokens, memory, block.attention.n_heads)
    tokens = [
        literal.layer_norm(block.norm1, x + block.scale1 * y)
        for x, y in zip(tokens, attended, strict=True)
    ]
    forward = literal.feed_forward(block.feed_forward, tokens)
    return [
        literal.layer_norm(block.norm2, x + block.scale2 * y)
        for x, y in zip(tokens, forward, strict=True)
    ]


def literal_transformer(transformer, tokens, memory=None):
    for block in transformer.blocks:
        tokens = literal_block(block, tokens, tokens if memory is None else memory)
    return tokens


def literal_projection(encoder, window):
    """One product a segment; what is left over at the end is not read."""
    length = encoder.patch_length
    kernel, bias = encoder.projection.weight, encoder.projection.bias  # (dim, channel, step)
    return [
        (kernel * window[start : start + length].T).sum((1, 2)) + bias
        for start in range(0, len(window) - length + 1, length)
    ]


def literal_loss(timemae, x, order, waits):
    """Both losses, one window and one hidden segment at a time.

    A code is the largest ``logit - log(wait)`` with exponential waits, so ``-log(wait)`` is a
    Gumbel draw.
    """
    encoder, positions = timemae.encoder, timemae.encoder.positions
    n_hidden = int(timemae.mask_ratio * len(order))
    shown, hidden = order[:-n_hidden].tolist(), order[-n_hidden:].tolist()
    squares, entropies = [], []
    for i, window in enumerate(x):
        projected = literal_projection(encoder, window)
        tokens = [token + positions[j] for j, token in enumerate(projected)]
        memory = literal_transformer(encoder.transformer, [tokens[j] for j in shown])
        target = literal_transformer(timemae.momentum_encoder, [tokens[j].detach() for j in hidden])
        queries = [timemae.mask_token + positions[j] for j in hidden]
        predicted = literal_transformer(timemae.regressor, queries, memory)
        for j, guess, truth in zip(hidden, predicted, target, strict=True):
            squares += list((guess - truth.detach()).square())
            gumbel = literal.linear(timemae.tokenizer, projected[j]) - waits[i, j].log()
            code = max(range(len(gumbel)), key=lambda k, g=gumbel: g[k].item())
            logits = literal.linear(timemae.tokenizer, guess)
            log_share = [logit - logits.exp().sum().log() for logit in logits]
            smooth = timemae.label_smoothing
            entropies.append(
                -(1 - smooth) * log_share[code] - smooth * sum(log_share) / len(log_share)
            )
    regression, classification = sum(squares) / len(squares), sum(entropies) / len(entropies)
    return timemae.regression_weight * regression + timemae.classification_weight * classification


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"mask_ratio": 0.3, "label_smoothing": 0.0, "regression_weight": 0.5},
        {"momentum": None, "classification_weight": 3.0, "regressor_depth": 2},
    ],
)
def test_loss_and_gradients_literally(params):
    ours = without_dropout(**params).double()
    for p in ours.parameters():
        torch.nn.init.normal_(p, std=0.5)
    theirs = copy.deepcopy(ours)
    x = torch.randn(2, 18, 2).double()  # two steps are left over
    order, waits = torch.tensor([2, 0, 3, 1]), torch.rand(2, 4, 6)
    logits = ours.tokenizer(ours.encoder.project(x))
    codes = (logits - waits.log()).argmax(-1)
    loss, expected = ours(x=x, order=order, codes=codes), literal_loss(theirs, x, order, waits)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    loss.backward()
    expected.backward()
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if name.startswith("momentum_encoder"):
            assert mine.grad is None
            assert other.grad is None
        else:
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.9, None])
def test_twenty_updates_equal_an_independent_training(momentum):
    """Masks, codes, loss, clipping, AdamW, one cycle and the momentum encoder, in plain torch."""
    fitted = timemae(
        momentum=momentum,
        dropout=0.0,
        regressor_dropout=0.0,
        embedding_dim=4,
        encoder_depth=1,
        max_epochs=10,
        lr=1e-2,
        weight_decay=0.1,
        batch_size=2,
        validation_fraction=0,
        select="last",
        gradient_clip_value=1e-2,
        callbacks=[InDouble(), BatchSpy()],
    ).fit(X[:4])
    spy = callback_of(fitted, BatchSpy)
    theirs, draws = spy.before_, torch.Generator().manual_seed(spy.before_.seed)
    slow = [p.clone() for p in theirs.momentum_encoder.parameters()]
    fast = list(theirs.encoder.transformer.parameters())
    assert all(torch.equal(*pair) for pair in zip(slow, fast, strict=True)) == (momentum == 0.9)
    trained = [p for p in theirs.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=20)
    assert len(spy.batches_) == 20
    for x in (batch["x"] for batch in spy.batches_):
        order = torch.randperm(4, generator=draws)
        waits = torch.empty(2, 4, 6).exponential_(generator=draws)
        optimizer.zero_grad()
        literal_loss(theirs, x, order, waits).backward()
        for p in trained:
            p.grad.clamp_(-1e-2, 1e-2)
        optimizer.step()
        schedule.step()
        if momentum is not None:
            slow = [
                momentum * s + (1 - momentum) * f.detach() for s, f in zip(slow, fast, strict=True)
            ]
            for s, p in zip(slow, theirs.momentum_encoder.parameters(), strict=True):
                p.data = s
    state = dict(fitted.net_.module_.named_parameters())
    for name, expected in theirs.named_parameters():
        torch.testing.assert_close(state[name], expected, rtol=0, atol=1e-6)


# --- mask and codes ---


@pytest.mark.parametrize(
    ("mask_ratio", "n_timesteps", "n_hidden"),
    [
        (0.6, 128, 19),
        (0.6, 8, 1),
        (0.6, 2, 1),
        (0.1, 16, 1),
        (0.9, 16, 3),
        (0.29, 400, 29),
        (0.99, 400, 99),
    ],
)
def test_number_of_hidden_segments(mask_ratio, n_timesteps, n_hidden):
    assert objective(1, n_timesteps, mask_ratio=mask_ratio).n_hidden == n_hidden


def spied(mine, x, **batch):
    """What a pass of `mine` gives to its three transformers."""
    seen = {}
    for name, module in (
        ("shown", mine.encoder.transformer),
        ("hidden", mine.momentum_encoder),
        ("queries", mine.regressor),
    ):
        module.register_forward_pre_hook(
            lambda module, args, name=name: seen.__setitem__(name, args[0])
        )
    mine(x=x, **batch)
    return seen


def test_one_order_hides_the_same_segments_of_every_window():
    mine, x = without_dropout(), torch.randn(3, 16, 2)
    seen = spied(mine, x, order=torch.tensor([3, 1, 0, 2]))
    tokens = mine.encoder.project(x) + mine.encoder.positions
    torch.testing.assert_close(seen["shown"], tokens[:, [3, 1]])
    torch.testing.assert_close(seen["hidden"], tokens[:, [0, 2]])
    queries = mine.mask_token + mine.encoder.positions[[0, 2]]
    torch.testing.assert_close(seen["queries"], queries.expand(3, -1, -1))


def test_every_segment_is_hidden_as_often():
    mine, counts = without_dropout(n_timesteps=20, mask_ratio=0.4), torch.zeros(5)
    x = torch.zeros(1, 20, 2)
    tokens = mine.encoder.project(x) + mine.encoder.positions

    def count(module, args):
        counts.add_(torch.cdist(args[0][0], tokens[0]).lt(1e-3).sum(0))

    mine.momentum_encoder.register_forward_pre_hook(count)
    with torch.no_grad():
        for _ in range(500):
            mine(x=x)
    np.testing.assert_allclose(counts / 500, 0.4, atol=0.08)


def test_codes_are_drawn_from_the_softmax():
    mine = objective()
    token = torch.randn(8)
    shares = mine.tokenizer(token).softmax(-1).detach().numpy()
    codes = mine.draw_codes(token.expand(20, 1000, 8))
    np.testing.assert_allclose(
        np.bincount(codes.flatten(), minlength=6) / 20_000, shares, atol=0.02
    )


def test_the_tokenizer_learns_from_its_predictions_only():
    """The codes themselves pass no gradient, and positions are no part of them."""
    mine, x = without_dropout(regression_weight=0.0), torch.randn(3, 16, 2)
    order = torch.arange(4)
    codes = mine.draw_codes(mine.encoder.project(x))
    assert not codes.requires_grad
    gradients = []
    for batch in ({"codes": codes}, {}):
        mine.zero_grad()
        mine._generator = None  # draw as before
        mine(x=x, order=order, **batch).backward()
        gradients.append(mine.tokenizer.weight.grad.clone())
    assert torch.equal(*gradients)


# --- the momentum encoder ---


def test_it_starts_as_a_copy_with_storage_of_its_own():
    mine = objective()
    pairs = list(
        zip(mine.momentum_encoder.parameters(), mine.encoder.transformer.parameters(), strict=True)
    )
    assert all(torch.equal(slow, fast) for slow, fast in pairs)
    assert all(slow.data_ptr() != fast.data_ptr() for slow, fast in pairs)
    assert not any(slow.requires_grad for slow, _ in pairs)
    with torch.no_grad():
        pairs[0][1].add_(1.0)
    assert not torch.equal(*pairs[0])


def test_published_it_is_another_initialisation_and_stays_so():
    fitted = timemae(momentum=None, callbacks=[BatchSpy()]).fit(X)
    module, start = fitted.net_.module_, callback_of(fitted, BatchSpy).before_
    before = start.momentum_encoder.state_dict()
    after = module.momentum_encoder.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    weight = "blocks.0.attention.query.weight"
    assert not torch.equal(before[weight], start.encoder.transformer.state_dict()[weight])


def test_without_momentum_it_is_the_encoder():
    module = timemae(momentum=0.0, validation_fraction=0).fit(X).net_.module_
    slow, fast = module.momentum_encoder, module.encoder.transformer
    for a, b in zip(slow.parameters(), fast.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_it_follows_training_steps_only():
    """Not those of validation, which would move it further."""
    kept = [
        timemae(validation_every=every, max_epochs=3, select="last").fit(X).net_.module_
        for every in (1, 3)
    ]
    states = [module.momentum_encoder.state_dict() for module in kept]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("deterministic", [True, False])
def test_validation_drops_nothing_out_and_draws_anew_only_if_asked_to(deterministic):
    class Modes(Callback):
        def on_train_begin(self, net, **kwargs):
            self.seen_ = []

        def on_batch_end(self, net, training, **kwargs):
            self.seen_.append((training, net.module_.training))

    fitted = timemae(
        dropout=0.5,
        lr=1e-30,  # nothing moves from one epoch to the next
        weight_decay=0.0,
        validation_every=1,
        max_epochs=3,
        deterministic_validation=deterministic,
        callbacks=[Modes()],
    ).fit(X)
    modes = callback_of(fitted, Modes)
    assert set(modes.seen_) == {(True, True), (False, False)}
    assert len({epoch["valid_loss"] for epoch in fitted.history_}) == (1 if deterministic else 3)


def test_it_sees_dropout_in_training():
    mine, targets = objective(regressor_dropout=0.0), []
    mine.momentum_encoder.register_forward_hook(lambda module, args, out: targets.append(out))
    with torch.no_grad():
        for p in mine.momentum_encoder.parameters():
            p.normal_()
    for training in (True, False):
        for _ in range(2):
            mine.train(training)(x=torch.from_numpy(X), order=torch.arange(4))
    assert not torch.equal(targets[0], targets[1])
    assert torch.equal(targets[2], targets[3])


# --- missing steps ---


def test_steps_that_no_segment_reads_do_not_make_a_window():
    fitted = timemae(patch_length=5).fit(X)  # 16 steps: the last one is left over
    unread = X[:3].copy()
    unread[1, :15] = np.nan
    with pytest.raises(ValueError, match="no finite time step among steps 0 to 14, .* sample 1"):
        fitted.transform(unread)
    bags = np.stack([unread[:2], unread[1:]])
    np.testing.assert_allclose(fitted.transform(bags), fitted.transform(unread[[0, 2]]), atol=1e-6)


def test_missing_segments_leave_no_trace_in_the_loss():
    mine = without_dropout().eval()
    for p in mine.parameters():
        torch.nn.init.normal_(p, std=0.5)
    x, observed = torch.randn(3, 16, 2), torch.ones(3, 16, dtype=torch.bool)
    observed[0, :4] = observed[1, 8:12] = False  # a shown one, a hidden one
    batch = {"order": torch.arange(4), "codes": torch.randint(6, (3, 4))}
    loss = mine(x=x, observed=observed, **batch)
    other = torch.where(observed.unsqueeze(-1), x, 9.0)
    codes = batch["codes"].clone()
    codes[1, 2] = (codes[1, 2] + 1) % 6
    assert torch.equal(mine(x=other, observed=observed, order=batch["order"], codes=codes), loss)
    assert mine(x=x, **batch) != loss


@pytest.mark.parametrize("regressor_only", [False, True])
def test_missing_segments_are_read_by_nobody(regressor_only):
    """Not even their positions, neither by the encoder nor by what predicts from its tokens."""
    mine = without_dropout().eval()
    for p in mine.parameters():
        torch.nn.init.normal_(p, std=0.5)
    x, observed = torch.randn(3, 16, 2), torch.ones(3, 16, dtype=torch.bool)
    observed[:, :4] = False
    batch = {"order": torch.arange(4), "codes": torch.randint(6, (3, 4)), "observed": observed}
    loss = mine(x=x, **batch)
    if regressor_only:

        def shift(module, args, out):
            return torch.cat([out[:, :1] + 3.0, out[:, 1:]], dim=1)

        mine.encoder.transformer.register_forward_hook(shift)
    else:
        mine.encoder.positions.data[0] += 3.0
    assert torch.equal(mine(x=x, **batch), loss)


def test_missing_segments_are_not_read_by_the_momentum_encoder():
    """Two hidden segments, one of them missing: the other's target is that of it alone."""
    mine, targets = without_dropout().eval(), []
    for p in mine.parameters():
        torch.nn.init.normal_(p, std=0.5)
    mine.momentum_encoder.register_forward_hook(lambda module, args, out: targets.append(out))
    x, observed = torch.randn(2, 16, 2), torch.ones(2, 16, dtype=torch.bool)
    observed[:, 8:12] = False
    mine(x=x, observed=observed, order=torch.arange(4))
    tokens = mine.encoder.project(x) + mine.encoder.positions
    torch.testing.assert_close(targets[0][:, 1:], mine.momentum_encoder(tokens[:, 3:]))


def test_loss_with_missing_segments_is_the_mean_over_the_others():
    mine = without_dropout(regression_weight=1.0, classification_weight=0.0).eval()
    for p in mine.parameters():
        torch.nn.init.normal_(p, std=0.5)
    x, observed = torch.randn(2, 16, 2), torch.ones(2, 16, dtype=torch.bool)
    observed[1, 8:12] = False
    order = torch.arange(4)
    both = mine(x=x, observed=observed, order=order)
    first = mine(x=x[:1], order=order)  # two segments count
    second = mine(x=x[1:], observed=observed[1:], order=order)  # one does
    torch.testing.assert_close(both, (2 * first + second) / 3)


@pytest.mark.parametrize("missing", [slice(0, 8), slice(8, 16), slice(0, 16)])
def test_windows_with_nothing_to_see_or_to_predict_stay_finite(missing):
    mine = objective().train()
    observed = torch.ones(2, 16, dtype=torch.bool)
    observed[:, missing] = False
    loss = mine(x=torch.randn(2, 16, 2), observed=observed, order=torch.arange(4))
    loss.backward()
    assert loss.item() == 0.0
    assert all(p.grad is None or p.grad.isfinite().all() for p in mine.parameters())


# --- parameters ---


def test_the_embedding_pools_the_encoded_segments():
    mine, x = objective().eval(), torch.from_numpy(X)
    tokens = mine.encoder.transformer(mine.encoder.project(x) + mine.encoder.positions)
    torch.testing.assert_close(mine.encode(x), tokens.mean(1))
    mine.encoder.pooling = "max"
    torch.testing.assert_close(mine.encode(x), tokens.amax(1))


def test_initial_weights_are_those_of_the_published_code():
    """Linear layers Xavier-normal with bias 0.1, positions and mask token N(0, 1), scalars 1e-8."""
    mine = MaskedSegments(2, 128)
    for module in mine.modules():
        if isinstance(module, torch.nn.Linear):
            std = math.sqrt(2 / sum(module.weight.shape))
            assert module.weight.std().item() == pytest.approx(std, rel=0.05)
            torch.testing.assert_close(module.bias, torch.full_like(module.bias, 0.1))
    assert mine.encoder.positions.std().item() == pytest.approx(1.0, rel=0.1)
    assert mine.mask_token.std().item() == pytest.approx(1.0, rel=0.25)
    scalars = [p for name, p in mine.named_parameters() if "scale" in name]
    assert len(scalars) == 2 * (8 + 8 + 4)
    assert all(p.item() == pytest.approx(1e-8) for p in scalars)


def test_number_of_parameters():
    """The sum over the layers as the method describes them, at HAR size."""
    d, ffn, vocabulary, n_patches = 128, 512, 192, 16
    block = 4 * (d * d + d) + (d * ffn + ffn) + (ffn * d + d) + 2 * 2 * d + 2
    encoder = (6 * 8 * d + d) + n_patches * d + 8 * block
    expected = encoder + 8 * block + 4 * block + d + (d * vocabulary + vocabulary)
    mine = MaskedSegments(6, 128)
    assert sum(p.numel() for p in mine.parameters()) == expected
    assert sum(p.numel() for p in mine.encoder.parameters()) == encoder


@pytest.mark.parametrize(
    "params",
    [
        {"dropout": 0.5},
        {"regressor_dropout": 0.5},
        {"mask_ratio": 0.3},
        {"momentum": 0.5},
        {"momentum": None},
        {"vocab_size": 7},
        {"regressor_depth": 2},
        {"regression_weight": 1.0},
        {"classification_weight": 2.0},
        {"label_smoothing": 0.0},
        {"encoder_hidden_dim": 9},
        {"n_heads": 4},
        {"deterministic_validation": False},
    ],
)
def test_each_parameter_matters(params):
    plain = timemae(lr=0.05).fit(X)
    assert (
        timemae(lr=0.05, **params).fit(X).history_[-1]["valid_loss"]
        != plain.history_[-1]["valid_loss"]
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"embedding_dim": 6, "n_heads": 4}, "embedding_dim=6 must be a multiple of n_heads=4"),
        ({"pooling": "cls"}, "pooling must be one of 'max', 'mean'"),
        ({"patch_length": 0}, "patch_length must be an integer of at least 1"),
        ({"mask_ratio": 1.0}, "mask_ratio must be a number in"),
        ({"momentum": 1.5}, "momentum must be a number in"),
        ({"vocab_size": 0}, "vocab_size must be an integer of at least 1"),
        ({"label_smoothing": 1.0}, "label_smoothing must be a number in"),
        ({"regressor_dropout": -0.1}, "regressor_dropout must be a number in"),
        ({"regression_weight": -1.0}, "regression_weight must be a number in"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        timemae(**params).fit(X)


@pytest.mark.parametrize(("length", "n_patches"), [(8, 2), (5, 3), (0.25, 4), (12, 2), (100, 2)])
def test_segments_fit_the_window(length, n_patches):
    fitted = timemae(patch_length=length, max_epochs=1).fit(X)
    assert fitted.encoder_.n_patches == n_patches


def test_a_warm_start_at_another_length_says_so():
    fitted = timemae(warm_start=True, max_epochs=1).fit(X)
    with pytest.raises(ValueError, match="keep X's channels and its number of time steps"):
        fitted.fit(X[:, :8])


def test_the_draw_of_codes_takes_no_gradient_from_the_tokeniser():
    module, x = objective(), torch.randn(4, 16, 2)
    with torch.autocast("cpu", torch.bfloat16):  # old versions of torch keep its casts
        module(x=x).backward()
    assert module.tokenizer.weight.grad.abs().max() > 0


@pytest.mark.parametrize("select", ["min_val", "last"])
def test_a_killed_run_resumes_with_the_momentum_encoder(tmp_path, monkeypatch, select):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    params = {"max_epochs": 5, "deterministic_validation": False, "select": select, "lr": 0.01}
    expected = timemae(**params).fit(X)
    with killed(3, 2):
        timemae(**params, checkpoint_dir=tmp_path).fit(X)
    resumed = timemae(**params, checkpoint_dir=tmp_path).fit(X)
    states = [fit.net_.module_.state_dict() for fit in (resumed, expected)]
    assert any(name.startswith("momentum_encoder") for name in states[0])
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    np.testing.assert_array_equal(resumed.transform(X), expected.transform(X))


# --- presets ---

# Data set: segment, epochs, batch, lr; mode, channels, window, down-sampling, strides, fractions.
TABLE = {
    "har": (8, 200, 128, 1e-3, "random", 6, 128, 1, 32, 128, 1.0, 1.0),
    "ecg": (16, 200, 64, 1e-3, "random", 2, 500, 5, 250, 250, 0.25, 0.1),
    "ppg": (8, 200, 64, 1e-3, "labeled", 1, 960, 4, None, None, 1.0, 1.0),
    "eeg": (8, 100, 64, 1e-3, "labeled", 2, 1000, 3, None, None, 0.2, 0.2),
    "synthetic": (10, 100, 128, 1e-3, "random", 3, 100, 1, 100, 100, 1.0, 1.0),
    "har-transfer": (8, 200, 128, 1e-3, "random", 6, 500, 1, 128, 128, 1.0, 1.0),
    "eeg-transfer": (8, 100, 64, 1e-4, "random", 1, 200, 1, 200, 200, 0.1, 0.1),
}


@pytest.mark.parametrize("dataset", TABLE)
def test_presets(dataset):
    *params, mode, channels, length, downsample, stride, stride_val, part, part_val = TABLE[dataset]
    estimator = TimeMAETransformer(**presets.get("timemae", dataset))
    names = ("patch_length", "max_epochs", "batch_size", "lr")
    assert [getattr(estimator, name) for name in names] == params
    assert (estimator.embedding_dim, estimator.encoder_hidden_dim) == (128, 512)
    assert (estimator.encoder_depth, estimator.regressor_depth, estimator.n_heads) == (8, 4, 4)
    assert (estimator.mask_ratio, estimator.label_smoothing) == (0.6, 0.2)
    assert (estimator.dropout, estimator.regressor_dropout) == (0.2, 0.1)
    assert (estimator.regression_weight, estimator.classification_weight) == (5.0, 1.0)
    assert (estimator.momentum, estimator.vocab_size) == (0.99, 192)
    assert (estimator.weight_decay, estimator.gradient_clip_value) == (1e-5, 5.0)
    assert presets.windows("timemae", dataset) == {
        "mode": mode,
        "n_channels": channels,
        "length": length,
        "downsample": downsample,
        "stride": stride,
        "stride_val": stride_val,
        "fraction": part,
        "fraction_val": part_val,
    }
    assert set(presets.search_space("timemae")) == {"max_epochs", "lr", "weight_decay"}


@pytest.mark.parametrize("dataset", TABLE)
def test_published_and_official_presets(dataset):
    published = TimeMAETransformer(**presets.get("timemae", dataset, published=True))
    assert (published.momentum, published.vocab_size) == (None, 256)
    assert published.deterministic_validation is False
    official = TimeMAETransformer(**presets.get("timemae", dataset, official=True))
    assert (official.embedding_dim, official.encoder_hidden_dim) == (64, 256)
    assert (official.momentum, official.vocab_size) == (0.99, 192)


def test_an_embedding_of_odd_widths_does_not_depend_on_its_place():
    X = np.random.default_rng(0).normal(size=(60, 37, 6))
    fitted = timemae(embedding_dim=14, encoder_hidden_dim=27, patch_length=7).fit(X[:6])
    embedding = fitted.transform(X)
    for first in range(1, 12):
        np.testing.assert_array_equal(fitted.transform(X[first:]), embedding[first:])
