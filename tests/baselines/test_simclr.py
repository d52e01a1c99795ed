import copy
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch import nn
from torch.nn.functional import cosine_similarity

from perf.literal import LiteralEncoder, copy_weights
from sklearn_pulse import presets
from sklearn_pulse._data._batches import join_batches
from sklearn_pulse._data._validation import check_windows
from sklearn_pulse._training._iterator import ResidentBatches
from sklearn_pulse.baselines import RandomEncoderTransformer, SimCLRTransformer
from sklearn_pulse.baselines._simclr import AugmentationContrast, ContrastBatches
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.functional import info_nce
from sklearn_pulse.windows import RecordingWindows, sliding_windows
from tests.baselines.task import chaotic_recordings, chaotic_task
from tests.helpers import SMALL, SMALL_ENCODER, BatchSpy, accepted, callback_of, make_windows, small

simclr_of = partial(small, SimCLRTransformer)


def objective(**params):
    torch.manual_seed(0)
    return AugmentationContrast(2, **SMALL_ENCODER | params)


# --- the published formula ---


def literal_cross_entropy(anchor, candidates, positive, temperature):
    """-log of the share of the positive in the sum over all candidates, term by term."""
    terms = [math.exp(cosine_similarity(anchor, c, dim=0).item() / temperature) for c in candidates]
    return -math.log(terms[positive] / sum(terms))


@pytest.mark.parametrize("temperature", [1.0, 0.1])
@pytest.mark.parametrize("batch", [2, 5])
def test_loss_literally(temperature, batch):
    simclr = objective(temperature=temperature).double()
    x = torch.randn(batch, 16, 2, dtype=torch.float64)
    positive = torch.randn_like(x)
    loss = simclr.contrast(x, None, positive, None)
    z, z_positive = simclr.encode(x), simclr.encode(positive)
    total = 0.0
    for i in range(batch):
        others = [z[j] for j in range(batch) if j != i] + list(z_positive)
        assert len(others) == 2 * batch - 1
        total += literal_cross_entropy(z[i], others, batch - 1 + i, temperature)
    assert loss.item() == pytest.approx(total / batch, rel=1e-6)


def test_info_nce_with_candidates_of_their_own():
    anchors, candidates = torch.randn(3, 4), torch.randn(3, 6, 4)
    positive = torch.tensor([2, 0, 5])
    expected = [
        literal_cross_entropy(anchors[i], candidates[i], positive[i].item(), 0.5) for i in range(3)
    ]
    loss = info_nce(anchors, candidates, positive, 0.5)
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-5)


def test_info_nce_counts_allowed_candidates_only():
    anchors, candidates = torch.randn(3, 4), torch.randn(6, 4)
    positive, allowed = torch.tensor([0, 1, 2]), torch.ones(3, 6, dtype=torch.bool)
    allowed[:, 4:] = False
    torch.testing.assert_close(
        info_nce(anchors, candidates, positive, 0.1, allowed),
        info_nce(anchors, candidates[:4], positive, 0.1),
    )


def test_info_nce_keeps_its_precision_under_autocast():
    anchors, candidates = torch.randn(8, 16), torch.randn(8, 16)
    positive = torch.arange(8)
    expected = info_nce(anchors, candidates, positive, 0.001)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(info_nce(anchors, candidates, positive, 0.001), expected)


@pytest.mark.parametrize("temperature", [1.0, 0.001])
def test_gradient_is_finite_and_agrees_with_differences(temperature):
    simclr = objective(temperature=temperature).double()
    x, positive = torch.randn(2, 4, 8, 2, dtype=torch.float64)
    weight = simclr.encoder.input.weight
    (gradient,) = torch.autograd.grad(simclr.contrast(x, None, positive, None), weight)
    assert gradient.isfinite().all()
    if temperature == 1.0:  # info_nce computes in float32, so differences are coarse
        step, losses = 1e-2, []
        with torch.no_grad():
            for sign in (1, -1):
                weight[0, 0] += sign * step
                losses.append(simclr.contrast(x, None, positive, None).item())
                weight[0, 0] -= sign * step
        slope = (losses[0] - losses[1]) / (2 * step)
        assert gradient[0, 0].item() == pytest.approx(slope, rel=0.05, abs=1e-4)


