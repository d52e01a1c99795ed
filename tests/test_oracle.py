"""PULSE's oracles: pairs of one class, the loss of each written out, what validation sees."""

from functools import cache, partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback

from sklearn_pulse import FineTuneClassifier, PulseOracleTransformer, presets
from sklearn_pulse._data._windows import CheckedWindows
from sklearn_pulse.base import BaseEncoderTransformer, PairBatches
from sklearn_pulse.benchmark import _methods
from sklearn_pulse.functional import keep_mask
from sklearn_pulse.objectives import NegativePairs, PairReconstruction, PositivePairs
from tests.helpers import callback_of, make_windows, sklearn_suite, small, weights_of
from tests.kills import killed

X, y = make_windows()
KINDS = ("positive", "negative")
REDUCTIONS = ("published", "valid")
NETWORKS = {
    "embedding_dim": 12,
    "encoder_hidden_dim": 8,
    "encoder_depth": 1,
    "gru_hidden_dim": 8,
    "init_hidden_dim": 8,
}

each_kind = pytest.mark.parametrize("kind", KINDS)
make_oracle = partial(small, PulseOracleTransformer, encoder_depth=1, gru_num_layers=1)


@cache
def first_fit(**params):
    """Return an oracle fitted on `X`, once in a process. Nobody may change it."""
    return make_oracle(**params).fit(X, y)


def numbered(n=40, n_timesteps=12):
    """Noisy windows whose first value is their number."""
    windows = np.random.default_rng(0).normal(size=(n, n_timesteps, 2)).astype(np.float32)
    windows[:, 0, 0] = np.arange(n)
    return windows


@pytest.fixture
def batches(monkeypatch):
    """Whether each batch was trained on, its windows and their partners."""
    seen = []
    original = PairReconstruction.forward

    def forward(objective, x, observed=None, starts=None, partner=None, partner_observed=None):
        seen.append((objective.training, x.clone(), partner.clone()))
        return original(objective, x, observed, starts, partner, partner_observed)

    monkeypatch.setattr(PairReconstruction, "forward", forward)
    return seen


def numbers(batches, training):
    """Numbers of the windows of some batches, and of their partners."""
    firsts = [(x[:, 0, 0], p[:, 0, 0]) for t, x, p in batches if t is training]
    return [torch.cat(part).int().numpy() for part in zip(*firsts, strict=True)]


def epochs(anchors, partners):
    """Who was paired with whom in each of two epochs."""
    half = len(anchors) // 2
    first, second = (
        dict(zip(anchors[part], partners[part], strict=True))
        for part in (slice(half), slice(half, None))
    )
    assert first.keys() == second.keys()
    return first, second


# --- the losses, sample by sample ---


def encoded(objective, x, observed):
    """Theta, time-varying part and initial states of one window."""
    x, observed = x.unsqueeze(0), observed.unsqueeze(0)
    steps = objective.encoder.encode_steps(x, observed)
    theta = objective.encoder.pool(steps, observed)[0]
    drive = objective.time_varying(steps, observed)[0]
    init_input = steps if objective.shared_encoder else x
    return theta, drive, objective.initial_condition(init_input, observed)[0]


def literal_pass(objective, theta, drive, condition, t0, target):
    """Predictions after t0, minus the target."""
    inputs = torch.stack([torch.cat([theta, drive[t]]) for t in range(t0 + 1, len(target))])
    prediction = objective.decoder(inputs.unsqueeze(1), condition.unsqueeze(0)).squeeze(1)
    return prediction - target[t0 + 1 :]


def mean_error(errors, scored, starts, n_timesteps, reduction):
    """Mean of all squared errors, those past the end of a shorter pass counted as zero or not."""
    total = sum(e[s].square().sum() for e, s in zip(errors, scored, strict=True))
    longest = n_timesteps - 1 - int(starts.min())
    counted = len(errors) * longest if reduction == "published" else sum(s.sum() for s in scored)
    return total / (counted * errors[0].shape[1])


