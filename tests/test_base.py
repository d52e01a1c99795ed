"""Contracts of the base classes: one signature per hook, and a fit that is whole or absent."""

import copy
import inspect
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from skorch.callbacks import Callback
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from sklearn_pulse import FineTuneClassifier, FineTuneRegressor, PulseTransformer, baselines
from sklearn_pulse.base import (
    BaseSSLTransformer,
    BaseWindowClassifier,
    BaseWindowRegressor,
    TrainedEmbedder,
    WindowEmbedder,
)
from sklearn_pulse.baselines import (
    PatchTSTTransformer,
    REBARTransformer,
    SimMTMTransformer,
    SupervisedClassifier,
)
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.objectives import CrossReconstruction, Objective
from sklearn_pulse.preprocessing import Resampler
from tests.helpers import SMALL, make_windows, small
from tests.toy_method import DenoisedMean, DenoisedMeanTransformer

X, y = make_windows()


def descendants(cls):
    return {cls}.union(*(descendants(sub) for sub in cls.__subclasses__()))


def test_a_hook_has_the_same_signature_everywhere():
    assert baselines.__all__  # imports every method, so that it is among the descendants
    assert len(descendants(TrainedEmbedder)) > 10
    wrong = []
    for cls in descendants(WindowEmbedder):
        for name, method in vars(cls).items():
            if not name.startswith("_") or name.startswith("__") or not inspect.isfunction(method):
                continue
            for base in cls.__mro__[1:]:
                inherited = vars(base).get(name)
                if inspect.isfunction(inherited):
                    expected = list(inspect.signature(inherited).parameters)
                    if list(inspect.signature(method).parameters) != expected:
                        wrong.append(f"{cls.__name__}.{name}: {expected} in {base.__name__}")
    assert not wrong


def test_facts_of_a_method_have_a_default_on_the_base():
    facts = ("schedule", "betas", "max_updates", "drop_last", "patience", "warm_start")
    for cls in descendants(TrainedEmbedder):
        for name in facts:
            assert hasattr(cls, name), (cls, name)


class Interrupt(Callback):
    """Raise as Ctrl-C does, in the second epoch."""

    def on_epoch_begin(self, net, **kwargs):
        if len(net.history) == 2:
            raise KeyboardInterrupt


TRAINED = [
    small(PulseTransformer),
    small(REBARTransformer),
    small(SupervisedClassifier),
    small(FineTuneClassifier),
    small(FineTuneRegressor),
]


@pytest.mark.parametrize("estimator", TRAINED, ids=lambda estimator: type(estimator).__name__)
def test_a_fit_that_fails_leaves_the_earlier_fit(estimator):
    fitted = estimator.set_params(callbacks=None).fit(X, y)
    before, embedding = dict(vars(fitted)), fitted.transform(X)
    other = np.repeat(X[:, :, :1], 3, axis=2)  # three channels, other labels
    other_labels = np.arange(len(X)) % 4
    infinite = other.copy()
    infinite[-1, 0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fitted.fit(infinite, other_labels)
    fitted.set_params(callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(other, other_labels)
    after = vars(fitted) | {"callbacks": None}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] or after[name] == before[name] for name in before)
    np.testing.assert_array_equal(fitted.transform(X), embedding)


