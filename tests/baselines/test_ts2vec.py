import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skorch.callbacks import Callback
from torch.nn.functional import cross_entropy, max_pool1d

from perf.literal import LiteralEncoder, copy_weights
from sklearn_pulse import presets
from sklearn_pulse._data._windows import CheckedWindows
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse.base import WindowBatches
from sklearn_pulse.baselines import TS2VecTransformer
from sklearn_pulse.baselines._ts2vec import Crops, HierarchicalContrast
from sklearn_pulse.functional import hierarchical_contrast
from tests.helpers import SMALL, SMALL_ENCODER, BatchSpy, accepted, callback_of, make_windows
from tests.kills import killed

TS2VEC = accepted(TS2VecTransformer, SMALL)


def objective(**params):
    torch.manual_seed(0)
    return HierarchicalContrast(2, **SMALL_ENCODER | params)


# --- the published formula ---


def literal_pool(view, observed):
    """Maximum of two neighbouring steps, of those observed; None where neither was."""
    pooled = []
    for row, seen in zip(view, observed, strict=True):
        pairs = [[row[s] for s in (t, t + 1) if seen[s]] for t in range(0, len(row) - 1, 2)]
        pooled.append([[max(c) for c in zip(*pair, strict=True)] or None for pair in pairs])
    return pooled


def literal_loss(first, second, observed=None, instance_weight=0.5, temporal_unit=0):
    """Every term of every scale, with loops; dot products, both directions, all alternatives."""
    if observed is None:
        observed = torch.ones(first.shape[:2], dtype=torch.bool)
    first, second, observed = first.tolist(), second.tolist(), observed.tolist()

    def dot(a, b):
        return sum(p * q for p, q in zip(a, b, strict=True))

    def cross_entropy(anchor, positive, negatives):
        logits = [dot(anchor, positive)] + [dot(anchor, other) for other in negatives]
        largest = max(logits)
        return largest + math.log(sum(math.exp(v - largest) for v in logits)) - logits[0]

    def mean(terms):
        return sum(terms) / max(len(terms), 1)

    total, scale = 0.0, 0
    batch = range(len(first))
    while True:
        steps = range(len(first[0]))
        instance, temporal = [], []
        for i in batch:
            for t in steps:
                if not observed[i][t]:
                    continue
                for view, other in ((first, second), (second, first)):
                    rest = [j for j in batch if j != i and observed[j][t]]
                    negatives = [view[j][t] for j in rest] + [other[j][t] for j in rest]
                    instance.append(cross_entropy(view[i][t], other[i][t], negatives))
                    rest = [s for s in steps if s != t and observed[i][s]]
                    negatives = [view[i][s] for s in rest] + [other[i][s] for s in rest]
                    temporal.append(cross_entropy(view[i][t], other[i][t], negatives))
        total += instance_weight * mean(instance)
        if len(steps) > 1 and scale >= temporal_unit:
            total += (1.0 - instance_weight) * mean(temporal)
        scale += 1
        if len(steps) == 1:
            return total / scale

        pooled_first, pooled_second = (literal_pool(view, observed) for view in (first, second))
        observed = [[step is not None for step in row] for row in pooled_first]
        dim = len(next(step for row in first for step in row if step is not None))
        first, second = (
            [[step or [0.0] * dim for step in row] for row in view]
            for view in (pooled_first, pooled_second)
        )