def literal_positive(objective, source, x, observed, partner, partner_observed, starts):
    """Return the loss as a function of the reduction."""
    errors, scored = [], []
    for i, t0 in enumerate(starts.tolist()):
        theta, _, from_anchor = encoded(objective, x[i], observed[i])
        _, drive, conditions = encoded(objective, partner[i], partner_observed[i])
        condition = conditions[t0]
        if source == "anchor":
            steps = observed[i].nonzero().ravel().tolist()
            condition = from_anchor[max(min(t0, steps[-1]), steps[0])]
        errors.append(literal_pass(objective, theta, drive, condition, t0, partner[i]))
        scored.append(partner_observed[i, t0 + 1 :])
    return partial(mean_error, errors, scored, starts, x.shape[1])


def literal_negative(objective, x, observed, partner, partner_observed, starts, keep):
    """Return the loss as a function of the reduction."""
    errors, scored = [], []
    for i, t0 in enumerate(starts.tolist()):
        halves = []
        for window, seen, kept in (
            (x[i], observed[i], keep[0, i]),
            (partner[i], partner_observed[i], keep[1, i]),
        ):
            masked = window / (1 - objective.mask_probability)
            masked[~kept | ~seen] = 0.0
            halves.append(masked)
        either = observed[i] | partner_observed[i]
        theta, drive, conditions = encoded(objective, torch.cat(halves, 1), either)
        target = torch.cat([x[i], partner[i]], 1)
        both = literal_pass(objective, theta, drive, conditions[t0], t0, target)
        errors += both.split(x.shape[2], 1)
        scored += [observed[i, t0 + 1 :], partner_observed[i, t0 + 1 :]]
    return partial(mean_error, errors, scored, starts, x.shape[1])


def pairs(missing, batch=5, n_timesteps=14, n_channels=3):
    generator = torch.Generator().manual_seed(0)
    x, partner = torch.randn(2, batch, n_timesteps, n_channels, generator=generator)
    observed, partner_observed = torch.ones(2, batch, n_timesteps, dtype=torch.bool)
    if missing:  # padding at both ends, holes, and a pair that shares no step
        partner_observed[2, 3:6] = False
        partner_observed[3, 8:] = False
        partner_observed[4, :7] = False
        partner[~partner_observed] = -7.0  # any finite value
    if missing == "both":
        observed[0, 9:] = False
        observed[1, :4] = False
        observed[2, 5] = False
        observed[4, 7:] = False
        x[~observed] = 7.0
    return x, observed, partner, partner_observed


def arguments(x, observed, partner, partner_observed, missing):
    """What the objective is given: no mask where nothing is missing."""
    masks = {"partner_observed": partner_observed} if missing else {}
    masks |= {"observed": observed} if missing == "both" else {}
    return {"x": x, "partner": partner, **masks}


def starts_of(objective, x, seen):
    """Starts drawn by hand (all of them different), or the first observed steps."""
    first = seen.to(int).argmax(1)
    return first + torch.arange(len(x)) % 4 if objective.sample_init else first


each_pass = pytest.mark.parametrize("sample_init", [True, False])
each_missing = pytest.mark.parametrize("missing", [None, "partner", "both"])


@each_pass
@each_missing
@pytest.mark.parametrize(
    ("init_source", "shared_encoder", "source"),
    [
        ("target", False, "target"),
        ("anchor", False, "anchor"),
        ("published", False, "anchor"),
        ("published", True, "target"),
    ],
)
def test_the_positive_loss_is_the_literal_one(
    init_source, shared_encoder, source, missing, sample_init
):
    data = pairs(missing)
    params = {"shared_encoder": shared_encoder, "init_source": init_source}
    losses = {}
    for reduction in REDUCTIONS:
        torch.manual_seed(0)  # the same networks
        objective = PositivePairs(
            3,
            **NETWORKS,
            **params,
            time_varying_dim=2,
            loss_reduction=reduction,
            sample_init=sample_init,
        ).train()
        starts = starts_of(objective, data[2], data[3])
        given = {"starts": starts.unsqueeze(0)} if sample_init else {}
        losses[reduction] = objective(**arguments(*data, missing), **given)
    literal = literal_positive(objective, source, *data, starts)
    for reduction, loss in losses.items():
        torch.testing.assert_close(loss, literal(reduction), rtol=1e-6, atol=1e-6)