@pytest.mark.parametrize("estimator", TRAINED, ids=lambda estimator: type(estimator).__name__)
def test_an_interrupted_first_fit_leaves_the_estimator_unfitted(estimator):
    fresh = small(type(estimator), callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    with pytest.raises(NotFittedError):
        fresh.transform(X)


class Preset(PulseTransformer):
    """PULSE with settings of a user, who exposes some parameters."""

    lr_of_the_day = 1e-2

    def __init__(self, encoder=None, checkpoint_dir=None):
        params = {name: SMALL[name] for name in ("gru_hidden_dim", "max_epochs", "random_state")}
        super().__init__(
            encoder=encoder, checkpoint_dir=checkpoint_dir, lr=self.lr_of_the_day, **params
        )


class PresetClassifier(FineTuneClassifier):
    """Fine-tuning with settings of a user."""

    def __init__(self, pretrained=None):
        super().__init__(pretrained, max_epochs=1, random_state=0)


def test_a_subclass_may_hide_parameters(tmp_path, monkeypatch):
    pulse = Preset(checkpoint_dir=str(tmp_path / "runs")).fit(X)
    pulse.save_pretrained(tmp_path / "pulse")
    loaded = Preset.from_pretrained(tmp_path / "pulse")
    np.testing.assert_array_equal(loaded.transform(X), pulse.transform(X))
    assert PresetClassifier(FrozenEstimator(loaded)).fit(X, y).predict(X).shape == y.shape
    statistics = StatisticsTransformer().fit(X)
    assert len(Preset(FrozenEstimator(statistics)).fit(X).transform(X)) == len(X)
    # A hidden setting makes another run.
    monkeypatch.setattr(Preset, "lr_of_the_day", 1e-3)
    again = Preset(checkpoint_dir=str(tmp_path / "runs")).fit(X)
    assert again.history_[-1]["train_loss"] != pulse.history_[-1]["train_loss"]


@pytest.mark.parametrize(
    ("name", "value"), [("bag_pooling", "median"), ("input_layout", "tnc"), ("num_threads", 0)]
)
def test_what_is_set_after_fit_is_checked(name, value):
    pulse = small(PulseTransformer).fit(X).set_params(**{name: value})
    for method in (pulse.transform, pulse.reconstruct, pulse.score_samples):
        with pytest.raises(ValueError, match=f"{name} must be"):
            method(X)


@pytest.mark.parametrize("cls", [PulseTransformer, FineTuneClassifier])
def test_the_remedy_of_a_loss_that_explodes_names_parameters_of_the_class(cls):
    with pytest.raises(FloatingPointError, match="loss became .* in epoch") as caught:
        small(cls, lr=1e30, validation_fraction=0.25).fit(X, y)
    words = re.findall(r"\w+", str(caught.value))
    remedies = {word for word in words if "_" in word or word == "lr"}
    assert "lr" in remedies
    assert remedies <= set(cls().get_params())


@pytest.mark.parametrize("groups", [None, np.arange(20) // 2])
@pytest.mark.parametrize("cls", [PulseTransformer, FineTuneClassifier])
def test_a_validation_part_may_be_a_fraction_of_any_type(cls, groups):
    losses = [
        small(cls, validation_fraction=share).fit(X, y, groups=groups).history_[-1]["valid_loss"]
        for share in (0.25, Fraction(1, 4), np.float32(0.25))
    ]
    assert losses[0] == losses[1] == losses[2]


def test_a_validation_part_that_leaves_nothing_is_named():
    pulse = small(PulseTransformer, validation_fraction=0.9)
    with pytest.raises(ValueError, match=r"validation_fraction=0.9 leaves nothing .*pass X_val"):
        pulse.fit(X, groups=np.arange(len(X)) % 2)


class WritesToItsBatch(DenoisedMean):
    def forward(self, x, observed=None):
        return super().forward(x.mul_(2), observed)

    def encode(self, x, observed=None):
        return super().encode(x.clamp_(min=0), observed)


class WritesToItsBatchTransformer(DenoisedMeanTransformer):
    _objective_class = WritesToItsBatch


def test_what_a_method_writes_to_its_batch_is_not_written_to_X():
    windows, held_out = X.astype(np.float32), X[:8].astype(np.float32)  # as networks read them
    before = windows.copy()
    method = WritesToItsBatchTransformer(max_epochs=1, batch_size=len(X), random_state=0)
    method.fit(windows, X_val=held_out).transform(windows)
    np.testing.assert_array_equal(windows, before)
    np.testing.assert_array_equal(held_out, before[:8])


@pytest.mark.parametrize(
    "method",
    [
        small(SimMTMTransformer),  # its last epoch is not validated
        small(PatchTSTTransformer, dropout=0.5, validation_fraction=0.0),
        FineTuneClassifier(FrozenEstimator(small(SimMTMTransformer).fit(X)), max_epochs=1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_the_fitted_encoder_embeds_as_transform_does(method):
    encoder = method.fit(X, y).encoder_
    with torch.no_grad():
        embedding = encoder(torch.from_numpy(X.astype(np.float32)))
    np.testing.assert_allclose(method.transform(X), embedding, rtol=1e-4, atol=1e-5)
    assert not encoder.training


def test_both_nets_of_rebar_end_without_dropout():
    rebar = small(REBARTransformer, validation_fraction=0.0).fit(X)
    assert not rebar.net_.module_.training
    assert not rebar.cross_attention_net_.module_.training


class LearnsFromModule(DenoisedMean):
    def __init__(self, n_channels, *, noise, same, **params):
        super().__init__(n_channels, noise=1.0, **params)
        self.change, self.same = noise, same

    def forward(self, x, observed=None):
        return super().forward(self.change(x), observed)


class LearnsFromModuleTransformer(DenoisedMeanTransformer):
    _objective_class = LearnsFromModule
    _objective_names = (*DenoisedMeanTransformer._objective_names, "same")
    same = property(lambda self: self.noise)

    def _check_params(self):
        super(DenoisedMeanTransformer, self)._check_params()


def test_a_module_that_is_a_parameter_is_not_trained_itself(tmp_path):
    module = torch.nn.Linear(2, 2)
    before = copy.deepcopy(module.state_dict())
    method = small(LearnsFromModuleTransformer, noise=module)
    embedding = method.fit(X).transform(X)
    assert not torch.equal(method.net_.module_.change.weight, module.weight)
    assert method.net_.module_.same is method.net_.module_.change
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    np.testing.assert_array_equal(clone(method).fit(X).transform(X), embedding)
    np.testing.assert_array_equal(method.fit(X).transform(X), embedding)
    # It does not warn before, as if the rest were saved.
    with pytest.raises(ValueError, match="A file cannot hold the former: pickle"):
        method.save_pretrained(tmp_path / "model")


class OwnObjective(DenoisedMean):
    """An objective of a user whose loss or embedding may have another form."""

    loss = encoded = staticmethod(lambda value: value)

    def forward(self, x, observed=None):
        return self.loss(super().forward(x, observed))

    def encode(self, x, observed=None):
        rows = super().encode(x, observed)
        return rows if self.training else self.encoded(rows)


def own_method(**changes):
    """Return a method of a user's own, with some changes of its objective."""
    objective = type("OwnObjective", (OwnObjective,), changes)
    method = type("Own", (DenoisedMeanTransformer,), {"_objective_class": objective})
    return small(method, max_epochs=1, validation_fraction=0.0)


def without(name):
    """Return a method whose objective lacks its encoder, or whose encoder lacks an attribute."""

    def init(self, n_channels, **params):
        OwnObjective.__init__(self, n_channels, **params)
        delattr(self if name == "encoder" else self.encoder, name)

    def forward(self, x, observed=None):
        return self.head.weight.square().mean()  # a training would not miss it

    return own_method(__init__=init, forward=forward)


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        (lambda loss: loss.repeat(3), r"shape \(3,\)"),
        (lambda loss: None, "None"),
        (lambda loss: 1.0, r"1\.0"),
    ],
    ids=["a vector", "nothing", "a number"],
)
def test_an_objective_without_a_scalar_loss_is_told_so(loss, found):
    with pytest.raises(TypeError, match=f"^OwnObjective must return the loss .* got {found}: "):
        own_method(loss=staticmethod(loss)).fit(X)


@pytest.mark.parametrize(
    ("encoded", "found"),
    [
        (lambda rows: (rows, rows), "tuple"),
        (lambda rows: rows[:, 1:], r"\(\d+, 7\)"),
        (lambda rows: rows[:, None], r"\(\d+, 1, 8\)"),
    ],
    ids=["a pair", "another width", "steps"],
)
def test_an_objective_without_a_row_per_window_is_told_so(encoded, found):
    fitted = own_method(encoded=staticmethod(encoded)).fit(X)
    with pytest.raises(TypeError, match=rf"^OwnObjective.encode must return .* got {found}: "):
        fitted.transform(X)


def test_an_encoder_without_a_width_is_told_so():
    fitted = own_method().fit(X)
    del fitted.encoder_.embedding_dim
    with pytest.raises(TypeError, match="encoder SystemEncoder has no attribute embedding_dim: "):
        fitted.transform(X)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("encoder", "^OwnObjective has no attribute encoder: set it in __init__"),
        ("embedding_dim", "^the encoder SystemEncoder has no attribute embedding_dim: "),
    ],
)
def test_without_the_width_of_an_embedding_no_training_begins(name, message):
    with pytest.raises(TypeError, match=message):
        without(name).fit(X)


def test_an_objective_without_a_loss_is_told_so():
    with pytest.raises(TypeError, match="^OwnObjective must define forward.* loss of a"):
        own_method(forward=Objective.forward).fit(X)


def test_a_method_without_an_objective_is_told_so():
    spelled_out = {"__init__": DenoisedMeanTransformer.__init__, "noise": 1.0}
    method = type("Own", (BaseSSLTransformer,), spelled_out)
    with pytest.raises(TypeError, match="^Own names no objective: set _objective_class"):
        method().fit(X)


@pytest.mark.parametrize("base", [BaseWindowClassifier, BaseWindowRegressor])
def test_parameters_that_an_estimator_with_labels_left_out_are_listed(base):
    def init(self):
        vars(self).update(DenoisedMeanTransformer().get_params(), select="last")

    own = {BaseWindowClassifier: ["class_weight", "unlabeled_label"]}.get(base, [])
    with pytest.raises(
        TypeError, match=re.escape(f"lacks the parameters {['head_hidden_dim', *own]}")
    ):
        type("Own", (base,), {"__init__": init})().fit(X, y)


def test_names_that_are_one_text_are_told_to_be_a_tuple():
    spelled_out = {"_objective_names": ("embedding_dim")}  # a comma was forgotten
    method = type("Own", (DenoisedMeanTransformer,), spelled_out)
    with pytest.raises(TypeError, match=r"is the text 'embedding_dim': write a tuple, \('emb"):
        small(method).fit(X)


def test_parameters_that_are_not_passed_to_the_objective_are_listed():
    """It has defaults of its own, with which the method would be trained."""

    class WithDefaults(DenoisedMean):
        def __init__(self, n_channels, *, noise=0.5, **params):
            super().__init__(n_channels, noise=noise, **params)

    names = tuple(name for name in DenoisedMeanTransformer._objective_names if name != "noise")
    own = {"_objective_class": WithDefaults, "_objective_names": names}
    method = type("Own", (DenoisedMeanTransformer,), own)
    with pytest.raises(TypeError, match=r"^Own does not pass \['noise'\] to WithDefaults, which"):
        small(method).fit(X)


def test_an_objective_of_another_base_is_refused():
    class Plain(torch.nn.Module):
        def __init__(self, n_channels, *, seed=None, **params):
            super().__init__()
            self.encoder = torch.nn.Linear(n_channels, 2)

    method = type("Own", (DenoisedMeanTransformer,), {"_objective_class": Plain})
    with pytest.raises(TypeError, match="^Plain is no objective: derive it from .*Objective"):
        small(method).fit(X)


def test_layers_without_sizes_are_refused():
    class Lazy(CrossReconstruction):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            self.parts = torch.nn.Sequential(torch.nn.LazyLinear(3))

    mine = type("Mine", (PulseTransformer,), {"_objective_class": Lazy})
    with pytest.raises(TypeError, match=r"^parts\.0\.weight of Lazy takes its size from .*Linear"):
        small(mine).fit(X)


def test_a_rule_of_selection_that_is_unknown_is_refused():
    rules = {"_selections": {"min_val": "lowest", "last": None}}
    method = type("Own", (DenoisedMeanTransformer,), rules)
    with pytest.raises(TypeError, match="maps 'min_val' to 'lowest': name None or one of 'trail"):
        small(method, select="min_val").fit(X)


@pytest.mark.parametrize(
    "base", [PulseTransformer, FineTuneClassifier, StatisticsTransformer, Resampler]
)
def test_a_subclass_spells_out_what_it_passes_on(base):
    """A clone would have the defaults of what is passed on."""

    def init(self, *, penalty=0.1, **params):
        base.__init__(self, **params)
        self.penalty = penalty

    with pytest.raises(TypeError, match=r"^Own.__init__ takes \*\* parameters.*clone.*spell out"):
        type("Own", (base,), {"__init__": init})


class Penalised(CrossReconstruction):
    def forward(self, x, observed=None):
        return super().forward(x, observed) + self.encode(x, observed).square().mean()


class Penalty:
    def forward(self, x, observed=None):
        return super().forward(x, observed) + self.encode(x, observed).square().mean()


class PenalisedBeside(Penalty, CrossReconstruction):
    """An objective whose loss comes from another class than its base."""


class PenalisedValidation(CrossReconstruction):
    def validation_loss(self, x, observed=None):
        return super().validation_loss(x=x, observed=observed) + 1.0


class Divided(Penalised):
    indivisible = None

    def forward(self, x, observed=None):
        return CrossReconstruction.forward(self, x, observed)


@pytest.mark.parametrize("objective", [Penalised, PenalisedBeside, PenalisedValidation])
def test_another_loss_does_not_inherit_that_a_batch_can_be_divided(objective):
    """Each process would add the penalty of the whole batch."""
    method = type("Own", (PulseTransformer,), {"_objective_class": objective})
    with pytest.raises(ValueError, match="Own cannot train in several .* set distributed=False"):
        small(method, distributed=True).fit(X)
    assert small(method, distributed="auto").fit(X).history_  # nobody launched others
    assert Divided.indivisible is None
    assert PenalisedBeside.replayed == Penalised.replayed == "never"


class Parametrized(DenoisedMean):
    """An objective whose encoder is a user's module with torch's parametrizations."""

    def __init__(self, n_channels, **params):
        super().__init__(n_channels, **params)
        weight_norm(self.encoder.input)
        for block in self.encoder.blocks:
            spectral_norm(block.conv1)


class ParametrizedTransformer(DenoisedMeanTransformer):
    _objective_class = Parametrized


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda fitted: pickle.loads(pickle.dumps(fitted))],
    ids=["deepcopy", "pickle"],
)
def test_parametrized_modules_are_copied(copied, tmp_path):
    fitted = small(ParametrizedTransformer, warm_start=True, select="last").fit(X)
    twin = copied(copied(fitted))
    np.testing.assert_array_equal(twin.transform(X), fitted.transform(X))
    assert list(twin.encoder_.state_dict()) == list(fitted.encoder_.state_dict())
    twin.save_pretrained(tmp_path / "model")
    loaded = ParametrizedTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(twin.fit(X).transform(X), fitted.fit(X).transform(X))
    parametrize.remove_parametrizations(twin.encoder_.input, "weight")
    assert type(twin.encoder_.input).__name__ == "AlignedLinear"
