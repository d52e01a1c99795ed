import enum
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback
from torch import nn

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.base import BaseEncoderTransformer, BaseSSLTransformer
from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state
from sklearn_pulse.networks import SystemEncoder
from sklearn_pulse.objectives import Objective
from sklearn_pulse.plotting import ReconstructionDisplay
from tests.helpers import SMALL_ENCODER
from tests.persistence.helpers import FILES, X, pulse, read_config, same_state, write_config


class StopsAtOnce(Callback):
    def on_train_begin(self, net, **kwargs):
        net.stop_training_ = True


def through(estimator, tmp_path, **options):
    estimator.save_pretrained(tmp_path / "model")
    return type(estimator).from_pretrained(tmp_path / "model", **options)


class Pooling(str, enum.Enum):  # noqa: UP042 - a StrEnum turns into its value by itself
    MEAN = "mean"


@pytest.fixture(scope="module")
def fitted():
    return pulse(max_epochs=6).fit(X)


@pytest.fixture(scope="module")
def loaded(fitted, tmp_path_factory):
    return through(fitted, tmp_path_factory.mktemp("home"))


def test_same_bits_parameters_and_weights(fitted, loaded):
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    assert loaded.get_params() == fitted.get_params() | {"num_threads": None}  # it is local
    assert same_state(loaded, fitted)


def test_fitted_attributes_come_back(fitted, loaded):
    names = ("n_timesteps_in_", "n_channels_in_", "n_features_in_", "n_iter_")
    for name in names:
        assert getattr(loaded, name) == getattr(fitted, name)
    assert set(vars(loaded)) == set(vars(fitted))
    np.testing.assert_array_equal(loaded.get_feature_names_out(), fitted.get_feature_names_out())


def test_history_without_durations(fitted, loaded):
    without = [{k: v for k, v in epoch.items() if k != "dur"} for epoch in fitted.history_]
    assert loaded.history_ == without
    assert len(without) == 6
    assert {"epoch", "train_loss", "valid_loss"} <= set(without[-1])


def test_the_selected_epoch_comes_back(fitted, loaded):
    epochs = [e.selected_epoch_ for e in (fitted, loaded)]
    assert epochs[0] == epochs[1] == 5  # from 1


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), [1], object()], ids=["nan", "inf", "list", "object"]
)
def test_what_a_callback_recorded(tmp_path, value):
    fitted = pulse().fit(X)
    fitted.net_.history.record("mine", value)
    restored = through(fitted, tmp_path)
    if isinstance(value, float):
        assert repr(restored.history_[-1]["mine"]) == repr(value)
    else:
        assert "mine" not in restored.history_[-1]


def test_clone_and_pickle(fitted, loaded):
    np.testing.assert_array_equal(clone(loaded).fit_transform(X), fitted.transform(X))
    restored = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


def test_warm_start_continues(tmp_path):
    fitted = pulse(warm_start=True).fit(X)
    restored = through(fitted, tmp_path)
    expected = fitted.fit(X).transform(X)
    np.testing.assert_array_equal(restored.fit(X).transform(X), expected)
    assert not np.array_equal(expected, pulse().fit_transform(X))
    for model in (restored, through(restored, tmp_path / "again")):
        assert [epoch["fit"] for epoch in model.history_] == [1, 1, 2, 2]
        assert model.n_iter_ == 2


def test_a_last_fit_that_ran_no_epoch(tmp_path):
    fitted = pulse(warm_start=True).fit(X).set_params(callbacks=[StopsAtOnce]).fit(X)
    fitted.set_params(callbacks=None)
    restored = through(fitted, tmp_path)
    assert len(restored.history_) == 2
    assert restored.n_iter_ == fitted.n_iter_ == 0


def test_a_file_that_does_not_say_which_epochs_are_earlier(tmp_path):
    fitted = pulse(warm_start=True).fit(X)
    fitted.set_params(max_epochs=1).fit(X[:12]).save_pretrained(tmp_path)
    config = read_config(tmp_path)
    del config["training"]["n_earlier"]
    write_config(tmp_path, config)
    assert PulseTransformer.from_pretrained(tmp_path).n_iter_ == 1


def test_saved_again_it_is_the_same_folder(fitted, loaded, tmp_path):
    for name, estimator in {"first": fitted, "again": fitted, "second": loaded}.items():
        estimator.save_pretrained(tmp_path / name)
    for file in FILES:
        contents = {(tmp_path / name / file).read_bytes() for name in ("first", "again", "second")}
        assert len(contents) == 1