@each_pass
@each_missing
@pytest.mark.parametrize("training", [True, False])
def test_the_negative_loss_is_the_literal_one(training, missing, sample_init):
    data = pairs(missing)
    x, observed, _, partner_observed = data
    keep = keep_mask((2, *x.shape[:2]), 0.25, torch.Generator().manual_seed(5))
    assert not torch.equal(keep[0], keep[1])
    losses = {}
    for reduction in REDUCTIONS:
        torch.manual_seed(0)  # the same networks
        objective = NegativePairs(
            3, **NETWORKS, loss_reduction=reduction, sample_init=sample_init, seed=5
        )
        starts = starts_of(objective, x, observed | partner_observed)
        given = {"starts": starts.unsqueeze(0)} if sample_init else {}
        losses[reduction] = objective.train(training)(**arguments(*data, missing), **given)
    literal = literal_negative(objective, *data, starts, keep)
    for reduction, loss in losses.items():
        torch.testing.assert_close(loss, literal(reduction), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("objective_class", [PositivePairs, NegativePairs])
def test_a_shared_encoder_gives_the_initial_state(objective_class):
    torch.manual_seed(0)
    objective = objective_class(3, **NETWORKS, shared_encoder=True)
    x, _, partner, _ = pairs(False)
    objective(x=x, partner=partner).backward()
    assert objective.initial_condition.conv1.in_channels == 12
    assert all(p.grad is not None for p in objective.parameters())


@pytest.mark.parametrize("objective_class", [PositivePairs, NegativePairs])
def test_random_starts_leave_enough_to_predict_of_the_target(objective_class):
    objective = objective_class(3, **NETWORKS, min_crop_length=5)
    x, observed, partner, partner_observed = pairs(True)
    target = partner_observed
    if objective_class is NegativePairs:
        target = observed | partner_observed
    many = (part.repeat(80, *[1] * (part.ndim - 1)) for part in (x, observed))
    partners = (part.repeat(80, *[1] * (part.ndim - 1)) for part in (partner, partner_observed))
    with torch.no_grad():
        starts = objective.reconstruct(*many, None, *partners).starts
    drawn = starts[0, :400].view(80, 5)
    steps = [seen.nonzero().ravel() for seen in target]
    assert drawn.amin(0).tolist() == [int(s[0]) for s in steps]
    assert drawn.amax(0).tolist() == [int(s[-1]) - 5 for s in steps]


@pytest.mark.parametrize("objective_class", [PositivePairs, NegativePairs])
@pytest.mark.parametrize("param", [{"n_crops": 2}, {"crop": "fixed"}, {"crop_length": 4}])
def test_a_pair_has_one_pass_to_the_end_of_the_window(objective_class, param):
    with pytest.raises(TypeError, match=f"multiple values.*{next(iter(param))}"):
        objective_class(3, **NETWORKS, **param)


@torch.no_grad()
def as_encoded(objective, pair):
    """Return both windows of each pair as the encoder gets them."""
    seen, encode = [], objective.encode_window
    objective.encode_window = lambda x, observed: seen.append(x) or encode(x, observed)
    starts = torch.full((1, pair.shape[1]), pair.shape[2] - 2)  # which leave one step to predict
    objective(x=pair[0], partner=pair[1], starts=starts)
    return torch.stack(seen[0].chunk(2, dim=-1))


def test_masks_zero_whole_steps_and_rescale_the_others():
    objective = NegativePairs(2, **NETWORKS, mask_probability=0.25)
    pair = torch.rand(2, 200, 50, 2) + 1.0
    ratio = as_encoded(objective, pair) / pair
    zero = ratio[..., 0] == 0
    assert torch.equal(zero, ratio[..., 1] == 0)
    torch.testing.assert_close(ratio[~zero], torch.tensor(4 / 3).expand_as(ratio[~zero]))
    assert abs(zero.double().mean() - 0.25) < 0.01
    assert abs((zero[0] & zero[1]).double().mean() - 0.25**2) < 0.01  # independent of each other
    assert not torch.equal(as_encoded(objective, pair) == 0, ratio == 0)
    unmasked = NegativePairs(2, **NETWORKS, mask_probability=0.0)
    assert torch.equal(as_encoded(unmasked, pair), pair)


def test_ten_updates_are_those_of_a_plain_loop(batches, monkeypatch):
    drawn = []
    original = PositivePairs._run_passes

    def run_passes(objective, embedding, drive, condition, starts, x, observed):
        drawn.append(starts[0])
        return original(objective, embedding, drive, condition, starts, x, observed)

    monkeypatch.setattr(PositivePairs, "_run_passes", run_passes)
    initial = make_oracle(
        max_epochs=1, batch_size=5, lr=1e-30, weight_decay=0.0, validation_fraction=0
    ).fit(X[:10], y[:10])
    objective = initial.net_.module_
    batches.clear()
    drawn.clear()
    trained = make_oracle(
        max_epochs=5, batch_size=5, validation_fraction=0, gradient_clip_value=1e-3
    ).fit(X[:10], y[:10])
    assert len(batches) == len(drawn) == 10

    optimizer = torch.optim.AdamW(objective.parameters(), lr=1e-3, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=10)
    every = torch.ones(5, 16, dtype=torch.bool)
    for (_, x, partner), starts in zip(batches, drawn, strict=True):
        optimizer.zero_grad()
        literal = literal_positive(objective, "target", x, every, partner, every, starts)
        literal("published").backward()
        torch.nn.utils.clip_grad_value_(objective.parameters(), 1e-3)
        optimizer.step()
        schedule.step()
    assert (
        weights_of(initial) - weights_of(make_oracle(max_epochs=1).fit(X, y))
    ).abs().max() > 1e-4
    torch.testing.assert_close(weights_of(initial), weights_of(trained), rtol=1e-4, atol=1e-5)


# --- partners ---


def pair_batches(labels, index=None):
    labels = np.asarray(labels)
    windows = CheckedWindows(np.zeros((len(labels), 3, 1)), labels=labels)
    index = np.arange(len(labels)) if index is None else index
    return PairBatches(windows, index, torch.device("cpu"))


def test_partners_are_drawn_as_published():
    """Twice as many as members, taken from the end, skipping oneself."""
    labels = np.random.default_rng(0).integers(3, size=60)
    drawn = pair_batches(labels)
    drawn.stream = (7, 4)
    index = np.random.default_rng(1).permutation(60)[:20]
    rng = np.random.default_rng((7, 4, index[0]))
    expected = {}
    for label in range(3):
        members = [i for i in index if labels[i] == label]
        left = list(rng.choice(np.flatnonzero(labels == label), 2 * len(members), replace=False))
        for member in members:
            partner = left.pop()
            expected[member] = left.pop() if partner == member else partner
    assert drawn.draw(index).tolist() == [expected[i] for i in index]


@pytest.mark.parametrize("batch", [1, 4, 30])
def test_a_partner_is_another_window_of_the_class(batch):
    labels = np.repeat(["a", "b", "c", "d"], [2, 3, 5, 20])
    drawn = pair_batches(labels)
    rng = np.random.default_rng(0)
    for epoch in range(200):
        drawn.stream = (0, epoch)
        index = rng.permutation(30)[:batch]
        partners = drawn.draw(index)
        assert (labels[partners] == labels[index]).all()
        assert (partners != index).all()
        for label in np.unique(labels):
            taken = partners[labels[index] == label]
            if 2 * len(taken) <= (labels == label).sum():
                assert len(set(taken)) == len(taken)


@pytest.mark.parametrize(("n_windows", "batch"), [(9, 3), (3, 3), (4, 3), (2, 2)])
def test_partners_are_uniform(n_windows, batch):
    """Within six standard deviations, for a class that has enough windows and one that has not."""
    drawn = pair_batches(np.zeros(n_windows))
    rng = np.random.default_rng(0)
    counts = np.zeros((n_windows, n_windows))
    for epoch in range(4000):
        drawn.stream = (0, epoch)
        index = rng.permutation(n_windows)[:batch]
        np.add.at(counts, (index, drawn.draw(index)), 1)
    assert not np.diag(counts).any()
    expected = np.broadcast_to(counts.sum(1, keepdims=True) / (n_windows - 1), counts.shape)
    off = ~np.eye(n_windows, dtype=bool)
    assert (np.abs(counts - expected)[off] <= 6 * np.sqrt(expected[off])).all()


def test_a_window_alone_in_its_class_is_its_own_partner():
    drawn = pair_batches([0, 1, 0, 2])
    assert drawn.draw(np.arange(4)).tolist() == [2, 1, 0, 3]


def test_draws_depend_on_the_stream_and_the_batch_alone():
    drawn, again = pair_batches(np.zeros(50)), pair_batches(np.zeros(50))
    first = drawn.draw(np.arange(5, 15))
    for other in (np.arange(20), np.arange(3)):
        drawn.draw(other)
    np.testing.assert_array_equal(drawn.draw(np.arange(5, 15)), first)
    np.testing.assert_array_equal(again.draw(np.arange(5, 15)), first)
    again.stream = (0, 1)
    assert not np.array_equal(again.draw(np.arange(5, 15)), first)


def test_every_epoch_has_new_partners_within_its_part(batches):
    windows, labels = numbered(), np.arange(40) % 2
    make_oracle(validation_every=1).fit(windows, labels)
    parts = {}
    for training in (True, False):
        anchors, partners = numbers(batches, training)
        assert (labels[anchors] == labels[partners]).all()
        assert (anchors != partners).all()
        assert set(partners) <= set(anchors)
        first, second = epochs(anchors, partners)
        assert (first != second) is training
        parts[training] = set(anchors)
    assert not parts[True] & parts[False]
    assert parts[True] | parts[False] == set(range(40))


def test_validation_draws_partners_anew_as_published(batches):
    windows, labels = numbered(), np.arange(40) % 2
    oracle = make_oracle(validation_every=1, deterministic_validation=False)
    oracle.fit(windows[:20], labels[:20], X_val=windows[20:], y_val=labels[20:])
    anchors, partners = numbers(batches, True)  # dropout and the like stay on
    held_out = anchors >= 20
    first, second = epochs(anchors[held_out], partners[held_out])
    assert first != second


@each_kind
def test_validation_repeats_its_draws_unless_told_otherwise(kind):
    params = {"kind": kind, "max_epochs": 3, "validation_every": 1, "lr": 1e-30}
    params |= {
        "weight_decay": 0.0,
        "batch_size": 10,
        "validation_fraction": 0.5,
    }  # ten windows validate
    fixed = make_oracle(**params).fit(X, y).history_
    fresh = make_oracle(**params, deterministic_validation=False).fit(X, y).history_
    assert len({epoch["valid_loss"] for epoch in fixed}) == 1
    assert len({epoch["valid_loss"] for epoch in fresh}) == 3


def test_validation_windows_are_paired_with_each_other(batches):
    windows, labels = numbered(), np.arange(40) % 3
    oracle = make_oracle(max_epochs=1)
    oracle.fit(windows[:20], labels[:20], X_val=windows[20:], y_val=labels[20:])
    for training, x, partner in batches:
        numbers = torch.cat([x[:, 0, 0], partner[:, 0, 0]])
        assert bool((numbers < 20).all()) is training
        assert bool((numbers >= 20).all()) is not training
    with pytest.raises(ValueError, match="X_val and y_val come together"):
        oracle.fit(windows, labels, X_val=windows)
    with pytest.raises(ValueError, match="^Found input .* y_val has 3. Pass one label per sample"):
        oracle.fit(windows, labels, X_val=windows[:4], y_val=labels[:3])


def test_groups_stay_together(batches):
    windows, labels, groups = numbered(), np.arange(40) // 4 % 2, np.arange(40) // 4
    make_oracle(max_epochs=1).fit(windows, labels, groups=groups)
    train, valid = (
        {int(number) // 4 for t, x, p in batches if t is part for number in x[:, 0, 0]}
        for part in (True, False)
    )
    assert valid
    assert not train & valid


def test_windows_of_a_bag_have_its_label(batches):
    bags = numbered(30).reshape(10, 3, 12, 2)
    bags[4, 1] = np.nan  # pads the bag, and is no partner
    labels = np.arange(10) % 2
    make_oracle().fit(bags, labels)
    for _, x, partner in batches:
        bag, other = (numbers[:, 0, 0].int().numpy() // 3 for numbers in (x, partner))
        assert (labels[bag] == labels[other]).all()
        assert 13 not in partner[:, 0, 0]


@each_kind
def test_padding_changes_no_loss(kind):
    """Where nothing is drawn but pairs."""
    padded = np.concatenate([X, np.full((20, 4, 2), np.nan, np.float32)], axis=1)
    oracle = make_oracle(
        kind=kind,
        sample_init=False,
        mask_probability=0.0,
        loss_reduction="valid",
        time_varying_dim=0,  # its convolutions reflect the window's end
        max_epochs=1,
        batch_size=20,
    )
    losses = [oracle.fit(windows, y).history_[0]["train_loss"] for windows in (X, padded)]
    np.testing.assert_allclose(*losses, rtol=1e-5)


# --- labels ---


def test_only_who_shares_a_label_matters():
    named = np.where(y == 0, "left", "right")
    oracle = make_oracle(max_epochs=1, batch_size=17)  # one update
    expected = oracle.fit_transform(X, y)
    for labels in (named, named.astype(object), 2.0 * y - 1.0, y.tolist(), y == 1):
        np.testing.assert_array_equal(oracle.fit_transform(X, labels), expected)
    others = np.arange(20) // 10
    assert not np.array_equal(oracle.fit_transform(X, others), expected)
    one_class = oracle.fit_transform(X, np.zeros(20))
    assert not np.array_equal(one_class, expected)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (y[:5], "inconsistent numbers of samples: X has 20, y has 5"),
        (np.linspace(0, 1, 20), "Unknown label type: continuous"),
        (
            np.where(y == 0, np.nan, 1.0),
            r"y contains NaN or None in 10 of 20 samples.*: leave them out, since"
            r" PulseOracleTransformer takes -1, too, for a class\.$",
        ),
        (np.zeros((20, 2)), "y should be a 1d array"),
    ],
)
def test_labels_that_are_none(labels, message):
    with pytest.raises(ValueError, match=message):
        make_oracle().fit(X, labels)


def test_labels_are_required_by_signature_and_tag():
    assert make_oracle().__sklearn_tags__().target_tags.required
    with pytest.raises(TypeError, match="'y'"):
        make_oracle().fit(X)


def test_a_class_for_each_window_teaches_nothing():
    with pytest.warns(UserWarning, match="its own partner and labels teach nothing"):
        make_oracle(max_epochs=1).fit(X, np.arange(20))


# --- parameters ---


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kind": "neutral"}, "kind must be one of 'positive', 'negative'"),
        ({"kind": np.array(["positive", "negative"])}, "kind must be one of 'positive'"),
        ({"init_source": "partner"}, "init_source must be one of 'target', 'anchor', 'published'"),
        ({"sample_init": 1}, "sample_init must be True or False"),
        ({"mask_probability": 1.0}, r"mask_probability must be a number in \[0, 1\)"),
        ({"init_kernel_size": 4}, "init_kernel_size must be odd"),
        ({"observation": "cubic"}, "observation must be one of"),
        ({"loss_reduction": "sum"}, "loss_reduction must be one of"),
        ({"min_crop_length": 16}, "min_crop_length=16 steps do not fit into windows of 16"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_oracle(**params).fit(X, y)


def test_without_random_starts_no_crop_has_to_fit():
    make_oracle(min_crop_length=16, sample_init=False, max_epochs=1).fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"kind": "negative"},
        {"init_source": "anchor"},
        {"sample_init": False},
        {"kind": "negative", "mask_probability": 0.5},
        {"min_crop_length": 0.9},
        {"loss_reduction": "valid"},
        {"observation": "linear"},
        {"shared_encoder": True},
        {"time_varying_dim": 0},
        {"time_varying_dim": 2, "time_varying_pool": 4},
        {"gru_num_layers": 2},
    ],
    ids=str,
)
def test_every_option_trains_to_something_else(params):
    kind = {"kind": params["kind"]} if len(params) > 1 and "kind" in params else {}
    default = first_fit(max_epochs=1, **kind)
    changed = make_oracle(max_epochs=1, **params).fit(X, y)
    assert np.isfinite(changed.transform(X)).all()
    assert default.history_[0]["train_loss"] != changed.history_[0]["train_loss"]


