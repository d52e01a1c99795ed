"""REBAR: its formulas written out slowly, where its windows come from, and its two stages."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skorch.callbacks import Callback

from sklearn_pulse import PulseTransformer, presets
from sklearn_pulse._data._batches import join_batches
from sklearn_pulse._data._windows import CheckedWindows
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse._training._iterator import ResidentBatches
from sklearn_pulse.base import CandidateBatches, WindowBatches
from sklearn_pulse.baselines import RandomEncoderTransformer, REBARTransformer
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.objectives import REBARContrast, REBARReconstruction, _rebar_contrast
from sklearn_pulse.objectives._rebar_reconstruction import squared_errors
from sklearn_pulse.windows import RecordingWindows, sliding_windows
from tests.baselines.task import N_EACH, chaotic_task
from tests.helpers import SMALL, SMALL_ENCODER, BatchSpy, accepted, callback_of, make_windows, small
from tests.kills import killed

X, Y = make_windows()
GROUPS = np.arange(20) // 4
ATTENTION = {"hidden_dim": 8, "kernel_size": 3, "bottleneck_dim": 4, "depth": 1}
rebar = partial(small, REBARTransformer)


def contrast(n_channels=2, **params):
    torch.manual_seed(0)
    return REBARContrast(n_channels, attention=ATTENTION, **(SMALL_ENCODER | params))


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --- the first stage ---


def test_first_stage_is_the_sum_of_squares_on_the_hidden_block():
    torch.manual_seed(0)
    objective = REBARReconstruction(2, attention=ATTENTION, mask_length=5).eval()
    x, hidden = normal(4, 16, 2), torch.zeros(4, 16, dtype=torch.bool)
    hidden[:, 3:8] = True
    rebuilt = objective.encoder(x, ~hidden, x)
    expected = 0.0
    for b in range(4):
        for t in range(3, 8):
            for c in range(2):
                expected += (rebuilt[b, t, c].item() - x[b, t, c].item()) ** 2
    assert objective(x=x, hidden=hidden).item() == pytest.approx(expected, rel=1e-6)


def hidden_in(objective, call, **batch):
    """Return the steps that a pass hides from the encoder, and what it returns."""
    seen = []
    hook = objective.encoder.register_forward_pre_hook(lambda module, args: seen.append(~args[1]))
    result = call(**batch)
    hook.remove()
    (hidden,) = seen
    return hidden, result


def test_the_first_stage_is_validated_by_the_mean_error_of_a_hidden_entry():
    torch.manual_seed(0)
    objective = REBARReconstruction(2, attention=ATTENTION, mask_length=5).eval()
    x, observed = normal(4, 16, 2), torch.arange(16).expand(4, -1) < 12
    for mask in (None, observed):
        hidden, loss = hidden_in(objective, objective.validation_loss, x=x, observed=mask)
        rebuilt = objective.encoder(x, ~hidden, x, mask, mask)
        errors = (rebuilt - x)[hidden if mask is None else hidden & mask].square()
        torch.testing.assert_close(loss, errors.mean())
    estimator = rebar(attention_batch_size=2, max_epochs=1, attention_epochs=1).fit(X)
    assert estimator.cross_attention_net_.history[-1, "valid_batch_count"] == 2  # of 2 and of 1
    (row,) = estimator.cross_attention_net_.history
    assert row["valid_loss"] < 0.5 * row["train_loss"]  # a sum over 2 windows, 1 step, 2 channels


def blocks_of(observed=None, mask_length=4, n=3000, n_timesteps=10):
    objective = REBARReconstruction(1, attention=ATTENTION, mask_length=mask_length)
    x = torch.zeros(n, n_timesteps, 1)
    observed = None if observed is None else observed.expand(n, -1)
    return hidden_in(objective, objective, x=x, observed=observed)[0]


@pytest.mark.parametrize(("mask_length", "steps"), [(4, 4), (0.25, 2), (1, 1), (0.01, 1)])
def test_a_block_is_contiguous_and_lies_anywhere(mask_length, steps):
    hidden = blocks_of(mask_length=mask_length)
    assert (hidden.sum(1) == steps).all()
    starts = hidden.int().argmax(1)
    assert (hidden.int().diff(dim=1) == -1).sum(1).max() <= 1
    assert torch.equal(starts.unique(), torch.arange(10 - steps + 1))
    counts = starts.bincount()
    assert counts.min() > 0.8 * 3000 / len(counts)


def test_a_block_keeps_to_the_observed_span():
    observed = torch.tensor([[False, False, True, True, True, False, True, True, False, False]])
    starts = blocks_of(observed).int().argmax(1)
    assert torch.equal(starts.unique(), torch.tensor([2, 3, 4]))


@pytest.mark.parametrize("mask_length", [4, 0.25, 0.9])
def test_a_part_of_the_observed_span_stays(mask_length):
    observed = torch.arange(40) < torch.tensor([[40], [8], [4], [2]])
    hidden = [blocks_of(row, mask_length, n=50, n_timesteps=40).sum(1) for row in observed]
    fractions = [max(1, int(mask_length * n)) for n in (40, 8, 4, 2)]
    expected = [4, 4, 3, 1] if mask_length == 4 else fractions
    assert [int(n.unique()) for n in hidden] == expected


def test_missing_steps_are_not_scored():
    torch.manual_seed(0)
    objective = REBARReconstruction(2, attention=ATTENTION).eval()
    observed = torch.ones(4, 16, dtype=torch.bool)
    observed[:, 5:] = False
    hidden = ~observed
    x = torch.where(observed.unsqueeze(-1), normal(4, 16, 2), 0.0)
    assert objective(x=x, observed=observed, hidden=hidden).item() == 0.0
    hidden[:, 4] = True
    assert objective(x=x, observed=observed, hidden=hidden).item() > 0.0


def test_dropout_is_for_training_only():
    torch.manual_seed(0)
    objective = REBARReconstruction(2, attention=ATTENTION, attention_dropout=0.5)
    x, hidden = normal(4, 16, 2), torch.zeros(4, 16, dtype=torch.bool)
    hidden[:, 3:8] = True
    objective.eval()
    assert objective(x=x, hidden=hidden) == objective(x=x, hidden=hidden)
    objective.train()
    assert objective(x=x, hidden=hidden) != objective(x=x, hidden=hidden)
    objective.attention_dropout = 0.0
    assert objective(x=x, hidden=hidden) == objective(x=x, hidden=hidden)


# --- the second stage ---


def literal_contrast(anchors, candidates, positive, alpha, temperature):
    """The two cross-entropies, an anchor after the other."""

    def similarity(a, b):
        return torch.exp(a @ b / (a.norm() * b.norm()) / temperature)

    between, within = [], []
    for i, anchor in enumerate(anchors):
        own = similarity(anchor, candidates[i, positive[i]])
        others = [similarity(anchor, anchors[j]) for j in range(len(anchors)) if j != i]
        between.append(-torch.log(own / (own + sum(others))))
        alternatives = [similarity(anchor, candidate) for candidate in candidates[i]]
        within.append(-torch.log(own / sum(alternatives)))
    return alpha * sum(between) / len(anchors) + (1 - alpha) * sum(within) / len(anchors)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_the_contrast_is_the_formula(alpha, temperature):
    anchors = normal(5, 8).requires_grad_()
    candidates = normal(5, 3, 8, seed=1).requires_grad_()
    positive = torch.tensor([0, 2, 1, 1, 0])
    objective = contrast(alpha=alpha, temperature=temperature)
    loss = objective.contrast(anchors, candidates, positive)
    expected = literal_contrast(anchors, candidates, positive, alpha, temperature)
    torch.testing.assert_close(loss, expected, atol=1e-6, rtol=1e-5)
    mine, theirs = (torch.autograd.grad(value, (anchors, candidates)) for value in (loss, expected))
    torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-4)


def test_the_published_reduction_divides_by_the_batch_again():
    mean, published = (
        contrast(loss_reduction=how)(x=torch.from_numpy(X[:5])) for how in ("mean", "published")
    )
    torch.testing.assert_close(published * 5, mean)


@pytest.mark.parametrize("n_observed", [(15, 15, 15, 15), (15, 9, 5, 1)])
def test_distances_are_the_errors_on_the_hidden_half(monkeypatch, n_observed):
    """An anchor misses more of one half than of another, which makes no candidate nearer."""
    objective, x, candidates = contrast(), normal(4, 15, 2), normal(4, 3, 15, 2, seed=1)
    observed = torch.arange(15) < torch.tensor(n_observed).unsqueeze(1)
    calls = []

    def record(attention, x, hidden, *others):
        calls.append(hidden)
        return squared_errors(attention, x, hidden, *others)

    monkeypatch.setattr("sklearn_pulse.objectives._rebar_contrast.squared_errors", record)
    distances = objective.distances(x, candidates, observed)
    (hidden,) = calls
    halves = hidden.view(4, 3, 15)
    assert not torch.equal(halves[0, 0], halves[0, 1])  # a new half for each candidate,
    for i, k in np.ndindex(4, 3):
        half = halves[i, k]
        assert torch.equal(half, halves[0, k])  # the same for the batch
        assert half.sum() == 15 // 2
        rebuilt = objective.cross_attention(
            x[[i]], ~half.unsqueeze(0), candidates[[i], k], observed[[i]]
        )[0]
        errors = [((rebuilt[t] - x[i, t]) ** 2).sum() for t in range(n_observed[i]) if half[t]]
        error = torch.stack(errors).mean() * (15 // 2) if errors else torch.tensor(torch.inf)
        torch.testing.assert_close(distances[i, k], error, atol=1e-6, rtol=1e-5)
    assert distances.isinf().any() == (1 in n_observed)


def test_distances_of_one_candidate_after_the_other_are_the_same(monkeypatch):
    """Whatever part of the pairs passes through the attention at a time."""
    objective, x, candidates = contrast(), normal(4, 16, 2), normal(4, 3, 16, 2, seed=1)
    masks = normal(4, 16, seed=2) > -1.5, normal(4, 3, 16, seed=3) > -1.5
    for observed, seen in ((None, None), masks):
        with objective.seeded(0):
            together = objective.distances(x, candidates, observed, seen)
        monkeypatch.setattr(
            "sklearn_pulse.networks._cross_attention._PART_STEPS", {x.device.type: 5 * 16}
        )
        with objective.seeded(0):
            torch.testing.assert_close(objective.distances(x, candidates, observed, seen), together)
        monkeypatch.undo()
        with objective.seeded(0):
            columns = [
                objective.distances(
                    x, candidates[:, [k]], observed, None if seen is None else seen[:, [k]]
                )
                for k in range(3)
            ]
        torch.testing.assert_close(torch.cat(columns, 1), together)


def test_missing_steps_of_either_side_do_not_count():
    objective, x, candidates = contrast(), normal(4, 16, 2), normal(4, 3, 16, 2, seed=1)
    with objective.seeded(0):
        expected = objective.distances(x, candidates)
    padded = torch.nn.functional.pad(candidates, (0, 0, 0, 5), value=9.0)
    mask = (torch.arange(21) < 16).expand(4, 3, -1)
    with objective.seeded(0):
        torch.testing.assert_close(objective.distances(x, padded, None, mask), expected)
    observed = (torch.arange(16) < 9).expand(4, -1)
    noisy = torch.where(observed.unsqueeze(-1), x, 9.0)
    results = []
    for anchors in (x, noisy):
        with objective.seeded(0):
            results.append(objective.distances(anchors, candidates, observed))
    torch.testing.assert_close(*results)
    assert not torch.allclose(results[0], expected)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_positive_is_the_nearest_candidate(alpha):
    """The whole loss, the short cut of alpha = 1 included, from its parts."""
    objective = contrast(alpha=alpha)
    x, candidates = normal(4, 16, 2), normal(4, 3, 16, 2, seed=1)
    masks = [normal(*shape, seed=2) > -1.5 for shape in ((4, 16), (4, 3, 16))]
    for observed, candidates_observed in ((None, None), masks):
        with objective.seeded(3):
            loss = objective(x, observed, candidates, candidates_observed)
        with objective.seeded(3):
            nearest = objective.distances(x, candidates, observed, candidates_observed).argmin(1)
        embedded = torch.stack(
            [
                objective.encode(
                    candidates[:, k],
                    None if candidates_observed is None else candidates_observed[:, k],
                )
                for k in range(3)
            ],
            dim=1,
        )
        expected = literal_contrast(objective.encode(x, observed), embedded, nearest, alpha, 1.0)
        torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.3])
def test_candidates_are_embedded_one_after_the_other_where_they_are_many(monkeypatch, masked, p):
    """Same loss and gradients, dropout included, from much less that is kept at a time."""
    objective = contrast(representation_dropout=p, n_candidates=6).train()
    x, candidates = normal(4, 32, 2), normal(4, 6, 32, 2, seed=1)
    masks = (None, None)
    if masked:
        masks = normal(4, 32, seed=2) > -1.5, normal(4, 6, 32, seed=2) > -1.5
    results, most_kept = [], []

    class Kept:
        """A tensor that a graph keeps; it counts what all graphs keep."""

        present = 0

        def __init__(self, tensor):
            self.tensor = tensor
            Kept.present += tensor.numel()
            most_kept[-1] = max(most_kept[-1], Kept.present)

        def __del__(self):
            Kept.present -= self.tensor.numel()

    for most, part in ((2**15, 2**13), (4 * 6 * 32 - 1, 7 * 32)):
        monkeypatch.setitem(_rebar_contrast._MAX_JOINT_STEPS, "cpu", most)
        monkeypatch.setitem(_rebar_contrast._PART_STEPS, "cpu", part)
        most_kept.append(0)
        hooks = torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor)
        with objective.seeded(3), hooks:
            loss = objective(x, masks[0], candidates, masks[1])
        results.append((loss, *torch.autograd.grad(loss, tuple(objective.encoder.parameters()))))
    torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=1e-6)
    assert most_kept[1] < 0.4 * most_kept[0]


@pytest.mark.parametrize(
    ("loss_reduction", "layer_norm"),
    [("mean", "everywhere"), ("published", "everywhere"), ("mean", "embedding")],
)
def test_anchors_that_share_few_windows_have_their_gradient_apart(
    monkeypatch, loss_reduction, layer_norm
):
    """Same loss and gradients, and each window passes through the encoder once.

    A weight that the loss does not read has no gradient: at zero, weight decay would move it.
    """
    objective = contrast(loss_reduction=loss_reduction, layer_norm=layer_norm)
    x, candidates = normal(5, 16, 2), normal(5, 3, 16, 2, seed=1)
    observed, seen = normal(5, 16, seed=2) > -1.5, normal(5, 3, 16, seed=3) > -1.5
    numbers = torch.arange(20).view(5, 4)
    weights, rows, results = tuple(objective.encoder.parameters()), [], []
    objective.encoder.input.register_forward_pre_hook(lambda _, args: rows.append(len(args[0])))
    for steps in (2**13, 2 * 4 * 16):
        monkeypatch.setitem(_rebar_contrast._PART_STEPS, "cpu", steps)
        for batch in ({}, {"numbers": numbers}, {"observed": observed}, {"observed": observed}):
            rows.clear()
            masks = {"candidates_observed": seen} if batch else {}
            with objective.seeded(3):
                loss = objective(x, candidates=candidates, **batch, **masks)
            gradients = torch.autograd.grad(3.0 * loss, weights, allow_unused=True)
            assert sum(g is None for g in gradients) == (2 if layer_norm == "embedding" else 0)
            results.append((loss, *gradients))
            assert rows == ([20] if steps == 2**13 else [8, 8, 4])
    for whole, apart in zip(results[:4], results[4:], strict=True):
        torch.testing.assert_close(whole, apart, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        objective(x, candidates=candidates)
    rows.clear()
    objective(x, candidates=candidates, numbers=numbers % 4)
    assert rows == [4]  # apart, they would be embedded again


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_a_window_in_several_places_is_embedded_once(monkeypatch, alpha):
    """Same loss and gradients as from copies, also where the windows are embedded in parts."""
    objective = contrast(alpha=alpha)
    windows, numbers = normal(5, 16, 2), torch.tensor([[4, 0, 4, 2], [1, 4, 0, 0], [0, 1, 4, 1]])
    observed = normal(5, 16, seed=2) > -1.5
    batches = []
    for masks in ({}, {"observed": observed}):
        batch = {"x": windows} | masks
        named = {name: tensor[numbers] for name, tensor in batch.items()}
        drawn = {name: tensor[:, 0] for name, tensor in named.items()}
        names = {"x": "candidates", "observed": "candidates_observed"}
        batches.append(drawn | {names[name]: tensor[:, 1:] for name, tensor in named.items()})
    rows = []
    objective.encoder.register_forward_pre_hook(lambda _, args: rows.append(len(args[0])))
    weights = tuple(objective.encoder.parameters())
    for most in (2**15, 16):
        monkeypatch.setitem(_rebar_contrast._MAX_JOINT_STEPS, "cpu", most)
        monkeypatch.setitem(_rebar_contrast._PART_STEPS, "cpu", most)
        for batch in batches:
            results = []
            for which in (None, numbers):
                with objective.seeded(3):
                    loss = objective(**batch, numbers=which)
                if most > 16:
                    read = 3 * (2 if alpha == 1.0 else 4) if which is None else 4
                    assert sum(rows) == read or (alpha == 1.0 and sum(rows) < read)
                rows.clear()
                results.append((loss, *torch.autograd.grad(loss, weights)))
                rows.clear()
            torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


def test_training_embeds_no_more_windows_than_there_are():
    """Eight windows of two recordings, with ten candidates each."""

    class Rows(Callback):
        def on_train_begin(self, net, **kwargs):
            self.rows = []
            net.module_.encoder.register_forward_pre_hook(
                lambda _, arguments: self.rows.append(len(arguments[0]))
            )

    estimator = rebar(n_candidates=10, validation_fraction=0, callbacks=[Rows()])
    estimator.set_params(batch_size=8).fit(X[:8], groups=np.arange(8) // 4)
    assert max(callback_of(estimator, Rows).rows) == 8


def test_a_batch_without_candidates_takes_its_other_windows():
    objective, seen = contrast(n_candidates=200), []
    distances = objective.distances
    objective.distances = lambda *args: seen.append(args[1]) or distances(*args)
    for n in (6, 1):
        x = torch.arange(n).view(n, 1, 1).expand(n, 4, 2).float()
        objective(x=x)
    for row, others in enumerate(seen[0]):
        assert others.unique().tolist() == [i for i in range(6) if i != row]
    assert seen[1].unique().tolist() == [0]


# --- where windows and candidates come from ---


def candidate_batches(data=X, index=None, groups=None, by_recording=False, n_candidates=50):
    windows = CheckedWindows(data, groups=groups)
    index = np.arange(len(windows)) if index is None else index
    return CandidateBatches(windows, index, torch.device("cpu"), n_candidates, by_recording)


def test_recordings_are_numbered_once():
    for windows in (CheckedWindows(X, groups=list("ab") * 10), CheckedWindows(X[:, None])):
        assert windows.recording is windows.recording
        assert windows.start is windows.start


def lazy_windows(lengths=(40, 80, 64), stride=16, length=16, seed=0):
    rng = np.random.default_rng(seed)
    recordings = [rng.normal(size=(n, 2)).astype(np.float32) for n in lengths]
    return sliding_windows(recordings, length, stride, lazy=True).X


@settings(max_examples=30, deadline=None)
@given(
    groups=st.lists(st.integers(0, 3), min_size=20, max_size=20),
    kept=st.lists(st.integers(0, 19), min_size=2, max_size=20, unique=True),
    stream=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 99)),
)
def test_candidates_are_other_windows_of_the_recording(groups, kept, stream):
    batches = candidate_batches(index=np.array(kept), groups=np.array(groups))
    batches.stream = stream
    anchors, candidates = batches.draw(np.arange(len(kept)))
    assert anchors.tolist() == list(range(len(kept)))
    recording = np.array(groups)[kept]
    for anchor, others in zip(anchors, candidates, strict=True):
        alone = (recording == recording[anchor]).sum() == 1
        assert (recording[others] == recording[anchor]).all()
        assert (others == anchor).all() if alone else (others != anchor).all()


def test_every_other_window_can_be_a_candidate():
    batches = candidate_batches(groups=GROUPS, n_candidates=400)
    anchors, candidates = batches.draw(np.arange(20))
    for anchor, others in zip(anchors, candidates, strict=True):
        expected = set(np.flatnonzero(GROUPS == GROUPS[anchor])) - {anchor}
        assert set(others) == expected
        assert np.bincount(others)[sorted(expected)].min() > 100  # of 133 on average


def test_a_batch_holds_the_windows_that_were_drawn():
    data = X.copy()
    data[3, 5:] = np.nan
    batches = candidate_batches(data, groups=GROUPS, n_candidates=6)
    index = torch.tensor([2, 7])
    anchors, candidates = batches.draw(index.numpy())
    batch = batches[index]
    clean = np.nan_to_num(data)
    np.testing.assert_array_equal(batch["x"], clean[anchors])
    np.testing.assert_array_equal(batch["candidates"], clean[candidates])
    observed = np.isfinite(data).all(2)
    np.testing.assert_array_equal(batch["observed"], observed[anchors])
    np.testing.assert_array_equal(batch["candidates_observed"], observed[candidates])
    assert not batch["candidates_observed"].all()


def test_draws_depend_on_the_stream_and_the_batch_alone():
    batches, index = candidate_batches(), np.arange(5)
    first = batches.draw(index)[1]
    batches.draw(np.arange(9, 12))
    np.testing.assert_array_equal(batches.draw(index)[1], first)
    assert (batches.draw(index + 1)[1] == first).mean() < 0.2
    for stream in ((0, 1), (1, 0)):
        batches.stream = stream
        assert not np.array_equal(batches.draw(index)[1], first)


def test_lazy_windows_know_their_recording():
    data = lazy_windows()
    order = np.random.default_rng(0).permutation(len(data))
    data = data[order]
    wrong = np.zeros(len(data))  # a subject, say
    batches = candidate_batches(data, groups=wrong)
    np.testing.assert_array_equal(batches.recording, data.recording)
    anchors, candidates = batches.draw(np.arange(len(data)))
    assert (data.recording[candidates] == data.recording[anchors][:, None]).all()


def test_a_bag_is_a_recording():
    batches = candidate_batches(X.reshape(5, 4, 16, 2), index=np.r_[0:9, 10:20])
    np.testing.assert_array_equal(batches.recording, np.delete(GROUPS, 9))


def test_recordings_share_the_positions():
    """One window of each, at the same relative position, and so are the candidates."""
    rng = np.random.default_rng(0)
    starts = np.concatenate([rng.permutation(30) for _ in range(4)])
    recordings = rng.normal(size=(4, 40, 1))
    data = RecordingWindows(recordings, np.repeat(np.arange(4), 30), starts, length=8)
    batches = candidate_batches(data, by_recording=True)
    assert len(batches) == 4
    seen = set()
    for epoch in range(300):
        batches.stream = (0, epoch)
        anchors, candidates = batches.draw(np.array([2, 0, 3]))
        assert data.recording[anchors].tolist() == [2, 0, 3]
        assert len(set(data.start[anchors])) == 1
        assert (data.start[candidates] == data.start[candidates][0]).all()
        assert not (candidates == anchors[:, None]).any()
        assert (data.recording[candidates] == np.array([[2], [0], [3]])).all()
        seen.add(data.start[anchors[0]])
    assert len(seen) == 30


def test_the_first_stage_reads_windows_that_do_not_overlap():
    data = lazy_windows(lengths=(50, 33), stride=1)
    assert pieces(candidate_batches(data)) == [(0, 0), (0, 16), (0, 32), (1, 0), (1, 16)]
    sparse = RecordingWindows(np.zeros((1, 200, 1)), [0] * 3, [50, 0, 31], length=16, downsample=2)
    assert pieces(candidate_batches(sparse)) == [(0, 0), (0, 31)]  # to step 30, to step 61
    assert len(candidate_batches(sparse[1:]).apart()) == 2
    assert len(candidate_batches().apart()) == 20


def pieces(batches):
    apart = batches.apart()
    data = apart.windows.data
    return list(
        zip(data.recording[apart.index].tolist(), data.start[apart.index].tolist(), strict=True)
    )


def test_pieces_cover_what_the_windows_do_and_nothing_else():
    """Random windows leave gaps; of one that they cover as a whole, every piece is read."""
    starts = [70, 3, 9, 30, 20, 71, 100]
    data = RecordingWindows(np.arange(200.0).reshape(1, 200, 1), [0] * 7, starts, length=16)
    batches = candidate_batches(data)
    assert pieces(batches) == [(0, 3), (0, 19), (0, 70), (0, 100)]  # 3 to 45, 70 to 86, 100 to 115
    assert batches.apart()[torch.tensor([1])]["x"].flatten().tolist() == list(range(19, 35))
    assert pieces(candidate_batches(data, index=np.array([1, 3]))) == [(0, 3), (0, 30)]
    part = data.recordings[0].copy()
    part[16:35] = np.nan
    holed = RecordingWindows(part[None], [0] * 3, [3, 11, 27], length=16)
    assert pieces(candidate_batches(holed)) == [(0, 3)]  # the piece at 19 holds nothing
    dense = RecordingWindows(np.zeros((1, 200, 1)), [0] * 60, np.arange(60) * 3, length=16)
    assert pieces(candidate_batches(dense)) == [(0, 16 * i) for i in range(12)]


def test_groups_bags_and_lazy_windows_are_the_same_recordings():
    recordings = np.random.default_rng(0).normal(size=(5, 64, 2)).astype(np.float32)
    w = sliding_windows(recordings, 16, 16, lazy=True)
    windows = np.asarray(w.X)
    lazy, grouped, bagged, bare = (
        rebar(validation_fraction=0).fit(data, groups=groups).transform(windows)
        for data, groups in (
            (w.X, None),
            (windows, w.groups),
            (windows.reshape(5, 4, 16, 2), None),
            (windows, None),
        )
    )
    np.testing.assert_array_equal(lazy, grouped)
    np.testing.assert_array_equal(lazy, bagged)
    assert not np.array_equal(lazy, bare)


def test_validation_has_its_own_windows_and_the_same_draws():
    """Candidates to validate on come from the validation part; fresh ones only if asked for."""

    class Record(Callback):
        def __init__(self):
            self.seen, self.streams = [], []

        def on_epoch_begin(self, net, dataset_train, **kwargs):
            self.streams.append(dataset_train.stream)

        def on_batch_begin(self, net, batch, training, **kwargs):
            self.seen.append((training, batch["candidates"].clone()))

    def fitted(deterministic):
        estimator = rebar(
            max_epochs=3,
            validation_every=1,
            deterministic_validation=deterministic,
            validation_fraction=0.4,
            callbacks=[Record()],
        )
        return callback_of(estimator.fit(X), Record)

    for deterministic in (True, False):
        record = fitted(deterministic)
        train, valid = (
            [batch for part, batch in record.seen if part is which] for which in (True, False)
        )
        rows = [
            {row.numpy().tobytes() for batch in part for row in batch.flatten(0, 1)}
            for part in (train, valid)
        ]
        assert not rows[0] & rows[1]
        assert torch.equal(valid[0], valid[1]) is deterministic
        assert [epoch for _, epoch in record.streams] == [0, 1, 2]


@pytest.mark.parametrize("by_recording", [False, True])
def test_windows_on_a_device_give_the_same_batches(monkeypatch, by_recording):
    """What a GPU with room does, on the CPU."""
    data = X.copy()
    data[3, 5:] = np.nan
    batches = candidate_batches(data, groups=GROUPS, by_recording=by_recording)
    batches.stream = (3, 4)

    def moves(self):
        return ResidentBatches(**join_batches(list(self.contents()), self._masks))

    monkeypatch.setattr(WindowBatches, "resident", moves)
    moved, index = batches.resident(), torch.tensor([3, 0, 1])
    assert isinstance(moved._source, ResidentBatches)
    for name, tensor in batches[index].items():
        assert torch.equal(moved[index][name], tensor)


# --- two stages, one loop ---


def test_the_second_stage_freezes_the_first():
    estimator = rebar(callbacks=[BatchSpy()]).fit(X)
    before = callback_of(estimator, BatchSpy).before_.state_dict()
    first = estimator.cross_attention_net_.module_.encoder.state_dict()
    second = estimator.net_.module_
    for name, weight in second.cross_attention.state_dict().items():
        assert torch.equal(weight, first[name])
        assert torch.equal(weight, before[f"cross_attention.{name}"])
    assert all(p.grad is None for p in second.cross_attention.parameters())
    assert not torch.equal(second.encoder.input.weight, before["encoder.input.weight"])
    assert len(estimator.cross_attention_net_.history) == SMALL["attention_epochs"]
    assert estimator.n_iter_ == SMALL["max_epochs"]


def test_the_first_stage_learns_and_the_best_epoch_is_kept():
    estimator = rebar(
        attention_epochs=20, attention_lr=0.03, attention_batch_size=4, max_epochs=1
    ).fit(X)
    net = estimator.cross_attention_net_
    losses = net.history[:, "valid_loss"]
    assert min(losses) < 0.6 * losses[0]
    select = dict(net.callbacks_)["select_weights"]
    assert select.epoch_ == int(np.argmin(losses))


def test_a_first_stage_that_diverges_names_its_own_learning_rate():
    with pytest.raises(FloatingPointError, match="lower attention_lr, or scale X"):
        rebar(attention_lr=1e12, attention_epochs=5, attention_batch_size=4).fit(X)


def test_adam_as_published_in_the_first_stage():
    net = rebar(attention_lr=3e-3, weight_decay=0.1).fit(X).cross_attention_net_
    assert type(net.optimizer_) is torch.optim.Adam
    (group,) = net.optimizer_.param_groups
    assert (group["lr"], group["weight_decay"], group["betas"]) == (3e-3, 0, (0.9, 0.999))
    assert net.batch_size == 32
    assert not {"lr_scheduler", "clip_gradient"} & {name for name, _ in net.callbacks_}


@pytest.mark.parametrize("interval", [0.0, 60.0])
@pytest.mark.parametrize("at", [1, 4])
def test_a_run_killed_in_the_second_stage_resumes(tmp_path, monkeypatch, at, interval):
    monkeypatch.setattr(Checkpoint, "interval", interval)
    params = {"max_epochs": 5, "deterministic_validation": False, "alpha": 0.5}
    expected = rebar(**params).fit(X)
    with killed(at, 2, REBARContrast):
        rebar(**params, checkpoint_dir=tmp_path).fit(X)
    resumed = rebar(**params, checkpoint_dir=tmp_path).fit(X)
    assert_same_run(resumed, expected)


def test_a_run_killed_in_the_first_stage_resumes(tmp_path, monkeypatch):
    params = {"attention_epochs": 6, "attention_batch_size": 4}
    expected = rebar(**params).fit(X)
    step, steps = REBARReconstruction.forward, []

    def dies(self, *batch, **named):
        steps.append(1)
        if len(steps) == 30:
            raise KeyboardInterrupt
        return step(self, *batch, **named)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(REBARReconstruction, "forward", dies)
        rebar(**params, checkpoint_dir=tmp_path).fit(X)
    (folder,) = tmp_path.iterdir()
    assert [path.name for path in folder.iterdir()] == ["cross_attention"]

    def counts(self, *batch, **named):
        steps.append(1)
        return step(self, *batch, **named)

    monkeypatch.setattr(REBARReconstruction, "forward", counts)
    steps.clear()
    resumed = rebar(**params, checkpoint_dir=tmp_path).fit(X)
    assert 0 < len(steps) < 30
    assert_same_run(resumed, expected)
    steps.clear()
    assert_same_run(rebar(**params, checkpoint_dir=tmp_path).fit(X), expected)
    assert not steps  # a finished run is not run again


def test_numbers_of_numpy_resume_and_mean_what_those_of_python_do(tmp_path):
    params = {
        "attention_lr": np.float64(1e-3),
        "attention_epochs": np.int64(2),
        "attention_dropout": np.float32(0.5),
        "attention_hidden_dim": np.int64(8),
        "mask_length": np.float32(0.5),
        "schedule": "constant",
        "betas": (np.float64(0.9), np.float64(0.99)),
    }
    first = rebar(**params, checkpoint_dir=tmp_path).fit(X)
    assert_same_run(rebar(**params, checkpoint_dir=tmp_path).fit(X), first)
    plain = {name: getattr(value, "item", lambda: (0.9, 0.99))() for name, value in params.items()}
    assert_same_run(rebar(**plain | {"schedule": "constant"}).fit(X), first)


def assert_same_run(first, second):
    for name in ("net_", "cross_attention_net_"):
        mine, theirs = getattr(first, name), getattr(second, name)
        keys = ["train_loss", "valid_loss"]
        assert mine.history[:, keys] == theirs.history[:, keys]
        for a, b in zip(mine.module_.parameters(), theirs.module_.parameters(), strict=True):
            assert torch.equal(a, b)


def test_a_run_is_known_by_all_its_windows_and_recordings(tmp_path):
    """Also where an epoch reads one window a recording."""
    params = {"anchors": "recordings", "max_epochs": 1, "checkpoint_dir": tmp_path}
    other = X.copy()
    other[13, 7, 1] += 1.0
    for data, groups in ((X, GROUPS), (X, GROUPS), (other, GROUPS), (X, np.roll(GROUPS, 2))):
        rebar(**params, validation_fraction=0).fit(data, groups=groups)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("shuffled", [False, True])
def test_lazy_windows_are_another_run_than_their_array(tmp_path, shuffled):
    """They know what follows what, and the steps that the first stage reads once."""
    lazy = sliding_windows(np.random.default_rng(0).normal(size=(4, 40, 2)), 8, 4, lazy=True).X
    if shuffled:
        lazy = lazy[np.random.default_rng(1).permutation(len(lazy))]
    for data in (lazy, np.asarray(lazy)):
        expected = rebar().fit(data, groups=lazy.recording)
        for _ in range(2):
            kept = rebar(checkpoint_dir=tmp_path).fit(data, groups=lazy.recording)
            assert_same_run(kept, expected)
    assert len(list(tmp_path.iterdir())) == 2


def test_warm_start_begins_with_both_stages():
    first = rebar(warm_start=True, attention_epochs=8, max_epochs=1).fit(X)
    attention = first.cross_attention_net_
    again = first.set_params(attention_lr=1e-12, lr=1e-12).fit(X)
    assert again.cross_attention_net_ is not attention
    for a, b in zip(
        attention.module_.parameters(), again.net_.module_.cross_attention.parameters(), strict=True
    ):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_both_stages_train_in_bfloat16():
    holes = X.copy()
    holes[::2, 10:] = np.nan
    estimator = rebar(precision="bfloat16", alpha=0.5).fit(holes)
    assert np.isfinite(estimator.transform(holes)).all()
    full = rebar(alpha=0.5).fit(holes)
    for name in ("net_", "cross_attention_net_"):
        first, second = (getattr(e, name).history[0, "train_loss"] for e in (estimator, full))
        assert first != second
        assert first == pytest.approx(second, rel=0.05)


# --- parameters ---


def test_the_encoder_starts_where_that_of_pulse_does():
    still = {"lr": 1e-12, "weight_decay": 0.0, "random_state": 3}
    pulse = small(PulseTransformer, **still).fit(X).transform(X)
    np.testing.assert_allclose(rebar(**still).fit(X).transform(X), pulse, atol=1e-5)


def test_a_constant_learning_rate():
    def spied(**params):
        return callback_of(rebar(callbacks=[BatchSpy()], lr=1e-3, **params).fit(X), BatchSpy)

    constant = spied(schedule="constant", betas=(0.95, 0.999))
    assert set(constant.setting("lr")) == {1e-3}
    assert set(constant.setting("betas")) == {(0.95, 0.999)}
    assert len(set(spied().setting("lr"))) > 2
    with pytest.raises(ValueError, match="betas=.*schedule='constant'"):
        rebar(betas=(0.95, 0.999)).fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_candidates": 1}, "n_candidates must be an integer of at least 2"),
        ({"alpha": 1.1}, "alpha must be a number in"),
        ({"temperature": 0.0}, "temperature must be a number in"),
        ({"anchors": "all"}, "anchors must be one of 'windows', 'recordings'"),
        ({"loss_reduction": "sum"}, "loss_reduction must be one of"),
        ({"mask_length": 0}, "mask_length must be an integer of at least 1"),
        ({"mask_length": 16}, "mask_length=16 steps would hide windows of 16 time steps whole"),
        ({"attention_kernel_size": 4}, "attention_kernel_size must be odd, got 4.*take 5"),
        ({"attention_hidden_dim": 0}, "attention_hidden_dim must be an integer"),
        ({"attention_bottleneck_dim": 0}, "attention_bottleneck_dim must be an integer"),
        ({"attention_depth": -1}, "attention_depth must be an integer"),
        ({"attention_dropout": 1.0}, "attention_dropout must be a number in"),
        ({"attention_epochs": 0}, "attention_epochs must be an integer"),
        ({"attention_lr": 0.0}, "attention_lr must be a number in"),
        ({"attention_lr": 1e300}, "attention_lr must be a number in"),
        ({"attention_batch_size": 0}, "attention_batch_size must be an integer"),
        ({"layer_norm": "all"}, "layer_norm must be one of"),
        ({"representation_dropout": 1.0}, "representation_dropout must be"),
        ({"schedule": "cosine"}, "schedule must be one of"),
        ({"anchors": "recordings"}, "anchors='recordings' takes one window of each recording"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        rebar(**params).fit(X)


def test_blocks_of_attention_beyond_every_window():
    fitted = rebar(attention_depth=64, attention_epochs=1, max_epochs=1).fit(X)
    assert np.isfinite(fitted.history_[0]["train_loss"])


def test_groups_must_name_every_sample():
    with pytest.raises(ValueError, match=r"groups has shape \(3,\), but there are 20 samples"):
        rebar().fit(X, groups=[0, 1, 2], X_val=X)


def test_an_array_to_validate_on_must_say_its_recordings():
    with pytest.raises(ValueError, match="pass X_val as bags, one bag per recording, or as"):
        rebar().fit(X, groups=GROUPS, X_val=X)
    with pytest.raises(ValueError, match="nothing says which recordings they are"):
        rebar().fit(lazy_windows(), X_val=X)
    lazy = lazy_windows()
    for X_val in (X.reshape(5, 4, 16, 2), lazy):
        assert "valid_loss" in rebar(max_epochs=1).fit(X, groups=GROUPS, X_val=X_val).history_[0]
    assert "valid_loss" in rebar(max_epochs=1).fit(X, X_val=X).history_[0]


def test_recordings_of_one_window_are_warned_of():
    with pytest.warns(UserWarning, match="one window of each recording"):
        rebar().fit(X, groups=np.arange(20))


def test_recordings_of_two_windows_are_warned_of():
    with pytest.warns(UserWarning, match="at most two windows of each recording"):
        rebar().fit(X.reshape(10, 2, 16, 2))
    rebar(alpha=0.5).fit(X.reshape(10, 2, 16, 2))  # warnings are errors: other anchors teach


def test_one_anchor_a_recording_is_a_step_for_each_batch_of_recordings():
    estimator = rebar(anchors="recordings", validation_fraction=0).fit(X, groups=GROUPS)
    assert estimator.history_[0]["train_batch_count"] == 1
    estimator = rebar(validation_fraction=0, batch_size=4).fit(X, groups=GROUPS)
    assert estimator.history_[0]["train_batch_count"] == 5


@pytest.mark.parametrize(
    ("n_recordings", "X_val", "left"),
    [(2, None, "recording is left for training"), (5, X[None], "recording of X_val is left for")],
)
def test_one_anchor_a_recording_needs_two_recordings(n_recordings, X_val, left):
    groups = np.arange(20) * n_recordings // 20  # of two, one is held out
    with pytest.raises(ValueError, match=f"one {left}.*: pass more recordings, or set anchors='w"):
        rebar(anchors="recordings").fit(X, groups=groups, X_val=X_val)
    rebar(anchors="windows").fit(X, groups=groups, X_val=X_val)


BASE = {"max_epochs": 1, "alpha": 0.5}


@pytest.fixture(scope="module")
def fitted():
    return rebar(**BASE).fit(X, groups=GROUPS)


@pytest.mark.parametrize(
    "params",
    [
        {"n_candidates": 5},
        {"alpha": 1.0},
        {"temperature": 0.1},
        {"mask_length": 8},
        {"attention_hidden_dim": 16},
        {"attention_kernel_size": 5},
        {"attention_bottleneck_dim": 8},
        {"attention_depth": 2},
        {"attention_dropout": 0.5},
        {"attention_epochs": 3},
        {"attention_lr": 1e-2},
        {"attention_batch_size": 4},
        {"anchors": "recordings"},
        {"loss_reduction": "published"},
        {"schedule": "constant"},
        {"layer_norm": "none"},
        {"representation_dropout": 0.3},
        {"select": "average"},
    ],
)
def test_every_parameter_reaches_the_training(params, fitted):
    changed = rebar(**(BASE | params)).fit(X, groups=GROUPS)
    mine, theirs = (estimator.net_.module_.state_dict() for estimator in (changed, fitted))
    assert any(
        mine[name].shape != theirs[name].shape or not torch.equal(mine[name], theirs[name])
        for name in mine.keys() & theirs.keys()
        if name.startswith("cross_attention.") is next(iter(params)).startswith(("att", "mask"))
    )


# --- presets ---

# Data set: temperature, alpha, depth, hidden block, epochs of the first stage, batch, lr.
SETTINGS = {
    "har": (1, 0, 1, 15, 300, 64, 1e-3),
    "ecg": (0.001, 1, 5, 300, 20, 64, 1e-3),
    "ppg": (1, 1, 5, 300, 500, 64, 1e-3),
    "eeg": (1, 0.5, 5, 300, 100, 64, 1e-3),
    "synthetic": (0.001, 0.5, 5, 25, 100, 128, 1e-3),
    "har-transfer": (1, 0, 1, 15, 300, 64, 1e-3),
    "eeg-transfer": (1, 0.5, 5, 100, 100, 64, 1e-4),
}
NAMES = "temperature alpha attention_depth mask_length attention_epochs batch_size lr".split()
# Data set: channels, window, down-sampling, stride.
WINDOWS = {
    "har": (6, 128, 1, 128),
    "ecg": (2, 500, 5, 128),
    "ppg": (1, 960, 4, 128),
    "eeg": (2, 1000, 3, 128),
    "synthetic": (3, 100, 1, 128),
    "har-transfer": (6, 500, 1, 128),
    "eeg-transfer": (1, 200, 1, 200),
}


@pytest.mark.parametrize("dataset", SETTINGS)
def test_presets(dataset):
    estimator = REBARTransformer(**presets.get("rebar", dataset))
    assert tuple(getattr(estimator, name) for name in NAMES) == SETTINGS[dataset]
    assert (estimator.max_epochs, estimator.n_candidates, estimator.weight_decay) == (100, 10, 1e-5)
    assert (estimator.attention_lr, estimator.attention_batch_size) == (1e-3, 32)
    assert (estimator.attention_hidden_dim, estimator.attention_bottleneck_dim) == (256, 32)
    assert (estimator.attention_kernel_size, estimator.attention_dropout) == (15, 0.1)
    assert (estimator.schedule, estimator.anchors) == ("one_cycle", "windows")
    window = presets.windows("rebar", dataset)
    keys = "n_channels length downsample stride".split()
    assert tuple(window[key] for key in keys) == WINDOWS[dataset]
    assert (window["mode"], window["fraction"]) == ("random", 1.0)
    assert window["stride_val"] == window["stride"]
    assert estimator.mask_length < window["length"]
    assert estimator.gradient_clip_value is None
    anywhere = window | {"stride": 1, "stride_val": 1}
    assert presets.windows("rebar", dataset, published=True) == anywhere


@pytest.mark.parametrize("dataset", SETTINGS)
def test_published_presets(dataset):
    published = REBARTransformer(**presets.get("rebar", dataset, published=True))
    assert published.lr == pytest.approx(SETTINGS[dataset][-1] / 25)
    assert (published.schedule, published.betas) == ("constant", (0.95, 0.999))
    assert published.gradient_clip_value is None
    assert (published.anchors, published.loss_reduction) == ("recordings", "published")
    assert published.deterministic_validation is False
    assert tuple(getattr(published, name) for name in NAMES[:-1]) == SETTINGS[dataset][:-1]
    published._check_params()  # as `fit` does, which takes hours


# Data set: temperature, alpha, lr, epochs, batch.
OFFICIAL = {
    "har": (0.1, 0.0, 1e-3, 1000, 64),
    "ecg": (0.001, 0.5, 1e-3, 100, 16),
    "ppg": (10.0, 0.5, 1e-4, 1000, 16),
    "eeg": (1, 0.5, 1e-3, 100, 64),
    "synthetic": (0.001, 0.5, 1e-3, 100, 128),
    "har-transfer": (1, 0, 1e-3, 100, 64),
    "eeg-transfer": (1, 0.5, 1e-4, 100, 64),
}


@pytest.mark.parametrize("dataset", OFFICIAL)
def test_official_presets(dataset):
    official = REBARTransformer(**presets.get("rebar", dataset, official=True))
    names = "temperature alpha lr max_epochs batch_size".split()
    assert tuple(getattr(official, name) for name in names) == OFFICIAL[dataset]
    assert (official.layer_norm, official.representation_dropout) == ("none", 0.1)
    assert (official.schedule, official.betas, official.weight_decay) == ("constant", None, 1e-2)
    assert (official.select, official.validation_every) == ("average_min_val", 1)
    assert (official.n_candidates, official.gradient_clip_value) == (20, None)
    assert (official.anchors, official.loss_reduction) == ("recordings", "published")
    official.set_params(**accepted(REBARTransformer, SMALL), mask_length=0.2).fit(X, groups=GROUPS)
    assert np.isfinite(official.transform(X)).all()


def test_the_default_block_is_that_of_har():
    har = REBARTransformer(**presets.get("rebar", "har"))
    assert int(REBARTransformer().mask_length * 128) == har.mask_length
    different = {
        name
        for name, value in har.get_params().items()
        if value != getattr(REBARTransformer(), name)
    }
    assert different == {"mask_length", "batch_size"}


# --- does it learn ---


def test_twenty_updates_agree_with_an_independent_step():
    """The second stage again, with torch's optimiser and schedule and no code of the objective."""
    lr, alpha, temperature = 1e-2, 0.5, 0.2
    estimator = rebar(
        alpha=alpha,
        temperature=temperature,
        lr=lr,
        max_epochs=5,
        batch_size=5,
        validation_fraction=0,
        callbacks=[BatchSpy()],
    ).fit(X, groups=GROUPS)
    spy = callback_of(estimator, BatchSpy)
    encoder, attention = spy.before_.encoder.train(), spy.before_.cross_attention
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=lr, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=20)
    generator = torch.Generator().manual_seed(spy.before_.seed)
    assert len(spy.batches_) == 20
    for batch in spy.batches_:
        x, candidates = batch["x"], batch["candidates"]
        errors = []
        for k in range(3):
            hidden = torch.randperm(16, generator=generator) < 8
            rebuilt = attention(x, (~hidden).expand(len(x), -1), candidates[:, k])
            errors.append((rebuilt - x)[:, hidden].square().sum((1, 2)))
        nearest = torch.stack(errors).argmin(0)
        embedded = torch.stack([encoder(candidates[:, k]) for k in range(3)], dim=1)
        loss = literal_contrast(encoder(x), embedded, nearest, alpha, temperature)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    for mine, theirs in zip(estimator.encoder_.parameters(), encoder.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-3)
    untrained = rebar(lr=1e-12, max_epochs=1).fit(X).encoder_
    assert (estimator.encoder_.input.weight - untrained.input.weight).abs().max() > 1e-2