def test_a_table_with_names(tmp_path):
    frame = pd.DataFrame(X[:, :, 0]).rename(columns=lambda i: f"step {i}")
    fitted = pulse().fit(frame)
    restored = through(fitted, tmp_path)
    np.testing.assert_array_equal(restored.feature_names_in_, fitted.feature_names_in_)
    assert restored.feature_names_in_.dtype == fitted.feature_names_in_.dtype
    np.testing.assert_array_equal(restored.transform(frame), fitted.transform(frame))
    with pytest.raises(ValueError, match="[Ff]eature names"):
        restored.transform(frame.rename(columns={"step 0": "other"}))


def test_a_table_stays_a_table_and_windows_stay_windows(fitted, tmp_path):
    table = through(pulse().fit(X[:, :, 0]), tmp_path / "table")
    with pytest.raises(ValueError, match="9 features, but PulseTransformer is expecting 16"):
        table.transform(X[:, :9, 0])
    windows = through(pulse().fit(X[:, :, :1]), tmp_path / "windows")
    assert windows.transform(X[:, :9, 0]).shape == (20, 8)


def test_layout_bags_missing_steps_and_pooling(tmp_path):
    holes = X.copy()
    holes[3, 5:] = np.nan
    bags = holes.reshape(5, 4, 16, 2).swapaxes(2, 3)
    fitted = pulse(input_layout="nct", bag_pooling="max", pooling="mean").fit(bags)
    np.testing.assert_array_equal(through(fitted, tmp_path).transform(bags), fitted.transform(bags))


def test_a_loaded_model_draws_the_same_reconstruction(fitted, loaded):
    import matplotlib.pyplot as plt

    displays = [ReconstructionDisplay.from_estimator(e, X) for e in (fitted, loaded)]
    plt.close("all")
    for start in (0, 4):
        np.testing.assert_array_equal(*(display.predictions[start] for display in displays))


def test_published_weights_come_back(fitted, tmp_path):
    published = from_reference_checkpoint(to_reference_state(fitted))
    restored = through(published, tmp_path)
    assert restored.n_timesteps_in_ is None
    assert restored.n_iter_ == 0
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))


def test_in_a_pipeline(fitted, tmp_path):
    fitted.save_pretrained(tmp_path / "a" / "b")  # parents are made
    restored = PulseTransformer.from_pretrained(str(tmp_path / "a" / "b"), device="cpu")
    assert restored.device == "cpu"
    np.testing.assert_array_equal(make_pipeline(restored).transform(X), fitted.transform(X))


def test_an_impossible_device_is_not_blamed_on_the_file(fitted, tmp_path):
    fitted.save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match="^device must be"):
        PulseTransformer.from_pretrained(tmp_path / "model", device="abacus")


@pytest.mark.parametrize("base", [BaseEncoderTransformer, BaseSSLTransformer, PulseTransformer])
def test_a_base_returns_what_was_saved(fitted, tmp_path, base):
    fitted.save_pretrained(tmp_path / "model")
    assert type(base.from_pretrained(tmp_path / "model")) is PulseTransformer


def test_another_class_is_refused(fitted, tmp_path):
    fitted.save_pretrained(tmp_path / "pulse")
    with pytest.raises(ValueError, match="call PulseTransformer.from_pretrained"):
        RandomEncoderTransformer.from_pretrained(tmp_path / "pulse")
    RandomEncoderTransformer(**SMALL_ENCODER).fit(X).save_pretrained(tmp_path / "random")
    message = "it is a RandomEncoderTransformer, which cannot .*: pass one of .*Pulse"
    with pytest.raises(ValueError, match=message):
        BaseSSLTransformer.from_pretrained(tmp_path / "random")


# --- methods to come ---


class TiedObjective(Objective):
    """Two names for one weight, a weight that is not contiguous, and buffers."""

    def __init__(self, n_channels, *, embedding_dim=8, seed=0):
        super().__init__(seed)
        self.encoder = SystemEncoder(n_channels, 8, embedding_dim, 3)
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.turned = nn.Parameter(torch.randn(3, 4).T)
        self.register_buffer("mask", torch.full((2, 2), -torch.inf))
        self.register_buffer("count", torch.tensor(7))


class TiedTransformer(RandomEncoderTransformer):
    _objective_class = TiedObjective

    def fit(self, X, y=None):
        self.scale_ = np.array([1.5, np.inf])
        self.names_ = ("a", None, [1, True])
        return super().fit(X)

    def _objective_params(self):
        return {"embedding_dim": self.embedding_dim}


class ScaledTransformer(RandomEncoderTransformer):
    def fit(self, X, y=None):
        super().fit(X)
        self.spread_ = self.kept(super().transform(X).std(dtype=np.float64))
        return self

    def transform(self, X):
        return super().transform(X) / (self.spread_ if hasattr(self, "spread_") else 1.0)

    def kept(self, spread):
        return spread


class ScaledByArrayTransformer(ScaledTransformer):
    def kept(self, spread):
        return np.array([spread])