@pytest.mark.parametrize(
    ("kind", "ignored"),
    [("negative", {"init_source": "anchor"}), ("positive", {"mask_probability": 0.5})],
)
def test_what_a_kind_has_no_use_for_is_ignored(kind, ignored):
    np.testing.assert_array_equal(
        make_oracle(kind=kind, **ignored).fit_transform(X, y),
        first_fit(kind=kind).transform(X),
    )


def test_presets_hold_the_published_settings():
    settings = presets.get("pulseoracle", "synthetic")
    oracle = PulseOracleTransformer(**settings)
    names = (
        "max_epochs lr batch_size gru_num_layers gru_hidden_dim init_kernel_size init_dilation"
        " init_hidden_dim min_crop_length time_varying_pool time_varying_dim"
    ).split()
    values = (200, 1e-3, 128, 3, 128, 3, 2, 128, 25, 1, 1)
    assert tuple(getattr(oracle, name) for name in names) == values
    assert (oracle.weight_decay, oracle.gradient_clip_value) == (1e-5, 5.0)
    assert (oracle.init_source, oracle.sample_init) == ("target", True)
    cut = presets.windows("pulseoracle", "synthetic")
    assert (cut["mode"], cut["length"], cut["n_channels"]) == ("labeled", 100, 3)
    published = presets.get("pulseoracle", "synthetic", published=True)
    assert published == settings | {"init_source": "published", "deterministic_validation": False}
    for dataset in ("har", "ecg", "ppg", "eeg", "har-transfer", "eeg-transfer"):
        PulseOracleTransformer(**presets.get("pulseoracle", dataset))
        assert presets.windows("pulseoracle", dataset)["mode"] == "labeled"
    assert "n_crops" not in presets.search_space("pulseoracle")