@pytest.mark.slow
def test_it_beats_an_untrained_encoder():
    """On noisy Lorenz systems, after a minute or two on one core."""
    X_train, y_train, X_test, y_test = chaotic_task()
    sizes = {"embedding_dim": 64, "encoder_hidden_dim": 32, "encoder_depth": 6, "num_threads": 1}

    def score(encoder):
        probe = make_linear_probe().fit(encoder.transform(X_train), y_train)
        return probe.score(encoder.transform(X_test), y_test)

    untrained = score(RandomEncoderTransformer(**sizes, random_state=0).fit(X_train))
    trained = REBARTransformer(
        **sizes,
        attention_hidden_dim=64,
        attention_bottleneck_dim=16,
        attention_depth=2,
        attention_epochs=10,
        n_candidates=5,
        alpha=0.5,
        batch_size=64,
        max_epochs=5,
        random_state=0,
    ).fit(X_train, groups=np.arange(len(X_train)) // N_EACH)
    assert 0.6 < untrained < 0.9
    assert score(trained) > untrained


def test_the_validation_loss_counts_the_observed_steps_of_a_block():
    torch.manual_seed(0)
    objective = REBARReconstruction(1, attention=ATTENTION, mask_length=10).eval()
    x, observed = normal(4, 20, 1), torch.ones(4, 20, dtype=torch.bool)
    observed[:, 1:19:2] = False
    hidden, loss = hidden_in(objective, objective.validation_loss, x=x, observed=observed)
    n_scored = (hidden & observed).sum()
    torch.testing.assert_close(loss, objective(x, observed, hidden) / n_scored)
