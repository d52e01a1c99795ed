"""Methods that a user writes: what their hooks may return, and what their modules may keep."""

import sys
import types

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse import PulseTransformer, load_pretrained, networks, save_pretrained
from sklearn_pulse.base import BaseEncoderTransformer
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.networks import pool_steps
from sklearn_pulse.objectives import CrossReconstruction
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows
from tests.kills import killed
from tests.toy_method import DenoisedMean, DenoisedMeanTransformer

X, _ = make_windows(24)
TINY = SMALL_ENCODER | {"max_epochs": 4, "batch_size": 8, "random_state": 0}


def method(objective=DenoisedMean, **members):
    """A class of the user's, with hooks of its own."""
    return type("Mine", (DenoisedMeanTransformer,), {"_objective_class": objective, **members})


# --- what modules keep ---


class Warms(DenoisedMean):
    """Raises its noise from step to step, and follows a mean in an attribute and in a buffer."""

    def __init__(self, n_channels, **settings):
        super().__init__(n_channels, **settings)
        self.step = 0
        self.level = torch.zeros(())
        self.register_buffer("seen", torch.zeros(()), persistent=False)
        self.function = len  # which no file holds, and which stays

    def forward(self, x, observed=None):
        self.step += 1
        self.level = 0.9 * self.level + x.mean()
        self.seen += 1
        loss = super().forward(x, observed)
        return loss * (1 + self.step + self.level.abs() + self.seen)


def losses(transformer):
    return [epoch["train_loss"] for epoch in transformer.history_]


def test_what_an_objective_counts_goes_on_after_a_kill(tmp_path):
    whole = method(Warms)(**TINY).fit(X)
    with killed(2):
        method(Warms)(**TINY, checkpoint_dir=tmp_path).fit(X)
    resumed = method(Warms)(**TINY, checkpoint_dir=tmp_path).fit(X)
    assert losses(resumed) == losses(whole)
    assert resumed.net_.module_.step == whole.net_.module_.step > 4


def test_a_file_sets_no_code_of_a_module(tmp_path):
    from sklearn_pulse._training._state_file import read_state, store_state

    with killed(2):
        method(Warms)(**TINY, checkpoint_dir=tmp_path).fit(X)
    (path,) = tmp_path.rglob("checkpoint.pt")
    before = path.read_bytes()
    for module, attribute in (("", "forward"), ("", "_parameters"), ("encoder", "embedding_dim")):
        path.write_bytes(before)
        state = read_state(path) | {"attributes": {module: {attribute: 1}}}
        store_state(path.parent, state, None, rotate=False)
        with pytest.raises(OSError, match=r"to be set|keeps attributes"):
            method(Warms)(**TINY, checkpoint_dir=tmp_path).fit(X)


class Shifts(DenoisedMean):
    """Embeds by a mean that is no buffer."""

    def forward(self, x, observed=None):
        self.level = x.mean() + 3
        return super().forward(x, observed)

    def encode(self, x, observed=None):
        return super().encode(x, observed) + getattr(self, "level", 0)


class ShiftsALittle(Shifts):
    """The same, with embeddings that are all near zero."""

    def encode(self, x, observed=None):
        return 1e-3 * super().encode(x, observed)


@pytest.mark.parametrize("objective", [Shifts, ShiftsALittle])
def test_an_embedding_by_more_than_a_file_holds_is_refused(tmp_path, objective):
    fitted = method(objective)(**TINY).fit(X)
    with pytest.raises(ValueError, match="cannot be saved: .*neither a weight nor a buffer: let"):
        fitted.save_pretrained(tmp_path / "model")
    assert not list(tmp_path.iterdir())


# --- a cell of a notebook that is run again ---


def test_a_class_that_is_defined_again_stands_for_itself(tmp_path, monkeypatch):
    notebook = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", notebook)
    cell = "class OfACell(DenoisedMeanTransformer):\n    pass\n"
    notebook.DenoisedMeanTransformer = DenoisedMeanTransformer
    exec(cell, vars(notebook))
    before = make_pipeline(notebook.OfACell(**TINY), StandardScaler()).fit(X)
    save_pretrained(before, tmp_path / "before")
    exec(cell, vars(notebook))
    assert notebook.OfACell is not type(before[0])
    after = make_pipeline(notebook.OfACell(**TINY), StandardScaler()).fit(X)
    for name, chain in (("old", before), ("new", after)):
        save_pretrained(chain, tmp_path / name)
        loaded = load_pretrained(tmp_path / name)
        assert type(loaded[0]) is notebook.OfACell
        np.testing.assert_array_equal(loaded.transform(X), chain.transform(X))
    assert type(load_pretrained(tmp_path / "before")[0]) is notebook.OfACell
    loaded = BaseEncoderTransformer.from_pretrained(tmp_path / "before" / "step0")
    assert type(loaded) is notebook.OfACell


# --- hooks ---