# --- the negative oracle's embedding, and the rest of its contract ---

negative = partial(make_oracle, kind="negative")


@pytest.mark.slow  # that of the positive oracle, the same class, is quick
@pytest.mark.filterwarnings("ignore:X has windows of one time step", "ignore:X has more channels")
@sklearn_suite([negative(random_state=None)])
def test_sklearn_suite_of_the_negative_oracle(estimator, check):
    check(estimator)


def test_a_window_is_embedded_as_a_pair_with_itself():
    oracle = first_fit(kind="negative")
    assert oracle.encoder_.input.in_features == 4
    with torch.no_grad():
        expected = oracle.encoder_(torch.from_numpy(np.concatenate([X, X], axis=2)))
    np.testing.assert_allclose(oracle.transform(X), expected, atol=1e-6)
    np.testing.assert_array_equal(oracle.transform(X), oracle.transform(X))  # nothing is masked


@each_kind
def test_padding_changes_no_embedding(kind):
    padded = np.concatenate([X, np.full((20, 2, 2), np.nan, np.float32)], axis=1)
    oracle = make_oracle(kind=kind, max_epochs=1).fit(padded, y)
    np.testing.assert_allclose(oracle.transform(padded), oracle.transform(X), atol=1e-6)


def test_the_negative_oracle_trains_on_missing_steps_and_bags():
    holes = X.copy()
    holes[::2, 10:] = np.nan
    holes[1::3, 4] = np.nan
    holes[::5, :9] = np.nan
    assert np.isfinite(negative().fit_transform(holes, y)).all()
    bags = X.reshape(5, 4, 16, 2)
    oracle = negative().fit(bags, [0, 1, 0, 1, 1])
    rows = oracle.transform(X).reshape(5, 4, -1).mean(1)
    np.testing.assert_allclose(oracle.transform(bags), rows, rtol=1e-5)