@pytest.mark.skipif(np.__version__ < "2", reason="a float64 of NumPy 1 does not count")
def test_a_number_of_numpy_does_not_change_the_type_of_the_embedding(tmp_path):
    """Beside float32, a float64 of NumPy counts, and a float of Python does not."""
    scaled = ScaledTransformer(**SMALL_ENCODER, random_state=0).fit(X)
    with pytest.raises(ValueError, match="embeds in float32, and not in float64.*as an array"):
        scaled.save_pretrained(tmp_path / "number")
    by_array = ScaledByArrayTransformer(**SMALL_ENCODER, random_state=0).fit(X)
    restored = through(by_array, tmp_path)
    np.testing.assert_array_equal(restored.transform(X), by_array.transform(X), strict=True)


def test_tied_weights_buffers_and_other_attributes(tmp_path):
    fitted = TiedTransformer(**SMALL_ENCODER, random_state=0).fit(X)
    restored = through(fitted, tmp_path)
    assert same_state(restored, fitted)
    module = restored.net_.module_
    assert module.first.weight is module.second.weight
    np.testing.assert_array_equal(restored.scale_, fitted.scale_)
    assert restored.scale_.dtype == np.float64
    assert restored.names_ == fitted.names_
    assert [type(item) for item in restored.names_[2]] == [int, bool]


def test_what_a_file_cannot_hold_is_named(tmp_path, monkeypatch):
    fitted = TiedTransformer(**SMALL_ENCODER).fit(X)
    fitted.other_ = nn.Identity()
    with pytest.raises(ValueError, match="attribute other_, and a file cannot hold a Identity"):
        fitted.save_pretrained(tmp_path / "model")
    del fitted.other_
    monkeypatch.setattr(TiedObjective, "get_extra_state", lambda self: {"state": 1})
    with pytest.raises(ValueError, match="'_extra_state', a dict instead of a tensor"):
        fitted.save_pretrained(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_two_classes_of_one_name(tmp_path):
    TiedTransformer(**SMALL_ENCODER).fit(X).save_pretrained(tmp_path / "model")
    twin = type("TiedTransformer", (RandomEncoderTransformer,), {"__module__": "another"})
    with pytest.raises(ValueError, match="2 classes are named TiedTransformer"):
        BaseEncoderTransformer.from_pretrained(tmp_path / "model")
    del twin


# --- devices ---


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("here", "there"), [("cuda", "cpu"), ("cpu", "cuda")])
@pytest.mark.usefixtures("whole_float32")
def test_from_one_device_to_the_other(tmp_path, here, there):
    fitted = pulse(device=here).fit(X)
    restored = through(fitted, tmp_path, device=there)
    assert torch.device(restored.net_.device).type == there
    assert {weight.device.type for weight in restored.net_.module_.parameters()} == {there}
    np.testing.assert_allclose(restored.transform(X), fitted.transform(X), atol=1e-4)
    back = through(restored, tmp_path / "back", device=here)
    np.testing.assert_array_equal(back.transform(X), fitted.transform(X))
    assert torch.device(through(fitted, tmp_path / "auto").net_.device).type == "cuda"
    for file in FILES:
        assert here not in (tmp_path / "model" / file).read_text("latin1").replace("+cpu", "")


def test_the_files_hold_no_device_and_no_path(tmp_path):
    params = {"device": torch.device("cpu"), "checkpoint_dir": tmp_path / "secret"}
    fitted = pulse(**params).fit(X)
    restored = through(fitted, tmp_path)
    for file in FILES:
        content = (tmp_path / "model" / file).read_text("latin1")
        for word in ("secret", "checkpoint_dir", "device", str(tmp_path)):
            assert word not in content
    assert (restored.device, restored.checkpoint_dir) == ("auto", None)
    assert not {"device", "checkpoint_dir"} & set(read_config(tmp_path / "model")["parameters"])


def test_a_fresh_process_finds_the_class_of_a_saved_baseline(tmp_path):
    """The package imports its estimators lazily; a saved class is found all the same."""
    encoder = RandomEncoderTransformer(**SMALL_ENCODER, random_state=0)
    encoder.fit(X).save_pretrained(tmp_path / "m")
    code = (
        "from sklearn_pulse.base import BaseEncoderTransformer\n"
        f"model = BaseEncoderTransformer.from_pretrained({str(tmp_path / 'm')!r})\n"
        "print(type(model).__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "RandomEncoderTransformer"


def test_a_member_of_an_enumeration_of_strings_comes_back_as_its_value(tmp_path):
    fitted = RandomEncoderTransformer(**SMALL_ENCODER, pooling=Pooling.MEAN, random_state=0).fit(X)
    restored = through(fitted, tmp_path)
    assert type(restored.pooling) is str and restored.pooling == "mean"
    np.testing.assert_array_equal(restored.transform(X), fitted.transform(X))
