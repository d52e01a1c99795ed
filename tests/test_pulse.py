import copy
import functools
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback

from sklearn_pulse import (
    FineTuneClassifier,
    PulseOracleTransformer,
    PulseTransformer,
    RandomEncoderTransformer,
)
from tests.helpers import (
    SMALL_ENCODER,
    SMALL_PULSE,
    BatchSpy,
    callback_of,
    make_windows,
    small,
    weights_of,
)

X, y = make_windows()


@functools.cache
def fitted_by_default():
    """Return a small estimator fitted on `X`. Nobody may change it."""
    return small(PulseTransformer).fit(X)


def test_training_lowers_the_loss_below_that_of_predicting_zero():
    X, _ = make_windows(60, 24)
    pulse = small(PulseTransformer, max_epochs=20, lr=1e-2, gru_hidden_dim=16).fit(X)
    losses = [epoch["valid_loss"] for epoch in pulse.history_]
    assert losses[-1] < 0.5 * losses[0]  # 0.3 of both
    assert losses[-1] < 0.5 * np.square(X).mean()


def test_the_probe_finds_the_classes():
    X, y = make_windows(200, 32)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = make_pipeline(small(PulseTransformer, max_epochs=5), LogisticRegression(max_iter=1000))
    assert model.fit(X_train, y_train).score(X_test, y_test) > 0.9


@pytest.mark.parametrize(
    "params",
    [
        {"n_crops": 0},
        {"n_crops": 3, "gru_num_layers": 3},
        {"crop": "fixed", "crop_length": 4},
        {"crop": "fixed", "crop_length": 0.25, "min_crop_length": 0.3},
        {"min_crop_length": 0.9},
        {"pairing": "random"},
        {"loss_reduction": "valid"},
        {"observation": "linear"},
        {"shared_encoder": True},
        {"time_varying_dim": 0},
        {"time_varying_dim": 3, "time_varying_pool": 4},
        {"init_kernel_size": 5, "init_dilation": 2, "init_hidden_dim": 12},
        {"pooling": "mean"},
        {"dropout": 0.0},
        {"theta_dropout": "sequence"},
        {"gradient_clip_value": 1e-4},
        {"select": "min_val"},
        {"deterministic_validation": False},
        {"validation_fraction": 0.0},
        {"batch_size": 1000},
        {"batch_size": 1},
        {"precision": "bfloat16"},
    ],
    ids=str,
)
def test_every_option_trains_to_something_else(params):
    default, changed = fitted_by_default(), small(PulseTransformer, **params).fit(X)
    assert np.isfinite(changed.transform(X)).all()
    losses = [[epoch["train_loss"] for epoch in e.history_] for e in (default, changed)]
    embeddings = [e.transform(X) for e in (default, changed)]
    assert losses[0] != losses[1] or not np.array_equal(*embeddings)


def test_weights_are_selected_by_the_rule_that_is_named():
    scripted = small(PulseTransformer, max_epochs=7, select="last", validation_every=1).fit(X)
    assert "select_weights" not in dict(scripted.net_.callbacks_)
    losses = [epoch["valid_loss"] for epoch in scripted.history_]
    assert len(set(losses)) == 7
    lowest = small(PulseTransformer, max_epochs=7, select="min_val", validation_every=1).fit(X)
    assert lowest.selected_epoch_ == np.argmin(losses) + 1
    published = small(PulseTransformer, max_epochs=7, validation_every=1).fit(X)
    assert dict(published.net_.callbacks_)["select_weights"].rule == "trailing_mean"


def test_observed_and_missing_steps_do_not_share_a_kernel_path_by_chance():
    """Half of the rows missing: the others embed as if alone, after a fit on such data."""
    holes = X.copy()
    holes[::2, 3:6] = np.nan
    pulse = small(PulseTransformer, pairing="random").fit(holes)
    np.testing.assert_array_equal(pulse.transform(holes)[1::2], pulse.transform(holes[1::2]))


def test_bfloat16_is_near_float32():
    params = {"max_epochs": 1, "lr": 1e-9}
    exact = small(PulseTransformer, **params).fit(X).transform(X)
    rounded = small(PulseTransformer, **params, precision="bfloat16").fit(X).transform(X)
    assert rounded.dtype == np.float32
    assert 1e-6 < np.abs(exact - rounded).max() < 0.1