def test_the_negative_oracle_saved_and_loaded(tmp_path):
    oracle = negative(mask_probability=0.5).fit(X, y)
    oracle.save_pretrained(tmp_path / "model")
    restored = BaseEncoderTransformer.from_pretrained(tmp_path / "model")
    assert restored.get_params() == oracle.get_params() | {"num_threads": None}  # it is local
    assert isinstance(restored.net_.module_, NegativePairs)
    np.testing.assert_array_equal(restored.transform(X), oracle.transform(X))


def test_an_oracle_of_another_kind_than_fitted_is_not_saved(tmp_path):
    for kind, other in (("positive", "negative"), ("negative", "positive")):
        oracle = make_oracle(kind=kind, max_epochs=1).fit(X, y).set_params(kind=other)
        with pytest.raises(ValueError, match=r"\['init_source'\].*Set the parameter back, or fit"):
            oracle.save_pretrained(tmp_path / "model")
        oracle.set_params(kind=kind).save_pretrained(tmp_path / kind)


# --- resume ---


@pytest.mark.parametrize(("kind", "at"), [("positive", (2, 3)), ("negative", (3, 1))])
def test_a_killed_run_resumes_to_the_same_bits(kind, at, tmp_path):
    params = {"kind": kind, "max_epochs": 3, "deterministic_validation": False}
    expected = make_oracle(**params).fit(X, y)
    with killed(*at):
        make_oracle(**params, checkpoint_dir=tmp_path).fit(X, y)
    resumed = make_oracle(**params, checkpoint_dir=tmp_path).fit(X, y)
    assert torch.equal(weights_of(resumed), weights_of(expected))
    losses = [
        [(epoch["train_loss"], epoch["valid_loss"]) for epoch in oracle.history_]
        for oracle in (resumed, expected)
    ]
    assert losses[0] == losses[1]