@pytest.mark.parametrize("n_timesteps", [1, 2, 3, 5, 7, 8, 13, 16])
@pytest.mark.parametrize("batch", [1, 4])
def test_loss_literally(n_timesteps, batch):
    first, second = torch.randn(2, batch, n_timesteps, 3, dtype=torch.float64)
    loss = hierarchical_contrast(first, second)
    assert loss.item() == pytest.approx(literal_loss(first, second), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("n_timesteps", [3, 8, 11])
def test_missing_steps_take_no_part(n_timesteps):
    first, second = torch.randn(2, 4, n_timesteps, 3)
    observed = torch.rand(4, n_timesteps) < 0.6
    observed[3] = False
    loss = hierarchical_contrast(first, second, observed)
    assert loss.item() == pytest.approx(literal_loss(first, second, observed), rel=1e-5)
    everything = torch.ones_like(observed)
    torch.testing.assert_close(
        hierarchical_contrast(first, second, everything), hierarchical_contrast(first, second)
    )
    views = [torch.where(observed.unsqueeze(-1), x, 99.0).requires_grad_() for x in (first, second)]
    changed = hierarchical_contrast(*views, observed)
    torch.testing.assert_close(changed, loss)
    changed.backward()
    for view in views:
        assert view.grad.isfinite().all()
        assert not view.grad[~observed].any()


def test_nothing_observed_is_no_loss():
    views = torch.randn(2, 2, 4, 3, requires_grad=True)
    loss = hierarchical_contrast(*views, torch.zeros(2, 4, dtype=torch.bool))
    loss.backward()
    assert loss == 0.0
    assert not views.grad.any()


@pytest.mark.parametrize(("instance_weight", "temporal_unit"), [(0.0, 0), (1.0, 0), (0.3, 1)])
def test_weights_and_temporal_unit_literally(instance_weight, temporal_unit):
    first, second = torch.randn(2, 3, 9, 2)
    weights = {"instance_weight": instance_weight, "temporal_unit": temporal_unit}
    loss = hierarchical_contrast(first, second, **weights)
    assert loss.item() == pytest.approx(literal_loss(first, second, **weights), rel=1e-5)


def test_loss_does_not_depend_on_the_order_of_views_or_windows():
    first, second = torch.randn(2, 5, 8, 3)
    loss = hierarchical_contrast(first, second)
    torch.testing.assert_close(hierarchical_contrast(second, first), loss)
    order = torch.randperm(5)
    torch.testing.assert_close(hierarchical_contrast(first[order], second[order]), loss)


def test_gradient_of_the_loss():
    views = torch.randn(2, 3, 5, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(hierarchical_contrast(*views), views)
    step = 1e-3  # the loss is computed in float32
    for at in [(0, 1, 2, 0), (1, 0, 4, 1), (1, 2, 0, 0)]:
        values = []
        for sign in (1, -1):
            moved = views.detach().clone()
            moved[at] += sign * step
            values.append(literal_loss(*moved))
        assert gradient[at].item() == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-4)


# --- crops ---


@given(
    n_timesteps=st.integers(1, 40),
    temporal_unit=st.integers(0, 3),
    batch=st.integers(1, 5),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_crops_overlap_and_lie_in_the_window(n_timesteps, temporal_unit, batch, seed):
    contrast = HierarchicalContrast(1, temporal_unit=temporal_unit, seed=seed, encoder_depth=1)
    crops = contrast.draw_crops(torch.zeros(batch, n_timesteps, 1))
    assert 0 <= crops.outer_left <= crops.left < crops.right <= crops.outer_right <= n_timesteps
    assert crops.right - crops.left >= min(2 ** (temporal_unit + 1), n_timesteps)
    assert crops.offset.shape == (batch,)
    assert (crops.offset >= -crops.outer_left).all()
    assert (crops.offset <= n_timesteps - crops.outer_right).all()


def test_crops_reach_all_bounds():
    contrast, x = objective(), torch.zeros(3, 4, 2)
    drawn = [contrast.draw_crops(x) for _ in range(2000)]
    shared = np.array([crops.right - crops.left for crops in drawn])
    assert np.bincount(shared, minlength=5)[2:].min() > 580  # a third each
    full = [crops for crops in drawn if crops.right - crops.left == 4]
    assert {crops[:4] for crops in full} == {(0, 0, 4, 4)}
    two = [crops for crops in drawn if crops[1:3] == (1, 3)]
    assert {(crops.outer_left, crops.outer_right) for crops in two} == {
        (0, 3),
        (0, 4),
        (1, 3),
        (1, 4),
    }
    offsets = torch.cat([crops.offset for crops in two if crops[:4] == (1, 1, 3, 3)])
    assert offsets.unique().tolist() == [-1, 0, 1]
    assert any(len(crops.offset.unique()) > 1 for crops in two)  # its own for every window


def literal_encoding(contrast, crop, visible):
    """The encoder on a crop, with the hidden steps zeroed after the input layer."""
    hidden = contrast.encoder.input(crop) * visible.unsqueeze(-1)
    hidden = hidden.transpose(0, 1)
    for block in contrast.encoder.blocks:
        hidden = block(hidden)
    return hidden.transpose(0, 1)


@pytest.mark.parametrize("layer_norm", ["embedding", "everywhere", "none"])
@pytest.mark.parametrize("mask_mode", ["none", "binomial"])
def test_forward_literally(layer_norm, mask_mode):
    contrast = objective(layer_norm=layer_norm, mask_mode=mask_mode).eval()
    x = torch.randn(3, 20, 2)
    crops = Crops(2, 5, 12, 15, torch.tensor([-2, 0, 5]))
    masks = torch.ones(3, 10), torch.ones(3, 10)
    if mask_mode == "binomial":
        with contrast.seeded(7):
            generator = contrast.generator(x.device)
            masks = [contrast.draw_visible(3, 10, generator) for _ in range(2)]
    first = torch.stack([x[i, 2 + d : 12 + d] for i, d in enumerate([-2, 0, 5])])
    second = torch.stack([x[i, 5 + d : 15 + d] for i, d in enumerate([-2, 0, 5])])
    views = [literal_encoding(contrast, *args) for args in zip((first, second), masks, strict=True)]
    if layer_norm == "everywhere":
        views = [contrast.encoder.norm(view) for view in views]
    expected = literal_loss(views[0][:, -7:], views[1][:, :7])
    with contrast.seeded(7):
        assert contrast(x=x, crops=crops).item() == pytest.approx(expected, rel=1e-5)


def test_views_without_masks_of_a_whole_window_are_the_same():
    contrast = objective(mask_mode="none").eval()
    x = torch.randn(3, 8, 2)
    whole = Crops(0, 0, 8, 8, torch.zeros(3, dtype=torch.int64))
    steps = literal_encoding(contrast, x, torch.ones(3, 8))
    torch.testing.assert_close(contrast(x=x, crops=whole), hierarchical_contrast(steps, steps))


def test_missing_steps_do_not_reach_the_loss():
    contrast = objective().train()
    x = torch.randn(4, 16, 2)
    observed = torch.rand(4, 16) < 0.7
    observed[0] = True
    losses = []
    for fill in (0.0, 50.0):
        with contrast.seeded(1):
            losses.append(contrast(torch.where(observed.unsqueeze(-1), x, fill), observed))
    torch.testing.assert_close(losses[0], losses[1])


def plain_loss(first, second):
    """The hierarchical loss once more, differentiable: one cross-entropy a step or window."""
    total, n_scales = 0.0, 0
    while True:
        batch, n_timesteps, _ = first.shape
        z, parts = torch.cat([first, second]), []
        groups = [(z[:, t], batch) for t in range(n_timesteps)]
        n_instance = len(groups)
        if n_timesteps > 1:
            groups += [(torch.cat([first[i], second[i]]), n_timesteps) for i in range(batch)]
        for rows, half in groups:
            logits = rows @ rows.T
            others = torch.stack(
                [torch.cat([logits[i, :i], logits[i, i + 1 :]]) for i in range(2 * half)]
            )
            target = [i + half - 1 for i in range(half)] + list(range(half))
            parts.append(cross_entropy(others, torch.tensor(target)))
        total = total + 0.5 * torch.stack(parts[:n_instance]).mean()
        n_scales += 1
        if n_timesteps == 1:
            return total / n_scales
        total = total + 0.5 * torch.stack(parts[n_instance:]).mean()
        first, second = (max_pool1d(x.transpose(1, 2), 2).transpose(1, 2) for x in (first, second))


def test_twenty_updates_agree_with_a_plain_training(monkeypatch):
    seen, masks = [], []
    draw_crops, draw_visible = HierarchicalContrast.draw_crops, HierarchicalContrast.draw_visible

    def spy_on_crops(self, x):
        seen.append((x.clone(), draw_crops(self, x)))
        return seen[-1][1]

    def spy_on_masks(self, *args):
        masks.append(draw_visible(self, *args))
        return masks[-1]

    monkeypatch.setattr(HierarchicalContrast, "draw_crops", spy_on_crops)
    monkeypatch.setattr(HierarchicalContrast, "draw_visible", spy_on_masks)
    X = make_windows(16, n_timesteps=9)[0]
    params = {"max_epochs": 5, "batch_size": 4, "validation_fraction": 0.0, "select": "last"}
    ts2vec = TS2VecTransformer(**TS2VEC | params, callbacks=[BatchSpy()]).fit(X)
    assert len(seen) == 20

    plain = LiteralEncoder(2, 8, 8, 3)
    copy_weights(callback_of(ts2vec, BatchSpy).before_.encoder, plain)
    start = copy.deepcopy(plain)
    trained = [*plain.input.parameters(), *plain.blocks.parameters()]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=20)
    for step, (x, crops) in enumerate(seen):
        views = []
        spans = (crops.outer_left, crops.right), (crops.left, crops.outer_right)
        for view, (a, b) in enumerate(spans):
            cut = torch.stack([x[i, a + d : b + d] for i, d in enumerate(crops.offset.tolist())])
            hidden = plain.input(cut)
            hidden = torch.where(masks[2 * step + view].unsqueeze(2), hidden, 0.0)
            views.append(plain.blocks(hidden.transpose(1, 2)).transpose(1, 2))
        n_shared = crops.right - crops.left
        loss = plain_loss(views[0][:, -n_shared:], views[1][:, :n_shared])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step < 19:
            schedule.step()
    expected = LiteralEncoder(2, 8, 8, 3)
    copy_weights(ts2vec.encoder_, expected)
    for before, ours, theirs in zip(
        *(encoder.blocks.parameters() for encoder in (start, expected, plain)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
        assert (theirs - before).abs().max() > 1e-3


# --- masks ---


def visible(mode, shape=(400, 50), **params):
    contrast = objective(mask_mode=mode, **params)
    return contrast.draw_visible(*shape, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5])
def test_binomial_mask_hides_steps_independently(p):
    mask = visible("binomial", mask_probability=p)
    assert (~mask).float().mean().item() == pytest.approx(p, abs=0.02)
    if p:
        correlation = np.corrcoef(mask[:, :10].numpy().T)
        np.testing.assert_allclose(correlation, np.eye(10), atol=0.2)
        assert len(mask.unique(dim=0)) > 390


def test_continuous_mask_hides_five_gaps_of_a_tenth():
    hidden = ~visible("continuous")
    starts = hidden & ~torch.cat([torch.zeros(400, 1, dtype=torch.bool), hidden[:, :-1]], dim=1)
    assert 1 <= starts.sum(1).min()
    assert starts.sum(1).max() == 5
    assert hidden.sum(1).min() >= 5
    assert hidden.sum(1).max() == 25
    one = ~visible("continuous", (300, 3))  # one gap of one step
    assert (one.sum(1) == 1).all()
    assert one.any(0).all()


def test_no_mask():
    assert visible("none").all()


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_published_mask_is_the_index_of_an_inverted_integer(batch):
    """``x[~mask] = 0`` with a mask of 0 and 1 as int64, as the paper's code runs it."""
    for seed in range(20):
        contrast = objective(mask_mode="last_samples")
        mask = contrast.draw_visible(batch, 2, torch.Generator().manual_seed(seed))
        binomial = objective().draw_visible(batch, 2, torch.Generator().manual_seed(seed))
        x = torch.ones(max(batch, 2), 2, 3)  # it fails on a batch of one; a row more helps
        x[~binomial.to(torch.int64)] = 0.0
        assert torch.equal(x[-batch:].bool().any(2), mask)


def test_views_are_masked_independently():
    contrast = objective().eval()
    x = torch.randn(4, 16, 2)
    whole = Crops(0, 0, 16, 16, torch.zeros(4, dtype=torch.int64))
    masked = contrast(x=x, crops=whole)
    contrast.mask_mode = "none"
    assert masked > contrast(x=x, crops=whole)  # the views no longer agree


# --- what the parameters do ---


def test_published_reduction_divides_by_the_batch():
    x = torch.from_numpy(make_windows(6)[0])
    mean, published = (objective(loss_reduction=r)(x=x) for r in ("mean", "published"))
    torch.testing.assert_close(published, mean / 6)


def test_layer_norm_and_the_embedding():
    x = torch.randn(3, 16, 2)
    steps = literal_encoding(objective(), x, torch.ones(3, 16))
    normed = torch.nn.functional.layer_norm(steps, (8,)).amax(1)
    torch.testing.assert_close(objective(layer_norm="embedding").encode(x), normed)
    torch.testing.assert_close(objective(layer_norm="everywhere").encode(x), normed)
    torch.testing.assert_close(objective(layer_norm="none").encode(x), steps.amax(1))
    trained = TS2VecTransformer(**TS2VEC).fit(make_windows()[0]).encoder_
    assert (trained.norm.weight == 1).all()  # it took no part in the loss


def test_representation_dropout_acts_in_training_only():
    x = torch.from_numpy(make_windows()[0])
    contrast = objective(representation_dropout=0.5)
    with contrast.seeded(0):
        evaluated = contrast.eval()(x=x)
    with contrast.seeded(0):
        trained = contrast.train()(x=x)
    with contrast.seeded(0):
        plain = objective()(x=x)
    assert evaluated != trained
    torch.testing.assert_close(contrast.eval().encode(x), objective().encode(x))
    torch.testing.assert_close(evaluated, plain)


def fitted(**params):
    X = make_windows()[0]
    return TS2VecTransformer(**TS2VEC | params).fit(X), X


def test_constant_schedule_and_betas():
    constant, _ = fitted(schedule="constant", lr=3e-4, betas=(0.95, 0.99), max_epochs=3)
    (group,) = constant.net_.optimizer_.param_groups
    assert (group["lr"], group["betas"]) == (3e-4, (0.95, 0.99))
    cycled, _ = fitted(lr=3e-4, max_epochs=3)
    (group,) = cycled.net_.optimizer_.param_groups
    assert group["lr"] < 3e-5
    assert group["betas"][0] != 0.9
    with pytest.raises(ValueError, match="betas=.* goes with schedule='constant' only"):
        fitted(betas=(0.9, 0.999))


def test_average_of_all_weights():
    class Record(Callback):
        weights = []

        def on_train_begin(self, net, **kwargs):
            self.weights.append(net.module_.encoder.input.weight.detach().clone())

        def on_batch_end(self, net, training, **kwargs):
            if training:
                self.weights.append(net.module_.encoder.input.weight.detach().clone())

    averaged, _ = fitted(select="average", max_epochs=3, callbacks=[Record()])
    assert len(Record.weights) == 1 + 3 * 3  # 17 training windows, batches of 8
    expected = torch.stack(Record.weights).mean(0)
    torch.testing.assert_close(averaged.encoder_.input.weight, expected)
    assert not torch.allclose(averaged.encoder_.input.weight, Record.weights[-1], atol=1e-6)


def test_average_survives_an_interruption(tmp_path):
    class Interrupt(Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 2:
                raise KeyboardInterrupt

    params = {"select": "average", "max_epochs": 4, "checkpoint_dir": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        fitted(**params, callbacks=[Interrupt()])
    resumed, X = fitted(**params)
    whole, _ = fitted(**params | {"checkpoint_dir": None})
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


class Updates(Callback):
    """Keep sizes of batches, learning rates and weights."""

    def on_train_begin(self, net, **kwargs):
        self.sizes_, self.rates_ = [], []
        self.weights_ = [net.module_.encoder.input.weight.detach().clone()]

    def on_batch_begin(self, net, batch, training, **kwargs):
        if training:
            self.sizes_.append(len(batch["x"]))
            self.rates_.append(net.optimizer_.param_groups[0]["lr"])

    def on_batch_end(self, net, training, **kwargs):
        if training:
            self.weights_.append(net.module_.encoder.input.weight.detach().clone())


@pytest.mark.parametrize("max_updates", [1, 3, 7, np.int64(14)])
def test_training_ends_after_so_many_updates(max_updates):
    """17 windows in batches of 8 are 3 an epoch, whatever `max_epochs` says."""
    params = {"max_updates": max_updates, "max_epochs": 2, "callbacks": [Updates()]}
    ts2vec, _ = fitted(**params, select="average")
    updates = callback_of(ts2vec, Updates)
    assert len(updates.sizes_) == max_updates
    counts = [epoch["train_batch_count"] for epoch in ts2vec.history_]
    whole, rest = divmod(int(max_updates), 3)
    assert counts == [3] * whole + [rest] * (rest > 0)
    mean = torch.stack(updates.weights_).mean(0)
    torch.testing.assert_close(ts2vec.encoder_.input.weight, mean)
    if max_updates > 3:  # the one cycle is run through
        assert updates.rates_[-1] == pytest.approx(1e-3 / 250_000)


def test_the_last_partial_batch_can_be_dropped():
    ts2vec, _ = fitted(drop_last=True, callbacks=[Updates()], max_epochs=3)
    updates = callback_of(ts2vec, Updates)
    assert updates.sizes_ == [8, 8] * 3
    assert updates.rates_[-1] == pytest.approx(1e-3 / 250_000)  # the one cycle is run through
    ts2vec, _ = fitted(drop_last=True, batch_size=100, callbacks=[Updates()], max_epochs=1)
    assert callback_of(ts2vec, Updates).sizes_ == [17]


@pytest.mark.parametrize(("n", "expected"), [(1000, 200), (1001, 600)])
def test_the_rule_of_the_authors_for_the_number_of_updates(n, expected):
    ts2vec = TS2VecTransformer(max_updates="auto")
    X = np.zeros((n, 50, 2), dtype=np.float32)
    batches = WindowBatches(CheckedWindows(X), np.arange(n), torch.device("cpu"))
    assert ts2vec._n_updates(batches) == expected


@pytest.mark.parametrize("at", [(1, 2), (4, 2)])
def test_a_run_of_so_many_updates_resumes_in_the_middle_of_an_epoch(tmp_path, monkeypatch, at):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    params = {"max_updates": 8, "select": "average", "drop_last": True, "checkpoint_dir": tmp_path}
    with killed(*at):
        fitted(**params)
    resumed, X = fitted(**params)
    whole, _ = fitted(**params | {"checkpoint_dir": None})
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))
    keys = ("train_loss", "valid_loss", "train_batch_count")
    first, second = ([[e[k] for k in keys] for e in t.history_] for t in (resumed, whole))
    assert first == second


def test_one_window_is_enough():
    X = make_windows(1, n_timesteps=64)[0]
    ts2vec = TS2VecTransformer(**TS2VEC | {"max_epochs": 8}).fit(X)
    assert ts2vec.history_[-1]["train_loss"] > 0.0  # steps are told from each other


def test_windows_to_validate_on_hold_two_steps_of_the_first_scale():
    X = make_windows(n_timesteps=64)[0]
    ts2vec = TS2VecTransformer(**TS2VEC, instance_weight=0, temporal_unit=3)
    with pytest.raises(ValueError, match="^X_val: .*windows of 10 time steps no two of them"):
        ts2vec.fit(X, X_val=X[:8, :10])
    assert ts2vec.fit(X, X_val=X[:8, :16]).history_[0]["valid_loss"] > 0.0


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"layer_norm": "all"}, ValueError, "layer_norm must be one of"),
        ({"mask_mode": "all"}, ValueError, "mask_mode must be one of"),
        ({"mask_probability": 1.0}, ValueError, "mask_probability must be a number in"),
        ({"temporal_unit": -1}, ValueError, "temporal_unit must be an integer"),
        ({"instance_weight": 1.5}, ValueError, "instance_weight must be a number in"),
        ({"instance_weight": 0, "temporal_unit": 9}, ValueError, "lower temporal_unit, raise inst"),
        ({"loss_reduction": "sum"}, ValueError, "loss_reduction must be one of"),
        ({"representation_dropout": 1.0}, ValueError, "representation_dropout must be"),
        ({"schedule": "cosine"}, ValueError, "schedule must be one of"),
        ({"schedule": "constant", "betas": (0.9, 1.0)}, ValueError, "each of betas must be"),
        ({"max_updates": 0}, ValueError, "max_updates must be 'auto' or an integer of at least 1"),
        ({"max_updates": "all"}, ValueError, "max_updates must be 'auto' or an integer"),
        ({"drop_last": 1}, TypeError, "drop_last must be True or False"),
        ({"select": "mean"}, ValueError, "select must be one of .*'average'"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        fitted(**params)


@pytest.mark.parametrize(
    "params",
    [
        {"temporal_unit": 1},
        {"instance_weight": 0.9},
        {"mask_probability": 0.1},
        {"mask_mode": "continuous"},
        {"mask_mode": "none"},
        {"mask_mode": "last_samples"},
        {"layer_norm": "everywhere"},
        {"loss_reduction": "published"},
    ],
    ids=str,
)
def test_each_parameter_reaches_the_objective(params):
    default, changed = (fitted(**p)[0].history_[-1]["train_loss"] for p in ({}, params))
    assert default != changed


# --- presets ---

# Data set: lr, batch; windows: mode, length, down-sampling, strides, fractions, channels.
TABLE = {
    "har": (1e-5, 64, "random", 128, 1, 128, 128, 1.0, 1.0, 6),
    "ecg": (1e-5, 64, "random", 500, 5, 128, 128, 1.0, 0.1, 2),
    "ppg": (1e-3, 64, "random", 960, 4, 128, 128, 1.0, 1.0, 1),
    "eeg": (1e-5, 64, "random", 1000, 3, 250, 1000, 0.2, 0.2, 2),
    "synthetic": (1e-4, 128, "labeled", 100, 1, None, None, 1.0, 1.0, 3),
    "har-transfer": (1e-5, 64, "random", 500, 1, 128, 128, 1.0, 1.0, 6),
    "eeg-transfer": (1e-3, 64, "random", 200, 1, 200, 200, 0.1, 0.1, 1),
}
CUT = "mode length downsample stride stride_val fraction fraction_val n_channels".split()
FRACTIONS_TWICE = {"ecg": (1.0, 0.1), "eeg": (0.04, 0.04), "eeg-transfer": (0.01, 0.01)}


@pytest.mark.parametrize("dataset", TABLE)
def test_presets(dataset):
    ts2vec = TS2VecTransformer(**presets.get("ts2vec", dataset))
    cut = presets.windows("ts2vec", dataset)
    assert (ts2vec.lr, ts2vec.batch_size, *(cut[name] for name in CUT)) == TABLE[dataset]
    assert (ts2vec.max_epochs, ts2vec.weight_decay) == (100, 1e-5)
    assert (ts2vec.gradient_clip_value, ts2vec.schedule) == (None, "one_cycle")
    assert (ts2vec.mask_mode, ts2vec.loss_reduction) == ("binomial", "mean")
    twice = presets.windows("ts2vec", dataset, published=True)
    expected = FRACTIONS_TWICE.get(dataset, (1.0, 1.0))
    assert (twice["fraction"], twice["fraction_val"]) == expected


@pytest.mark.parametrize("dataset", TABLE)
def test_published_behaviour(dataset):
    published = TS2VecTransformer(**presets.get("ts2vec", dataset, published=True))
    assert published.lr == pytest.approx(TABLE[dataset][0] / 25)
    assert (published.schedule, published.betas) == ("constant", (0.95, 0.999))
    assert (published.mask_mode, published.loss_reduction) == ("last_samples", "published")
    assert (published.layer_norm, published.deterministic_validation) == ("embedding", False)
    assert (published.batch_size, published.gradient_clip_value) == (TABLE[dataset][1], None)


def test_official_behaviour():
    official = TS2VecTransformer(**presets.get("ts2vec", "har", official=True))
    assert (official.lr, official.weight_decay, official.batch_size) == (1e-3, 1e-2, 16)
    assert (official.schedule, official.betas, official.select) == ("constant", None, "average")
    assert (official.layer_norm, official.representation_dropout) == ("none", 0.1)
    assert (official.max_updates, official.drop_last) == ("auto", True)
    with pytest.raises(ValueError, match="different presets"):
        presets.get("ts2vec", "har", official=True, published=True)


@pytest.mark.parametrize("masked", [False, True])
def test_many_similarities_are_held_a_part_at_a_time(monkeypatch, masked):
    """Same loss and gradients; no part is kept that is larger than the limit."""
    views = [view.requires_grad_() for view in torch.randn(2, 6, 16, 8)]
    observed = torch.rand(6, 16) > 0.2 if masked else None
    results, largest = [], []

    def keep(tensor):
        largest[-1] = max(largest[-1], tensor.numel())
        return tensor

    for most in (2**27, 2 * 32**2):  # of six groups of 32 rows, two at a time
        monkeypatch.setattr("sklearn_pulse.functional._MAX_LOGITS", most)
        largest.append(0)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = hierarchical_contrast(*views, observed)
        results.append((loss, *torch.autograd.grad(loss, views)))
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7)
    assert largest[0] >= 6 * 32**2
    assert largest[1] <= 2 * 32**2


@pytest.mark.parametrize(("kind", "n_updates"), [("published", 2 * 3), ("official", 2)])
def test_presets_train(kind, n_updates):
    """Two epochs of 20 windows in batches of eight, or so many updates."""
    params = presets.get("ts2vec", "har", **{kind: True})
    params |= {"max_updates": 2} if "max_updates" in params else {}
    ts2vec = TS2VecTransformer(**params | TS2VEC).fit(make_windows()[0])
    assert sum(epoch["train_batch_count"] for epoch in ts2vec.history_) == n_updates