def test_one_direction_only():
    """Anchors look for positives; positives look for nobody."""
    simclr = objective(temperature=0.1)
    x, positive = torch.randn(2, 4, 16, 2)
    assert simclr.contrast(x, None, positive, None) != simclr.contrast(positive, None, x, None)


def test_twenty_updates_agree_with_a_plain_training(monkeypatch):
    seen, contrast = [], AugmentationContrast.contrast

    def spy(self, x, observed, positive, positive_observed):
        seen.append((x.clone(), positive.clone()))
        return contrast(self, x, observed, positive, positive_observed)

    monkeypatch.setattr(AugmentationContrast, "contrast", spy)
    params = {"max_epochs": 5, "validation_fraction": 0.0, "select": "last", "temperature": 0.2}
    simclr = simclr_of(**params, callbacks=[BatchSpy()]).fit(make_windows(32)[0])
    assert len(seen) == 20

    plain = LiteralEncoder(2, 8, 8, 3)
    copy_weights(callback_of(simclr, BatchSpy).before_.encoder, plain)
    start = copy.deepcopy(plain)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-3, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=20)
    for step, (x, positive) in enumerate(seen):
        z = torch.cat([plain(x), plain(positive)])
        similarity = torch.stack([cosine_similarity(row.unsqueeze(0), z) for row in z]) / 0.2
        losses = []
        for i in range(len(x)):
            others = torch.cat([similarity[i, :i], similarity[i, i + 1 :]])
            losses.append(others.exp().sum().log() - similarity[i, i + len(x)])
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        nn.utils.clip_grad_value_(plain.parameters(), 5.0)
        optimizer.step()
        if step < 19:
            schedule.step()
    expected = LiteralEncoder(2, 8, 8, 3)
    copy_weights(simclr.encoder_, expected)
    for before, ours, theirs in zip(
        *(encoder.parameters() for encoder in (start, expected, plain)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
        assert (theirs - before).abs().max() > 1e-3


# --- positives ---


def positives_of(simclr, **batch):
    """What `forward` contrasts the anchors with."""
    seen = SimpleNamespace()

    def spy(x, observed, positive, positive_observed):
        seen.anchor, seen.positive, seen.observed = x, positive, positive_observed
        return x.sum() * 0.0

    simclr.contrast = spy
    simclr(**batch)
    return seen


def test_the_anchor_is_not_augmented_and_nothing_aliases():
    x = torch.randn(30, 16, 2)
    before = x.clone()
    seen = positives_of(objective(augmentation_probability=1.0), x=x)
    assert torch.equal(seen.anchor, before)
    seen.positive.zero_()
    assert torch.equal(x, before)


@pytest.mark.parametrize(
    ("only", "changed"),
    [
        ({"jitter": 0.0, "scale_range": (1.0, 1.0)}, "shift"),
        ({"max_shift": 0.0, "scale_range": (1.0, 1.0)}, "jitter"),
        ({"max_shift": 0.0, "jitter": 0.0}, "scale"),
    ],
)
def test_each_augmentation_by_itself_changes_half_of_the_windows(only, changed):
    x = torch.randn(3000, 8, 2)
    seen = positives_of(objective(**only), x=x)
    share = (seen.positive != x).flatten(1).any(1).float().mean().item()
    zero_shifts = 1 / 8 if changed == "shift" else 0.0
    assert share == pytest.approx(0.5 * (1 - zero_shifts), abs=0.03)


def test_jitter_is_a_fifth_of_the_data_and_comes_after_the_scale():
    params = {"max_shift": 0.0, "augmentation_probability": 1.0, "scale_range": (3.0, 3.0)}
    x = torch.randn(500, 16, 2)
    given = positives_of(objective(**params), x=x, data_std=torch.full((500,), 10.0))
    assert (given.positive - 3.0 * x).std().item() == pytest.approx(2.0, rel=0.05)
    own = positives_of(objective(**params), x=7.0 * x)
    assert (own.positive - 21.0 * x).std().item() == pytest.approx(1.4, rel=0.05)


def ramps(lengths=(40, 40, 11), n_channels=2):
    """Recordings whose values say recording and step."""
    return [
        100.0 * i + np.arange(float(n))[:, None].repeat(n_channels, 1)
        for i, n in enumerate(lengths)
    ]


def batches_of(X, max_shift=0.5):
    windows = check_windows(SimCLRTransformer(), X, reset=True)
    return ContrastBatches(windows, np.arange(len(windows)), torch.device("cpu"), max_shift)


NO_OTHER = {"jitter": 0.0, "scale_range": (1.0, 1.0), "augmentation_probability": 1.0}


@pytest.mark.parametrize("downsample", [1, 2])
def test_positives_are_shifted_along_the_recording(downsample):
    latest = 39 - 7 * downsample
    starts = [0, 1, 9, 20, latest - 3, latest] * 500
    X = RecordingWindows(ramps(), [1] * 3000, starts, length=8, downsample=downsample)
    batch = batches_of(X)[torch.arange(3000)]
    assert torch.equal(batch["x"], torch.from_numpy(np.asarray(X)))
    seen = positives_of(objective(**NO_OTHER), **batch)
    assert torch.equal(seen.anchor, batch["x"])
    shift = (seen.positive - batch["x"]) / downsample
    torch.testing.assert_close(shift, shift[:, :1, :1].expand_as(shift))  # a real cut, no edges
    for i, start in enumerate(starts[:6]):
        before, after = start // downsample, (39 - start - 7 * downsample) // downsample
        expected = range(-min(4, before), min(3, after) + 1)
        assert shift[i::6, 0, 0].unique().tolist() == list(expected)


def test_a_recording_of_one_window_is_its_own_positive():
    X = RecordingWindows(ramps((8, 8)), [0, 1], [0, 0], length=8)
    batch = batches_of(X)[torch.arange(2)]
    assert torch.equal(positives_of(objective(**NO_OTHER), **batch).positive, batch["x"])


def test_positives_in_a_gap_of_the_recording_stay_where_they_are():
    recording = ramps((40,))[0]
    recording[:12], recording[20:32] = np.nan, np.nan
    X = RecordingWindows([recording], [0] * 300, [12] * 300, length=8)
    batch = batches_of(X, max_shift=1.0)[torch.arange(300)]
    seen = positives_of(objective(**NO_OTHER, max_shift=1.0), **batch)
    assert seen.observed.any(1).all()
    first_seen = seen.observed.int().argmax(1)
    values = seen.positive[torch.arange(300), first_seen, 0]
    assert ((values >= 12) & (values < 20)).all()
    assert torch.isfinite(objective(max_shift=1.0)(**batch))


def test_an_infinity_beside_the_windows_is_told_from_one_in_them():
    recording = np.random.default_rng(0).normal(size=(60, 1))
    recording[28] = np.inf
    X = RecordingWindows([recording], [0] * 6, [0, 10, 18, 30, 40, 50], length=10)
    params = {**SMALL_ENCODER, "max_epochs": 1, "validation_fraction": 0, "random_state": 0}
    SimCLRTransformer(**params, max_shift=0.0).fit(X)  # reads nothing beside the windows
    with pytest.raises(ValueError, match="^the recordings around the windows, .* infinity"):
        SimCLRTransformer(**params).fit(X)


def test_windows_of_an_array_are_shifted_with_repeated_edges():
    x = torch.from_numpy(np.stack(ramps((8,) * 200))).float()
    assert "context" not in batches_of(x)[torch.arange(2)]
    seen = positives_of(objective(**NO_OTHER), x=x)
    values = (seen.positive - 100.0 * torch.arange(200).view(-1, 1, 1)).clamp(0, 7)
    assert torch.equal(values, seen.positive - 100.0 * torch.arange(200).view(-1, 1, 1))
    assert (seen.positive.diff(dim=1) >= 0).all()


def test_spread_of_the_data_is_that_of_each_part():
    X, _ = make_windows(40)
    X[20:] *= 10.0
    X[3, 5:] = np.nan
    windows = check_windows(SimCLRTransformer(), X, reset=True)
    for index in (np.arange(20), np.arange(20, 40)):
        batch = ContrastBatches(windows, index, torch.device("cpu"), 0.5)[torch.arange(4)]
        expected = np.nanstd(X[index])
        np.testing.assert_allclose(batch["data_std"], np.full(4, expected), rtol=1e-5)


# --- the estimator ---


def test_recordings_and_bare_windows_learn_different_things():
    recordings = np.random.default_rng(0).normal(size=(4, 80, 2))
    w = sliding_windows(recordings, length=16, stride=16, lazy=True)
    lazy = simclr_of().fit(w.X, groups=w.recording)
    bare = simclr_of().fit(np.asarray(w.X), groups=w.recording)
    assert not np.array_equal(lazy.transform(w.X), bare.transform(w.X))
    again = simclr_of().fit(w.X, groups=w.recording)
    np.testing.assert_array_equal(lazy.transform(w.X), again.transform(w.X))


@pytest.mark.parametrize(("stride", "shift"), [(16, 0.5), (31, 0.5), (16, 0.1)])
def test_shifted_copies_that_reach_the_next_window_are_warned_of(stride, shift):
    """16 steps and 8 on both sides: windows 31 steps apart share one."""
    recordings = np.random.default_rng(0).normal(size=(3, 200, 2)).astype(np.float32)
    windows = sliding_windows(recordings, length=16, stride=stride, lazy=True)
    simclr = simclr_of(max_epochs=1, max_shift=shift)
    with pytest.warns(UserWarning, match="validation shares time steps with training"):
        simclr.fit(windows.X)
    simclr.fit(windows.X, groups=windows.recording)
    simclr.set_params(max_shift=0.0).fit(windows.X)
    apart = sliding_windows(recordings, length=16, stride=32, lazy=True)
    simclr.set_params(max_shift=0.5).fit(apart.X)


def test_resident_batches_hold_what_lazy_ones_do():
    recordings = ramps()
    recordings[0][5] = np.nan
    X = RecordingWindows(recordings, [0, 1, 1], [2, 4, 20], length=8)
    batches = batches_of(X)
    joined = ResidentBatches(
        **join_batches([batches[torch.tensor([i])] for i in range(3)], batches._masks)
    )
    whole = batches[torch.arange(3)]
    moved = joined[torch.arange(3)]
    assert whole.keys() == moved.keys()
    assert all(torch.equal(whole[name], moved[name]) for name in whole)


def test_two_windows_can_be_fitted_and_one_cannot():
    X, _ = make_windows(2)
    assert simclr_of().fit_transform(X).shape == (2, 8)
    with pytest.raises(ValueError, match="contrasts windows, so n_samples=1 is too few"):
        simclr_of().fit(X[:1])


def test_a_validation_part_of_one_window_is_left_out():
    X, _ = make_windows(9)
    few = simclr_of(validation_fraction=0.1, select="min_val").fit(X)
    assert "valid_loss" not in few.history_[-1]
    assert "valid_loss" in simclr_of(validation_fraction=0.2).fit(X).history_[-1]  # of two


def test_no_window_is_left_alone_in_a_batch():
    """Of nine in batches of eight there is one batch, in both parts and in the one cycle."""
    X, _ = make_windows(9)
    simclr = simclr_of(max_epochs=4, callbacks=[BatchSpy()]).fit(X, X_val=X)
    spy = callback_of(simclr, BatchSpy)
    assert [len(batch["x"]) for batch in spy.batches_] == [9] * 4
    assert spy.setting("lr")[-1] == pytest.approx(1e-3 / 250_000)  # the one cycle is run through
    assert simclr.history_[0]["valid_batch_count"] == 1


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"temperature": 0.0}, ValueError, "temperature must be a number in \\(0"),
        ({"max_shift": 1.5}, ValueError, "max_shift must be a number in \\[0, 1\\]"),
        ({"jitter": -1.0}, ValueError, "jitter must be"),
        ({"augmentation_probability": 2}, ValueError, "augmentation_probability must be"),
        ({"scale_range": (1.5, 0.5)}, ValueError, "larger bound first: swap them"),
        ({"scale_range": (0.5, "1")}, TypeError, "each bound of scale_range"),
        ({"select": "mean"}, ValueError, "select must be one of"),
        ({"layer_norm": "all"}, ValueError, "layer_norm must be one of"),
        ({"representation_dropout": 1.0}, ValueError, "representation_dropout must be"),
        ({"schedule": "cosine"}, ValueError, "schedule must be one of"),
        ({"betas": (0.9, 0.99)}, ValueError, "betas=.* goes with schedule='constant' only"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        simclr_of(**params).fit(make_windows()[0])


def test_an_integer_beyond_64_bits_is_a_number_as_any_other():
    X, _ = make_windows(8)
    losses = {simclr_of(temperature=t).fit(X).history_[0]["train_loss"] for t in (10**30, 1e30)}
    assert len(losses) == 1


def test_a_constant_schedule():
    X, _ = make_windows()
    simclr = simclr_of(schedule="constant", lr=3e-4, betas=(0.95, 0.99)).fit(X)
    (group,) = simclr.net_.optimizer_.param_groups
    assert (group["lr"], group["betas"]) == (3e-4, (0.95, 0.99))


def test_the_average_of_the_epoch_with_the_lowest_validation_loss(tmp_path):
    class Record(Callback):
        def on_train_begin(self, net, **kwargs):
            weight = net.module_.encoder.input.weight.detach().clone()
            self.weights_, self.averages_ = [weight], []

        def on_batch_end(self, net, training, **kwargs):
            if training:
                self.weights_.append(net.module_.encoder.input.weight.detach().clone())

        def on_epoch_end(self, net, **kwargs):
            self.averages_.append(torch.stack(self.weights_).mean(0))

    X, _ = make_windows()
    rules = ("average_min_val", "min_val", "average")
    best, lowest, last = (
        simclr_of(
            max_epochs=8,
            lr=0.1,
            schedule="constant",
            select=rule,
            validation_every=1,
            callbacks=[Record()],
        ).fit(X)
        for rule in rules
    )
    losses = [epoch["valid_loss"] for epoch in best.history_]
    assert losses == [epoch["valid_loss"] for epoch in lowest.history_]
    chosen = best.selected_epoch_ - 1
    assert chosen == int(np.argmin(losses)) < 7
    record = callback_of(best, Record)
    weight = best.encoder_.input.weight
    torch.testing.assert_close(weight, record.averages_[chosen])
    for other in (lowest.encoder_.input.weight, last.encoder_.input.weight, record.weights_[-1]):
        assert not torch.allclose(weight, other, atol=1e-4)
    best.set_params(callbacks=None).save_pretrained(tmp_path / "model")
    loaded = SimCLRTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), best.transform(X))