def test_other_labels_are_another_run(tmp_path):
    oracle = make_oracle(max_epochs=1, batch_size=17, checkpoint_dir=tmp_path)
    for labels in (y, np.where(y == 0, "a", "b"), 1 - y, np.arange(20) // 10):
        oracle.fit(X, labels)
    # The first two are the same classes; in the third their order changes, and so the draws.
    assert len(list(tmp_path.iterdir())) == 3


# --- with other tools ---


def test_in_a_search_over_both_kinds():
    oracle = make_oracle(max_epochs=1, batch_size=17)
    model = make_pipeline(oracle, LogisticRegression(max_iter=1000))
    names = np.where(y == 0, "slow", "fast")
    grid = {
        "pulseoracletransformer__kind": KINDS,
        "pulseoracletransformer__init_source": ["target", "anchor"],
    }
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, names)
    best = clone(model).set_params(**search.best_params_).fit(X, names)
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    alone = cross_val_score(model, X, names, cv=2).mean()  # of the first candidate, the default
    assert alone == search.cv_results_["mean_test_score"][0]


@each_kind
def test_fine_tuning_changes_a_copy_of_the_encoder(kind):
    oracle = first_fit(kind=kind)
    before = weights_of(oracle)
    classifier = FineTuneClassifier(
        FrozenEstimator(oracle), max_epochs=1, lr=1e-2, num_threads=1, random_state=0
    )
    three_channels = np.concatenate([X, X[..., :1]], axis=2)
    for windows in (X, three_channels):
        classifier.fit(windows, y)
        assert classifier.predict_proba(windows).shape == (20, 2)
        tuned = classifier.encoder_.input.weight
        assert not torch.equal(tuned, oracle.encoder_.input.weight)
    assert torch.equal(weights_of(oracle), before)