class ForgetCasts(Callback):
    def on_batch_begin(self, net, **kwargs):
        torch.clear_autocast_cache()


def test_bfloat16_casts_the_weights_of_the_last_update():
    params = {"max_epochs": 3, "lr": 1e-2, "batch_size": 4, "precision": "bfloat16"}
    expected = small(PulseTransformer, **params, callbacks=[ForgetCasts()]).fit(X).transform(X)
    np.testing.assert_array_equal(small(PulseTransformer, **params).fit(X).transform(X), expected)
    with torch.autocast("cpu", torch.bfloat16):
        np.testing.assert_array_equal(
            small(PulseTransformer, **params).fit(X).transform(X), expected
        )


def test_holes_change_no_other_window_in_bfloat16():
    windows = np.random.default_rng(0).normal(size=(6, 300, 2)).astype(np.float32)
    pulse = small(PulseTransformer, precision="bfloat16", pooling="mean", max_epochs=1).fit(windows)
    holes = windows.copy()
    holes[0, 5:9] = np.nan
    np.testing.assert_array_equal(pulse.transform(holes)[1:], pulse.transform(windows)[1:])


@pytest.mark.slow
def test_compiled_is_near_eager():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = small(PulseTransformer, compile=True).fit(X)
        np.testing.assert_allclose(
            compiled.transform(X), small(PulseTransformer).fit(X).transform(X), atol=1e-4
        )


@pytest.mark.parametrize("num_threads", [1, 2])
def test_without_a_compiler_the_encoder_computes_uncompiled(num_threads, monkeypatch):
    def refuses(graph, example_inputs):
        raise RuntimeError("\nNo working C++ compiler found\n")

    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: refuses)
    torch.compiler.reset()
    windows = np.random.default_rng(0).normal(size=(600, 32, 2))  # several blocks
    params = {**SMALL_ENCODER, "num_threads": num_threads, "random_state": 0}
    for _ in range(2):  # the second has the graph of the first
        control = RandomEncoderTransformer(compile=True, **params).fit(windows)
        with pytest.warns(
            UserWarning, match=r"compile=True has no .* \(No working C\+\+"
        ) as caught:
            found = control.transform(windows)
        assert {warning.filename for warning in caught} == {__file__}
        expected = RandomEncoderTransformer(**params).fit(windows).transform(windows)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_array_equal(control.transform(windows), found)  # without a warning


def test_each_encoder_tells_why_itself_was_not_compiled(monkeypatch):
    """Another one computes after the first has, and before the first reports, as in a thread."""
    whose = []

    def refuses(graph, example_inputs):
        raise RuntimeError(f"no compiler for the {whose[-1]}")

    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: refuses)
    torch.compiler.reset()
    params = SMALL_ENCODER | {"compile": True, "num_threads": 1, "random_state": 0}
    first = RandomEncoderTransformer(**params).fit(X)
    second = RandomEncoderTransformer(**params | {"encoder_hidden_dim": 12}).fit(X)
    report = type(first.net_).report_compilation

    def late(net):
        if whose == ["first"]:
            whose.append("second")
            with pytest.warns(UserWarning, match="no compiler for the second"):
                second.transform(X)
        report(net)

    monkeypatch.setattr(type(first.net_), "report_compilation", late)
    whose.append("first")
    with pytest.warns(UserWarning, match="no compiler for the first"):
        first.transform(X)


@pytest.mark.parametrize("chosen", [False, True])
def test_the_encoder_is_compiled_if_chosen(chosen, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module, **_: compiled.append(module))
    fitted = small(PulseTransformer, compile=chosen, max_epochs=1).fit(X)
    assert compiled == [fitted.encoder_] * chosen


def test_the_untrained_control_has_the_weights_that_training_starts_from():
    control = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0).fit(X)
    barely = small(PulseTransformer, max_epochs=1, lr=1e-12, weight_decay=0.0).fit(X)
    np.testing.assert_allclose(control.transform(X), barely.transform(X), atol=1e-6)