def test_without_validation_the_average_is_that_of_all_weights():
    X, _ = make_windows()
    all_weights, best = (
        simclr_of(select=rule, validation_fraction=0).fit(X).transform(X)
        for rule in ("average", "average_min_val")
    )
    np.testing.assert_array_equal(all_weights, best)


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 0.5},
        {"max_shift": 0.25},
        {"scale_range": (0.9, 1.1)},
        {"jitter": 0.5},
        {"augmentation_probability": 1.0},
        {"pooling": "mean"},
        {"layer_norm": "none"},
        {"layer_norm": "embedding"},
        {"representation_dropout": 0.3},
    ],
    ids=str,
)
def test_each_parameter_reaches_the_objective(params):
    x = torch.from_numpy(make_windows()[0])
    losses = [objective(**p)(x=x).item() for p in ({}, params)]
    assert losses[0] != losses[1]


@pytest.mark.slow
def test_it_learns_more_than_an_untrained_encoder_knows():
    """Copies of the same trial, whole windows apart and with their amplitude; 40 s on one core."""
    X_train, y_train, X_test, y_test = chaotic_task()
    recordings = chaotic_recordings()
    sizes = {"embedding_dim": 64, "encoder_hidden_dim": 32, "encoder_depth": 6}
    sizes |= {"num_threads": 1, "random_state": 0}
    views = {"max_shift": 1.0, "scale_range": (1.0, 1.0), "augmentation_probability": 1.0}
    simclr = SimCLRTransformer(**sizes, **views, temperature=0.1, max_epochs=15, batch_size=64)
    scores = []
    for encoder in (
        simclr.fit(recordings, groups=recordings.recording),
        RandomEncoderTransformer(**sizes).fit(X_train),
    ):
        probe = make_linear_probe().fit(encoder.transform(X_train), y_train)
        scores.append(probe.score(encoder.transform(X_test), y_test))
    assert scores[0] > scores[1] > 0.6


