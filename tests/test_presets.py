"""The published settings, table by table."""

import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import Pipeline

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer, presets
from sklearn_pulse.sampling import length_in_steps
from tests.helpers import SMALL_PULSE, make_windows

DATASETS = ("har", "ecg", "ppg", "eeg", "synthetic", "har-transfer", "eeg-transfer")

# A row: data set, then (epochs, lr, batch, GRU layers, GRU width, kernel, dilation, init width,
# crops, right boundary, pool, time-varying width).
PUBLISHED = {
    "har": (100, 1e-3, 128, 2, 64, 3, 1, 64, 2, 64, 1, 1),
    "ecg": (100, 1e-3, 64, 2, 64, 11, 2, 128, 2, 250, 100, 1),
    "ppg": (100, 1e-4, 128, 4, 64, 5, 2, 64, 2, 64, 1, 1),
    "eeg": (100, 1e-3, 64, 2, 64, 3, 2, 64, 1, 500, 2, 2),
    "synthetic": (100, 1e-3, 128, 3, 128, 3, 2, 128, 3, 50, 50, 1),
    "har-transfer": (50, 1e-4, 128, 2, 128, 3, 2, 128, 1, 64, 1, 1),
    "eeg-transfer": (50, 1e-4, 64, 2, 128, 5, 1, 128, 1, 100, 20, 1),
}
NAMES = (
    "max_epochs lr batch_size gru_num_layers gru_hidden_dim init_kernel_size init_dilation"
    " init_hidden_dim n_crops min_crop_length time_varying_pool time_varying_dim"
).split()

# Data set: mode, channels, window, down-sampling, stride, stride of validation, fraction.
WINDOWS = {
    "har": ("random", 6, 128, 1, 32, 128, 1.0),
    "ecg": ("labeled", 2, 500, 5, None, None, 0.5),
    "ppg": ("labeled", 1, 960, 4, None, None, 1.0),
    "eeg": ("random", 2, 1000, 3, 350, 1000, 0.5),
    "synthetic": ("random", 3, 100, 1, 50, 100, 1.0),
    "har-transfer": ("random", 6, 128, 1, 128, 128, 1.0),
    "eeg-transfer": ("random", 1, 200, 1, 200, 200, 0.1),
}


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_parameters(dataset):
    estimator = PulseTransformer(**presets.get("pulse", dataset))
    assert tuple(getattr(estimator, name) for name in NAMES) == PUBLISHED[dataset]
    assert (estimator.dropout, estimator.weight_decay) == (0.1, 1e-5)
    assert (estimator.gradient_clip_value, estimator.validation_every) == (5.0, 2)
    assert estimator.select == "trailing_mean"


@pytest.mark.parametrize("dataset", WINDOWS)
def test_windows_are_cut_as_published(dataset):
    cut = presets.windows("pulse", dataset)
    keys = "mode n_channels length downsample stride stride_val fraction".split()
    assert tuple(cut[key] for key in keys) == WINDOWS[dataset]


def test_defaults_are_those_of_har():
    default = PulseTransformer()
    har = PulseTransformer(**presets.get("pulse", "har"))
    assert {k: v for k, v in default.get_params().items() if k != "min_crop_length"} == {
        k: v for k, v in har.get_params().items() if k != "min_crop_length"
    }
    assert length_in_steps(default.min_crop_length, 128) == har.min_crop_length


def test_published_behaviour_is_asked_for():
    assert presets.get("pulse", "har", published=True)["deterministic_validation"] is False
    assert "deterministic_validation" not in presets.get("pulse", "har")


def test_what_is_returned_is_a_copy():
    presets.get("pulse", "har")["lr"] = 7
    presets.windows("pulse", "har")["length"] = 7
    assert "lr" not in presets.get("pulse", "har")
    assert presets.windows("pulse", "har")["length"] == 128


@pytest.mark.parametrize("function", [presets.get, presets.windows])
def test_unknown_names(function):
    with pytest.raises(ValueError, match="method must be one of .*'pulse'"):
        function("pulze", "har")
    with pytest.raises(ValueError, match="dataset must be one of .*'har'"):
        function("pulse", "hare")


@pytest.mark.parametrize("value", ["false", 0, None])
def test_flags_are_booleans(value):
    for function, name in [
        (presets.get, "published"),
        (presets.get, "official"),
        (presets.windows, "published"),
    ]:
        with pytest.raises(TypeError, match=f"{name} must be True or False, got {value!r}"):
            function("ts2vec", "har", **{name: value})


def test_every_method_has_whole_tables():
    for method in presets.methods():
        for dataset in DATASETS:
            published = presets.get(method, dataset, published=True)
            assert presets.get(method, dataset).keys() <= published.keys()
            assert presets.windows(method, dataset)["mode"] in ("random", "labeled")


def test_search_space_of_the_paper():
    space = presets.search_space("pulse", prefix="pulse__")
    assert space == {
        "pulse__max_epochs": [50, 100, 200],
        "pulse__lr": [1e-3, 5e-4, 1e-4],
        "pulse__weight_decay": [1e-3, 1e-4, 1e-5],
        "pulse__init_kernel_size": [3, 5, 11],
        "pulse__init_dilation": [1, 2],
        "pulse__init_hidden_dim": [64, 128],
        "pulse__gru_num_layers": [2, 3, 4],
        "pulse__gru_hidden_dim": [64, 128],
        "pulse__n_crops": [1, 2, 3],
    }
    space["pulse__lr"].append(1.0)
    assert 1.0 not in presets.search_space("pulse")["lr"]
    with pytest.raises(ValueError, match="method must be one of"):
        presets.search_space("pulze")
    with pytest.raises(TypeError, match="prefix must be text, got None; pass for example prefix="):
        presets.search_space("pulse", prefix=None)


def test_random_search_draws_from_it():
    X, y = make_windows()
    space = presets.search_space("pulse", prefix="pulse__") | {"pulse__max_epochs": [1, 2]}
    pipe = Pipeline([("pulse", PulseTransformer(**SMALL_PULSE)), ("probe", LogisticRegression())])
    search = RandomizedSearchCV(pipe, space, n_iter=2, cv=2, random_state=0).fit(X, y)
    assert set(search.best_params_) == set(space)
    assert len(search.cv_results_["params"]) == 2


def test_methods_without_an_official_preset_name_those_that_have_one():
    official = ["dsvae", "patchtst", "rebar", "simclr", "simmtm", "timemae", "ts2vec"]
    with pytest.raises(ValueError, match="'pulse' has no official preset") as error:
        presets.get("pulse", "har", official=True)
    assert all(repr(name) in str(error.value) for name in official)
    for name in official:
        assert presets.get(name, "har", official=True) != presets.get(name, "har")


def test_a_decoder_of_a_frozen_encoder():
    """Add the frozen encoder to the strong preset; nothing of it was published."""
    X, _ = make_windows()
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=8, random_state=0).fit(X)
    params = presets.get("pulse", "strong") | {"max_epochs": 1, "random_state": 0}
    pulse = PulseTransformer(encoder=FrozenEstimator(cross), **params).fit(X)
    assert pulse.reconstruct(X).shape == X.shape
    with pytest.raises(ValueError, match="dataset must be one of"):
        presets.windows("pulse", "strong")
    with pytest.raises(ValueError, match="'strong' was not published, so set published=False"):
        presets.get("pulse", "strong", published=True)