def test_users_callbacks_run_beside_the_draws():
    class Count(Callback):
        n_epochs = 0

        def on_epoch_end(self, net, **kwargs):
            self.n_epochs += 1

    oracle = make_oracle(callbacks=[("count", Count())]).fit(X, y)
    assert callback_of(oracle, Count).n_epochs == 2


def test_no_oracle_is_a_row_of_the_practical_tables():
    assert PulseOracleTransformer not in {method.make for method in _methods.trained()}
    positive, negative = _methods.oracles()
    assert (positive.name, negative.name) == ("oracle-positive", "oracle-negative")
    assert negative.settings("synthetic")["max_epochs"] == 200
    built = negative.build(negative.settings("synthetic"), seed=3, num_threads=1)
    assert (built.kind, built.random_state, built.gru_num_layers) == ("negative", 3, 3)
    assert negative.cut("synthetic")["mode"] == "labeled"


def test_the_negative_oracle_completes_by_the_mean_of_its_heads():
    torch.manual_seed(0)
    objective, x = NegativePairs(2, **NETWORKS).eval(), torch.randn(3, 12, 2)
    with torch.no_grad():
        both = PairReconstruction.complete(objective, torch.cat([x, x], dim=-1))
        first, second = both.chunk(2, dim=-1)
        torch.testing.assert_close(objective.complete(x), (first + second) / 2, equal_nan=True)
    assert not torch.allclose(first[:, 1:], second[:, 1:])