@pytest.mark.parametrize("name", ["RMSprop", "NAdam", "Adagrad", "Adadelta", "SGD", "Adamax"])
def test_optimisers_of_torch(name):
    fitted = method(_optimizer=getattr(torch.optim, name))(**TINY).fit(X)
    assert type(fitted.net_.optimizer_).__name__ == name
    assert fitted.net_.optimizer_.param_groups[0]["weight_decay"] == fitted.weight_decay


def test_an_optimiser_without_weight_decay_says_so():
    mine = method(_optimizer=torch.optim.Rprop)
    assert mine(**TINY, weight_decay=0.0).fit(X).n_iter_ == 4
    with pytest.raises(ValueError, match="weight_decay=.* but Rprop decays no weights: set"):
        mine(**TINY, weight_decay=0.1).fit(X)


def test_a_number_of_updates_of_its_own():
    mine = method(_n_updates=lambda self, train: 7)(**TINY | {"max_epochs": 2}).fit(X)
    assert mine.net_.optimizer_.state_dict()["state"][0]["step"] == 7


def test_rows_to_validate_on_may_be_a_mask():
    def hold_out(self, y, groups, seed):
        held = np.arange(len(y)) >= 18
        return ~held, held

    def hold_out_numbers(self, y, groups, seed):
        return list(range(18)), list(range(18, len(y)))

    by_mask, by_number = (method(_hold_out=hook) for hook in (hold_out, hold_out_numbers))
    expected = by_number(**TINY).fit_transform(X)
    np.testing.assert_array_equal(by_mask(**TINY).fit_transform(X), expected)


@pytest.mark.parametrize("shape", [(1, 4), (24, 1), (24, 5)])
def test_features_of_another_shape_are_refused(shape):
    class Broken(StatisticsTransformer):
        def _features(self, *args, **kwargs):
            return np.zeros(shape, dtype=np.float32)

    with pytest.raises(TypeError, match=r"results of 24 windows have the shape .* and must have"):
        Broken().fit_transform(X)


def test_an_encoder_without_steps_is_told_what_reads_them():
    class Own(CrossReconstruction):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            self.encoder = networks.ConvEncoder(X.shape[2], embedding_dim=8)

    mine = type("Mine", (PulseTransformer,), {"_objective_class": Own})
    with pytest.raises(TypeError, match="reads every step .*ConvEncoder encodes none: derive the"):
        mine(**SMALL_PULSE | {"embedding_dim": 8}).fit(X)


# --- networks in a program of one's own ---


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(
    "network",
    [
        networks.SystemEncoder(2, hidden_dim=8, embedding_dim=8, depth=2),
        networks.PatchEncoder(2, 48, channel_dim=8, hidden_dim=8, depth=1),
        networks.Head(2, 3),
    ],
    ids=lambda network: type(network).__name__,
)
@pytest.mark.parametrize("n_channels", [1, 3, 12])
def test_another_number_of_channels_is_refused(network, gradients, n_channels):
    with torch.set_grad_enabled(gradients):
        with pytest.raises(ValueError, match=rf" {n_channels} .*reads 2: .*time|reads 2: .*steps"):
            network(torch.ones(4, 48, n_channels))
        assert torch.isfinite(network(torch.ones(4, 48, 2))).all()


def test_another_pooling_is_refused():
    with pytest.raises(ValueError, match="pooling must be 'max' or 'mean', got 'Max'"):
        networks.SystemEncoder(2, 8, 8, 2, "Max")(torch.ones(4, 48, 2))
    with pytest.raises(ValueError, match="pooling must be 'max' or 'mean', got 'median'"):
        pool_steps(torch.ones(4, 48, 2), "median")


@pytest.mark.parametrize("name", ["AdamW", "Adafactor", "LBFGS", "ASGD", "Rprop"])
def test_a_killed_training_resumes_with_any_optimiser(name, tmp_path):
    make = getattr(torch.optim, name, None)
    if make is None:
        pytest.skip(f"this version of torch has no {name}")
    settings = TINY | {"max_epochs": 3, "weight_decay": 0.0, "random_state": 0}
    mine = method(_optimizer=make)
    expected = mine(**settings).fit(X)
    with killed(2):
        mine(**settings, checkpoint_dir=tmp_path).fit(X)
    resumed = mine(**settings, checkpoint_dir=tmp_path).fit(X)
    np.testing.assert_array_equal(resumed.transform(X), expected.transform(X))


def test_betas_of_an_optimiser_without_them():
    mine = method(_optimizer=torch.optim.SGD, betas=(0.9, 0.99), schedule="constant")
    with pytest.raises(ValueError, match="betas=.* but SGD has none: set betas to None"):
        mine(**TINY).fit(X)


class Detaches(DenoisedMean):
    """Returns a loss that no weight can be trained by."""

    def forward(self, x, observed=None):
        return super().forward(x, observed).detach()


def test_a_loss_without_a_gradient_is_not_blamed_on_frozen_weights():
    with pytest.raises(TypeError, match="Detaches returns a loss without a gradient, .* none"):
        method(Detaches)(**TINY).fit(X)
