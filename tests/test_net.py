import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from skorch import History
from skorch.callbacks import Callback, EarlyStopping, LRScheduler
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

from sklearn_pulse._training._callbacks import ClipGradientValue, SelectWeights
from sklearn_pulse._training._iterator import BatchIterator, ResidentBatches
from sklearn_pulse._training._net import SSLNet
from sklearn_pulse.objectives import Objective


class Linear(Objective):
    """Loss ``mean((x - w)^2)``, plus noise from the objective's generator in training."""

    def __init__(self, noise=0.0, seed=0):
        super().__init__(seed)
        self.encoder = nn.Linear(1, 1)
        self.noise = noise

    def forward(self, x):
        loss = (self.encoder(x) - x).square().mean()
        draw = torch.rand((), generator=self.generator(x.device))
        return loss + self.noise * draw


UNTRAINED = SSLNet(Linear, verbose=0).initialize()


def data(n=10, value=1.0):
    return ResidentBatches(x=torch.full((n, 1), value))


def net(**params):
    settings = {"max_epochs": 4, "batch_size": 4, "lr": 0.1, "verbose": 0}
    return SSLNet(Linear, **(settings | params))


class Spy(Callback):
    def on_train_begin(self, net, **kwargs):
        self.losses_, self.lrs_, self.betas_, self.weights_ = [], [], [], []

    def on_batch_begin(self, net, training, **kwargs):
        if training:
            self.lrs_.append(net.optimizer_.param_groups[0]["lr"])
            self.betas_.append(net.optimizer_.param_groups[0]["betas"][0])

    def on_batch_end(self, net, training, loss, **kwargs):
        self.losses_.append((training, loss.item()))

    def on_epoch_end(self, net, **kwargs):
        self.weights_.append(net.module_.encoder.weight.item())


@given(n=st.integers(1, 40), batch_size=st.integers(1, 12), minimum=st.integers(1, 2))
def test_batches_cover_the_data_once(n, batch_size, minimum):
    iterator = BatchIterator(
        ResidentBatches(x=torch.arange(n)), batch_size, shuffle=True, min_batch_size=minimum
    )
    batches = [batch["x"] for batch in iterator]
    assert len(batches) == len(iterator)
    assert sorted(torch.cat(batches).tolist()) == list(range(n))
    if n >= minimum and batch_size >= minimum:
        assert min(map(len, batches)) >= minimum