def test_the_seed_draws_the_order_of_the_windows():
    orders = []
    for seed in (0, 0, 1):
        params = {"validation_fraction": 0, "random_state": seed, "callbacks": [BatchSpy()]}
        spy = callback_of(small(PulseTransformer, **params).fit(X), BatchSpy)
        orders.append([batch["x"].tolist() for batch in spy.batches_])
    assert orders[0] == orders[1] != orders[2]


def test_default_sizes_are_the_published_ones():
    pulse = PulseTransformer(max_epochs=1, validation_fraction=0, random_state=0)
    pulse.fit(np.zeros((2, 8, 6), np.float32))
    assert sum(p.numel() for p in pulse.encoder_.parameters()) == 638_208
    assert len(pulse.encoder_.blocks) == 11
    assert pulse.transform(np.zeros((1, 8, 6))).shape == (1, 320)


# --- validation ---


class Recorder:
    """Which windows an objective is trained and validated on, by their first value."""

    def __init__(self, monkeypatch):
        from sklearn_pulse.objectives import CrossReconstruction

        self.seen = {True: set(), False: set()}
        original = CrossReconstruction.forward

        def forward(objective, x, **kwargs):
            self.seen[objective.training].update(x[:, 0, 0].tolist())
            return original(objective, x, **kwargs)

        monkeypatch.setattr(CrossReconstruction, "forward", forward)


def numbered(n):
    """Windows that begin with their own number."""
    data = make_windows(n)[0]
    data[:, 0, 0] = np.arange(n)
    return data


@pytest.mark.parametrize(("n", "n_valid"), [(20, 3), (2, 1), (7, 2)])
def test_validation_windows_are_held_out(monkeypatch, n, n_valid):
    recorder = Recorder(monkeypatch)
    small(PulseTransformer).fit(numbered(n))
    assert len(recorder.seen[False]) == n_valid
    assert recorder.seen[True] | recorder.seen[False] == set(range(n))
    assert not recorder.seen[True] & recorder.seen[False]