# --- presets ---

# Data set: temperature, batch; windows: length, down-sampling, strides, fractions, channels.
TABLE = {
    "har": (1.0, 64, 128, 1, 128, 128, 1.0, 1.0, 6),
    "ecg": (0.001, 64, 500, 5, 250, 250, 1.0, 0.1, 2),
    "ppg": (1.0, 64, 960, 4, 128, 128, 1.0, 1.0, 1),
    "eeg": (1.0, 64, 1000, 3, 250, 1000, 1.0, 1.0, 2),
    "synthetic": (1.0, 128, 100, 1, 100, 100, 1.0, 1.0, 3),
    "har-transfer": (1.0, 64, 500, 1, 128, 128, 1.0, 1.0, 6),
    "eeg-transfer": (1.0, 64, 200, 1, 200, 200, 0.1, 0.1, 1),
}
CUT = "length downsample stride stride_val fraction fraction_val n_channels".split()


@pytest.mark.parametrize("dataset", TABLE)
def test_presets(dataset):
    simclr = SimCLRTransformer(**presets.get("simclr", dataset))
    cut = presets.windows("simclr", dataset)
    row = (simclr.temperature, simclr.batch_size, *(cut[name] for name in CUT))
    assert row == TABLE[dataset]
    assert (simclr.max_epochs, simclr.lr, simclr.weight_decay) == (100, 1e-3, 1e-5)
    assert (simclr.gradient_clip_value, cut["mode"]) == (5.0, "random")
    published = presets.get("simclr", dataset, published=True)
    assert published == presets.get("simclr", dataset) | {"deterministic_validation": False}
    assert presets.windows("simclr", dataset, published=True) == cut


# Data set: temperature, batch, epochs.
OFFICIAL = {
    "har": (1, 64, 100),
    "ecg": (0.001, 16, 100),
    "ppg": (1, 16, 200),
    "eeg": (1, 64, 100),
    "synthetic": (1, 128, 100),
}


@pytest.mark.parametrize("dataset", OFFICIAL)
def test_official_presets(dataset):
    simclr = SimCLRTransformer(**presets.get("simclr", dataset, official=True))
    row = simclr.temperature, simclr.batch_size, simclr.max_epochs
    assert row == OFFICIAL[dataset]
    assert (simclr.layer_norm, simclr.representation_dropout) == ("none", 0.1)
    assert (simclr.schedule, simclr.lr, simclr.weight_decay) == ("constant", 1e-3, 1e-2)
    assert (simclr.select, simclr.validation_every) == ("average_min_val", 1)
    assert (simclr.gradient_clip_value, simclr.deterministic_validation) == (None, False)
    assert np.isfinite(
        simclr.set_params(**accepted(SimCLRTransformer, SMALL)).fit_transform(make_windows()[0])
    ).all()