@given(
    n=st.integers(1, 40),
    batch_size=st.integers(1, 12),
    most=st.integers(1, 30),
    drop_last=st.booleans(),
)
def test_batches_end_with_their_number(n, batch_size, most, drop_last):
    iterator = BatchIterator(
        ResidentBatches(x=torch.arange(n)), batch_size, drop_last=drop_last, max_batches=most
    )
    counts = []
    while sum(counts) < most:
        length = len(iterator)
        batches = [batch["x"] for batch in iterator]
        assert len(batches) == length
        counts.append(length)
        if drop_last:
            assert {len(batch) for batch in batches} == {min(n, batch_size)}
        whole = max(1, n // batch_size if drop_last else -(-n // batch_size))
        assert length == min(whole, most - sum(counts[:-1]))
    assert sum(counts) == most


def test_the_order_changes_with_the_epoch_and_repeats_with_the_seed():
    def orders(seed):
        iterator = BatchIterator(ResidentBatches(x=torch.arange(20)), 20, shuffle=True, seed=seed)
        return [next(iter(iterator))["x"].tolist() for _ in range(3)]

    first = orders(0)
    assert first == orders(0)
    assert len({tuple(order) for order in first + orders(1) + orders(2)}) == 9


def test_epoch_loss_is_the_unweighted_mean_of_batch_losses():
    spy = Spy()
    fitted = net(callbacks=[spy], max_epochs=1).fit((data(10), data(5)))
    training = [loss for is_training, loss in spy.losses_ if is_training]
    validation = [loss for is_training, loss in spy.losses_ if not is_training]
    assert (len(training), len(validation)) == (3, 2)
    assert fitted.history[-1, "train_loss"] == pytest.approx(np.mean(training))
    assert fitted.history[-1, "valid_loss"] == pytest.approx(np.mean(validation))


def test_one_cycle_schedule_is_stepped_per_batch():
    """First lr / 25; the maximum at step 0.3 N - 1; last lr / 250,000; momentum against it."""
    spy = Spy()
    schedule = LRScheduler(OneCycleLR, step_every="batch", max_lr=0.1, total_steps=40)
    net(callbacks=[("schedule", schedule), spy], max_epochs=10, batch_size=3).fit((data(), None))
    assert len(spy.lrs_) == 40
    assert spy.lrs_[0] == pytest.approx(0.1 / 25)
    assert np.argmax(spy.lrs_) == 0.3 * 40 - 1
    assert max(spy.lrs_) == pytest.approx(0.1)
    assert spy.lrs_[-1] == pytest.approx(0.1 / 250_000)
    assert (spy.betas_[0], spy.betas_[11]) == (pytest.approx(0.95), pytest.approx(0.85))


def test_gradients_are_clipped_element_by_element():
    class Look(Callback):
        def on_grad_computed(self, net, named_parameters, **kwargs):
            self.gradient_ = torch.cat([p.grad.flatten() for _, p in named_parameters])

    look = Look()
    fitted = net(callbacks=[ClipGradientValue(0.01), look], max_epochs=1)
    fitted.fit((data(value=100.0), None))
    assert look.gradient_.abs().tolist() == pytest.approx([0.01, 0.01])


def selected_epoch(rule, losses):
    """The rule written out: spec of the published code."""
    best, kept = math.inf, None
    for epoch, loss in enumerate(losses):
        if rule == "min_val":
            if loss < best:
                best, kept = loss, epoch
        elif epoch >= 4 and np.mean(losses[epoch - 4 : epoch + 1]) <= best:
            best, kept = loss, epoch
    return kept


class ScriptedValidation(Callback):
    def __init__(self, losses):
        self.losses = losses

    def on_epoch_end(self, net, **kwargs):
        net.history.record("valid_loss", self.losses[len(net.history) - 1])


@pytest.mark.parametrize("rule", ["trailing_mean", "min_val"])
@given(losses=st.lists(st.floats(0.01, 10), min_size=1, max_size=12))
@example(losses=[1.0] * 7)  # a mean as high as the best loss
def test_selected_weights_are_those_of_the_rule(rule, losses):
    """Of a net whose weight is the number of the epoch, from 0."""
    select, weight = SelectWeights(rule), UNTRAINED.module_.encoder.weight
    UNTRAINED.history_ = History()
    select.on_train_begin(UNTRAINED)
    for epoch, loss in enumerate(losses):
        UNTRAINED.history.new_epoch()
        UNTRAINED.history.record("valid_loss", loss)
        weight.data.fill_(epoch)
        select.on_epoch_end(UNTRAINED)
    select.on_train_end(UNTRAINED)
    expected = selected_epoch(rule, losses)
    assert select.epoch_ == expected
    assert weight.item() == (len(losses) - 1 if expected is None else expected)


@pytest.mark.parametrize("rule", ["trailing_mean", "min_val"])
@pytest.mark.parametrize(
    "losses",
    [
        [5.0, 4.0, 3.0],
        [5.0, 4.0, 3.0, 2.0, 1.0, 2.0],
        [1.0, 0.5, 0.4, 0.3, 0.2, 3.0, 0.1, 0.1, 0.1, 0.1, 0.1, 4.0],
    ],
)
def test_a_training_ends_with_the_weights_of_the_rule(rule, losses):
    spy, select = Spy(), SelectWeights(rule)
    callbacks = [ScriptedValidation(losses), select, spy]
    fitted = net(callbacks=callbacks, max_epochs=len(losses)).fit((data(4), None))
    expected = selected_epoch(rule, losses)
    assert select.epoch_ == expected
    weight = fitted.module_.encoder.weight.item()
    assert weight == spy.weights_[-1 if expected is None else expected]


def test_a_smoothly_falling_loss_is_kept_at_the_published_epochs():
    class Kept(SelectWeights):
        def on_epoch_end(self, net, **kwargs):
            before = self.epoch_
            super().on_epoch_end(net, **kwargs)
            if self.epoch_ != before:
                self.epochs_ = [*getattr(self, "epochs_", []), self.epoch_]

    kept = Kept("trailing_mean")
    evaluated = np.repeat(np.linspace(1, 0.5, 7), 2)  # every second epoch, then recorded again
    net(callbacks=[ScriptedValidation(evaluated), kept], max_epochs=12).fit((data(), None))
    assert kept.epochs_ == [4, 7, 9, 11]


def test_validation_is_computed_every_second_epoch_and_recorded_in_all():
    spy = Spy()
    fitted = net(callbacks=[spy], max_epochs=5, validation_every=2).fit((data(8), data(4)))
    recorded = fitted.history[:, "valid_loss"]
    assert recorded[0] == recorded[1] != recorded[2] == recorded[3] != recorded[4]
    assert sum(not training for training, _ in spy.losses_) == 3


def test_deterministic_validation_repeats_its_draws_and_leaves_training_alone():
    def history(**params):
        fitted = net(module__noise=1.0, lr=1e-9, **params).fit((data(4), data(4)))
        return fitted.history[:, ("train_loss", "valid_loss")]

    fixed, published = history(), history(deterministic_validation=False)
    assert len({round(valid, 5) for _, valid in fixed}) == 1
    assert len({round(valid, 5) for _, valid in published}) == 4
    alone = net(module__noise=1.0, lr=1e-9).fit((data(4), None)).history[:, "train_loss"]
    assert [train for train, _ in fixed] == alone
    assert [train for train, _ in published] != alone


@pytest.mark.parametrize("deterministic", [True, False])
def test_dropout_is_on_in_published_validation_only(deterministic):
    class Modes(Callback):
        def on_train_begin(self, net, **kwargs):
            self.modes_ = set()

        def on_batch_end(self, net, training, **kwargs):
            self.modes_.add((training, net.module_.training))

    modes = Modes()
    net(callbacks=[modes], deterministic_validation=deterministic).fit((data(4), data(4)))
    assert modes.modes_ == {(True, True), (False, not deterministic)}


def test_initial_weights_depend_on_the_seed_alone():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = net(seed=5).initialize().module_.encoder.weight
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(first, net(seed=5).initialize().module_.encoder.weight)
    assert not torch.equal(first, net(seed=6).initialize().module_.encoder.weight)


def test_a_loss_of_nan_stops_with_the_epoch():
    poisoned = data(8)
    poisoned.tensors["x"][3] = torch.nan
    with pytest.raises(FloatingPointError, match="train loss became nan in epoch 1.*lr"):
        net().fit((poisoned, None))


def test_an_infinite_loss_stops_with_the_epoch():
    """1e30 is finite, its square is not."""
    with pytest.raises(FloatingPointError, match="train loss became inf in epoch 1.*lr"):
        net(batch_size=8).fit((data(8, 1e30), None))
    with pytest.raises(FloatingPointError, match="valid loss became inf in epoch 1.*lr"):
        net().fit((data(8), data(4, 1e30)))


def test_ctrl_c_is_not_swallowed():
    class Interrupt(Callback):
        def on_batch_end(self, net, **kwargs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        net(callbacks=[Interrupt()]).fit((data(), None))


def test_ctrl_c_between_epochs_is_not_swallowed():
    class Interrupt(Callback):
        def on_epoch_end(self, net, **kwargs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        net(callbacks=[Interrupt()]).fit((data(), None))


def test_early_stopping_stops_and_the_callbacks_after_it_still_run():
    spy = Spy()
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0, sink=lambda text: None)
    fitted = net(callbacks=[stop, spy], max_epochs=50).fit((data(), None))
    assert len(fitted.history) == len(spy.weights_) < 50


def test_bfloat16_autocasts():
    seen = []

    class Look(Linear):
        def forward(self, x):
            seen.append(self.encoder(x).dtype)
            return super().forward(x)

    SSLNet(Look, precision="bfloat16", verbose=0, max_epochs=1).fit((data(), None))
    assert set(seen) == {torch.bfloat16}


def test_pickled_nets_hold_no_data_and_no_generator():
    fitted = net(module__noise=1.0, batch_size=5_000).fit((data(10_000), data(10_000)))
    assert fitted.module_._generator is not None
    pickled = pickle.dumps(fitted)
    assert len(pickled) < 40_000
    assert pickle.loads(pickled).module_._generator is None