@pytest.mark.parametrize("size", [4, 10])
def test_groups_stay_together(monkeypatch, size):
    recorder = Recorder(monkeypatch)
    groups = np.arange(20) // size
    small(PulseTransformer, validation_fraction=0.3).fit(numbered(20), groups=groups)
    held_out = {int(i) // size for i in recorder.seen[False]}
    assert held_out
    assert not held_out & {int(i) // size for i in recorder.seen[True]}


@pytest.mark.parametrize("groups", [None, np.arange(20) // 2])
def test_the_seed_draws_what_is_held_out(monkeypatch, groups):
    recorder = Recorder(monkeypatch)
    held_out = []
    for seed in (0, 0, 1):
        recorder.seen[False] = set()
        small(PulseTransformer, random_state=seed).fit(numbered(20), groups=groups)
        held_out.append(recorder.seen[False])
    assert held_out[0] == held_out[1] != held_out[2]


def test_given_validation_windows(monkeypatch):
    recorder = Recorder(monkeypatch)
    small(PulseTransformer).fit(numbered(10), X_val=numbered(14)[10:])
    assert recorder.seen == {True: set(range(10)), False: set(range(10, 14))}


def test_one_group_leaves_nothing_to_validate_on():
    with pytest.warns(UserWarning, match="one group only.*X_val"):
        pulse = small(PulseTransformer).fit(X, groups=np.zeros(20))
    assert "valid_loss" not in pulse.history_[0]


def test_one_sample_trains_without_validation():
    pulse = small(PulseTransformer).fit(X[:1])
    assert "valid_loss" not in pulse.history_[0]
    assert pulse.transform(X[:1]).shape == (1, 8)


# --- history, warm start, callbacks ---


@pytest.mark.parametrize(
    ("transformer", "labels"),
    [
        (PulseTransformer(), None),
        (PulseTransformer(pairing="random"), None),
        (PulseOracleTransformer(kind="positive"), y),
        (PulseOracleTransformer(kind="negative"), y),
    ],
)
def test_a_batch_without_a_step_to_predict_changes_no_weight(transformer, labels):
    single = X[:8].copy()
    single[:, :-1] = np.nan  # each window has one observed step
    labels = None if labels is None else labels[:8]
    transformer = clone(transformer).set_params(**SMALL_PULSE | {"weight_decay": 0.0})
    transformer.set_params(validation_fraction=0.0, max_epochs=1, callbacks=[BatchSpy()])
    with pytest.warns(UserWarning, match="X has windows of one time step that is not missing"):
        fitted = transformer.fit(single, labels)
    assert fitted.history_[0]["train_loss"] == 0.0
    before = torch.nn.utils.parameters_to_vector(callback_of(fitted, BatchSpy).before_.parameters())
    assert torch.equal(weights_of(fitted), before)
    mixed = transformer.set_params(batch_size=1).fit(
        np.concatenate([single, X[8:]]), y if labels is not None else None
    )
    assert mixed.history_[0]["train_loss"] > 0.0
    assert not torch.equal(weights_of(mixed), before)


def test_a_single_update_has_the_whole_learning_rate():
    """Fits that go on from one another by single updates would else learn nothing."""
    settings = {"batch_size": 64, "max_epochs": 1, "validation_fraction": 0.0}
    pulse = small(PulseTransformer, callbacks=[BatchSpy()], lr=0.01, **settings).fit(X)
    spy = callback_of(pulse, BatchSpy)
    assert [group["lr"] for group in spy.settings_] == [0.01]
    before = torch.nn.utils.parameters_to_vector(spy.before_.parameters())
    # Adam moves a weight by the learning rate in its first update.
    assert (weights_of(pulse) - before).abs().max() > 0.005


def test_the_history_has_a_row_for_each_epoch():
    pulse = small(PulseTransformer, max_epochs=3).fit(X)
    assert pulse.n_iter_ == len(pulse.history_) == 3
    for epoch in pulse.history_:
        assert {"epoch", "train_loss", "valid_loss", "dur"} <= epoch.keys()


def test_warm_start_keeps_the_earlier_history():
    settings = {"warm_start": True, "select": "min_val", "validation_every": 1}
    pulse = small(PulseTransformer, **settings, max_epochs=3).fit(X)
    first = pulse.history_
    assert "fit" not in first[0]
    alone = small(PulseTransformer, **settings, max_epochs=2)
    alone.net_ = copy.deepcopy(pulse.net_)
    alone.net_.history.clear()  # as if the weights came from elsewhere
    alone.fit(X)
    second = pulse.set_params(max_epochs=2).fit(X).history_
    assert [epoch["epoch"] for epoch in second] == [1, 2, 3, 4, 5]
    assert [epoch["fit"] for epoch in second] == [1, 1, 1, 2, 2]
    assert pulse.n_iter_ == 2
    assert [{**epoch, "fit": 1} for epoch in first] == second[:3]
    for name in ("train_loss", "valid_loss"):
        losses = [epoch[name] for epoch in alone.history_]
        assert [epoch[name] for epoch in second[3:]] == losses
    assert pulse.selected_epoch_ == 3 + alone.selected_epoch_
    third = pulse.set_params(max_epochs=1).fit(X).history_
    assert [epoch["fit"] for epoch in third] == [1, 1, 1, 2, 2, 3]
    assert pulse.set_params(warm_start=False).fit(X).n_iter_ == 1


class StopsAtOnce(Callback):
    def on_train_begin(self, net, **kwargs):
        net.stop_training_ = True


def test_a_warm_start_that_is_stopped_at_once_has_run_no_epoch():
    settings = {"warm_start": True, "select": "min_val", "validation_every": 1}
    pulse = small(PulseTransformer, **settings, max_epochs=4, lr=0.5).fit(X)
    before, history, selected = weights_of(pulse), pulse.history_, pulse.selected_epoch_
    assert selected
    pulse.set_params(callbacks=[StopsAtOnce()]).fit(X)
    torch.testing.assert_close(weights_of(pulse), before, rtol=0, atol=0)
    assert [epoch["train_loss"] for epoch in pulse.history_] == [e["train_loss"] for e in history]
    assert (pulse.n_iter_, pulse.selected_epoch_) == (0, selected)
    assert small(PulseTransformer, callbacks=[StopsAtOnce()]).fit(X).n_iter_ == 0


def test_warm_start_remembers_the_longest_windows(recwarn, tmp_path):
    def warned():
        found = [
            w for w in recwarn if "16 of fit: they reach convolution weights" in str(w.message)
        ]
        recwarn.clear()
        return bool(found)

    long = make_windows(8, 64)[0]
    pulse = small(PulseTransformer, warm_start=True, max_epochs=1, encoder_depth=5)
    pulse.fit(long)
    for _ in range(2):
        pulse.fit(long[:, :16]).transform(long)
        assert not warned()
    tuned = FineTuneClassifier(FrozenEstimator(pulse), max_epochs=1, num_threads=1, random_state=0)
    tuned.fit(long[:, :16], np.arange(8) % 2).transform(long)
    assert not warned()
    for model in (pulse, tuned):
        assert (model.n_timesteps_in_, model.n_timesteps_trained_) == (16, 64)
        model.save_pretrained(tmp_path / type(model).__name__)
        type(model).from_pretrained(tmp_path / type(model).__name__).transform(long)
        assert not warned()
    pulse.set_params(warm_start=False).fit(long[:, :16]).transform(long)
    assert warned()


def test_warm_start_goes_on_from_the_weights_with_a_new_schedule():
    pulse = small(PulseTransformer, warm_start=True).fit(X)
    before = weights_of(pulse)
    pulse.set_params(max_epochs=1, lr=1e-12, weight_decay=0.0).fit(X)
    torch.testing.assert_close(weights_of(pulse), before)
    assert pulse.n_iter_ == 1
    pulse.set_params(warm_start=False).fit(X)
    assert not torch.allclose(weights_of(pulse), before)


def test_an_interrupted_refit_leaves_the_first_fit(monkeypatch):
    pulse = small(PulseTransformer).fit(X)
    embedding = pulse.transform(X)
    monkeypatch.setattr(
        "sklearn_pulse._training._net.SSLNet.train_step",
        lambda *args: (_ for _ in ()).throw(KeyboardInterrupt),
    )
    with pytest.raises(KeyboardInterrupt):
        pulse.fit(X)
    np.testing.assert_array_equal(pulse.transform(X), embedding)


def test_callbacks_are_copied_and_run():
    class Count(Callback):
        n_epochs = 0

        def on_epoch_end(self, net, **kwargs):
            self.n_epochs += 1

    count = Count()
    pulse = small(PulseTransformer, callbacks=[count]).fit(X)
    copied = callback_of(pulse, Count)
    assert (count.n_epochs, copied.n_epochs) == (0, 2)


def test_a_list_that_a_callback_was_made_with_stays_empty():
    class Losses(Callback):
        def __init__(self):
            self.losses = []

        def on_epoch_end(self, net, **kwargs):
            self.losses.append(net.history[-1, "train_loss"])

    passed = Losses()
    for _ in range(2):
        pulse = small(PulseTransformer, callbacks=[passed], max_epochs=3).fit(X)
        losses = [epoch["train_loss"] for epoch in pulse.history_]
        assert callback_of(pulse, Losses).losses == losses
    assert not passed.losses


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_verbose_prints_losses_and_then_progress_bars(verbose, capfd):
    small(PulseTransformer, verbose=verbose).fit(X)
    out, err = capfd.readouterr()
    assert ("train_loss" in out) == (verbose >= 1)
    assert ("it/s" in err + out or "100%" in err + out) == (verbose == 2)


@pytest.mark.filterwarnings("ignore:The scale of X is extreme:UserWarning")
def test_a_loss_of_nan_names_the_epoch():
    huge = (X * 1e25).astype(np.float32)  # finite, its square is not
    with pytest.raises(FloatingPointError, match="epoch 1.*lr"):
        small(PulseTransformer).fit(huge)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_default_sizes_repeat_to_the_bit(n_threads):
    X = make_windows(4, 32, 3)[0]
    params = {"max_epochs": 1, "random_state": 0, "num_threads": n_threads}
    first, second = (PulseTransformer(**params).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("n_timesteps", [7, 64])
def test_rows_do_not_depend_on_each_other_at_default_sizes(n_timesteps):
    """Kernels for few short windows round differently, so blocks are filled up."""
    X = make_windows(90, n_timesteps, 2)[0]
    control = RandomEncoderTransformer(random_state=0, num_threads=2).fit(X)
    embedding = control.transform(X)
    order = np.random.default_rng(0).permutation(90)
    np.testing.assert_array_equal(control.transform(X[order]), embedding[order])
    for n in (1, 2, 3, 50):
        np.testing.assert_array_equal(control.transform(X[:n]), embedding[:n])
