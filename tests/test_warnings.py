"""Every warning of the package points at the line of the user who called it."""

import ast
import inspect
import warnings
from functools import partial
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from skorch.callbacks import GradientNormClipping

import sklearn_pulse
from sklearn_pulse import (
    CrossPredictionTransformer,
    PulseOracleTransformer,
    PulseTransformer,
    RandomEncoderTransformer,
    save_pretrained,
)
from sklearn_pulse._training import _captured
from sklearn_pulse.baselines import REBARTransformer
from sklearn_pulse.benchmark import add_files, compare
from sklearn_pulse.datasets import fetch_mitbih_af, fetch_sleep_edf
from sklearn_pulse.evaluation import embedding_drift
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import (
    SlidingWindows,
    random_windows,
    segment_windows,
    sliding_windows,
)
from tests.helpers import SMALL_ENCODER, SMALL_PULSE, make_windows, small
from tests.pretended_cuda import pretended_cuda
from tests.toy_method import DenoisedMeanTransformer

ROOT = Path(sklearn_pulse.__file__).parent
X, y = make_windows(12)
FEW_STEPS = X[:, :3]
ONE_STEP = X[:, :1, :1]
MORE_CHANNELS = X.swapaxes(1, 2)
RAMP = np.arange(60.0)[:, None]
RECORDING = np.zeros((5000, 6)) + np.arange(6)
NOISE = np.random.default_rng(0).normal(size=(80, 2))
quick = partial(small, max_epochs=1)
pulse = partial(quick, PulseTransformer)


def classifier(*steps):
    return make_pipeline(*steps, StandardScaler(), LogisticRegression())


def search(**settings):
    settings |= {"refit": False, "cv": KFold(2, shuffle=True, random_state=0)}
    return GridSearchCV(classifier(pulse()), {"pulsetransformer__n_crops": [1]}, **settings)


# --- what makes the package warn; each function calls it in a line of its own ---


def more_channels_than_steps(tmp_path):
    pulse().fit(MORE_CHANNELS)


def more_channels_in_fit_transform(tmp_path):
    pulse().fit_transform(MORE_CHANNELS)


def more_channels_with_pandas_output(tmp_path):
    pulse().set_output(transform="pandas").fit_transform(MORE_CHANNELS)


def more_channels_in_a_pipeline(tmp_path):
    classifier(pulse()).fit(MORE_CHANNELS, y)


def more_channels_in_a_search(tmp_path):
    search().fit(MORE_CHANNELS, y)


def more_channels_in_cross_validation(tmp_path):
    cross_validate(classifier(pulse()), MORE_CHANNELS, y, cv=2)


def more_channels_in_a_panel(tmp_path):
    pytest.importorskip("sktime")
    from sklearn_pulse.panel import PulsePanelTransformer

    panel = PulsePanelTransformer(**SMALL_PULSE | {"max_epochs": 1})
    panel.fit_transform(MORE_CHANNELS.swapaxes(1, 2))


def more_channels_in_a_method_of_another_package(tmp_path):
    quick(DenoisedMeanTransformer).fit(MORE_CHANNELS)


def one_step(tmp_path):
    pulse().fit(ONE_STEP)


def one_step_in_a_pipeline(tmp_path):
    make_pipeline(pulse()).fit_transform(ONE_STEP)


def one_step_that_is_not_missing(tmp_path):
    pulse().fit(np.where(np.arange(16)[:, np.newaxis] == 3, X, np.nan))


def no_halves(tmp_path):
    quick(CrossPredictionTransformer).fit(ONE_STEP)


def alike(tmp_path):
    quick(CrossPredictionTransformer).fit(np.ones_like(X))


def start_without_groups(tmp_path):
    quick(CrossPredictionTransformer).fit(X, start=np.arange(len(X)))


def memory_without_a_seed(tmp_path):
    quick(CrossPredictionTransformer, memory=tmp_path, random_state=None).fit(X)


def drift_without_a_comparison(tmp_path):
    embedding_drift(NOISE[:2], NOISE[2:4], groups_reference=["a", "b"], groups_new=["c", "c"])


def repeated_start(tmp_path):
    quick(CrossPredictionTransformer).fit(X, groups=np.arange(12) // 6, start=np.arange(12) % 3)


def longer_windows(tmp_path):
    fitted = pulse().fit(FEW_STEPS)
    fitted.transform(X)


def longer_windows_in_a_pipeline(tmp_path):
    fitted = classifier(pulse()).fit(FEW_STEPS, y)
    fitted.predict(X)


def one_group(tmp_path):
    pulse().fit(X, groups=np.zeros(12))


def one_group_in_a_pipeline(tmp_path):
    classifier(pulse()).fit(X, y, pulsetransformer__groups=np.zeros(12))


def shared_steps(tmp_path):
    windows = sliding_windows([NOISE], 16, 8, lazy=True).X
    pulse().fit(windows)


def shared_steps_in_a_pipeline(tmp_path):
    windows = sliding_windows([NOISE], 16, 8, lazy=True).X
    make_pipeline(pulse()).fit_transform(windows)


def no_partner(tmp_path):
    quick(PulseOracleTransformer).fit(X, np.arange(12))


def no_partner_in_a_pipeline(tmp_path):
    make_pipeline(quick(PulseOracleTransformer), StandardScaler()).fit(X, np.arange(12))


def one_window_of_each_recording(tmp_path):
    quick(REBARTransformer).fit(X, groups=np.arange(12))


def one_window_of_each_recording_in_a_pipeline(tmp_path):
    make_pipeline(quick(REBARTransformer)).fit(X, rebartransformer__groups=np.arange(12))


def two_windows_of_each_recording(tmp_path):
    quick(REBARTransformer).fit(X, groups=np.arange(12) // 2)


def more_channels_in_bags(tmp_path):
    SlidingWindows(2).fit(MORE_CHANNELS)


def more_channels_in_bags_in_fit_transform(tmp_path):
    SlidingWindows(2).fit_transform(MORE_CHANNELS)


def recordings_of_more_channels(tmp_path):
    sliding_windows(MORE_CHANNELS, 2)


def short_recordings(tmp_path):
    sliding_windows([RAMP[:5], RAMP], 8)


def short_recordings_of_random_windows(tmp_path):
    random_windows([RAMP[:5], RAMP], 8, 4)


def recordings_without_a_window(tmp_path):
    random_windows([RAMP[:14], RAMP], 8, 2, 0.2)


def classes_without_a_window(tmp_path):
    segment_windows([RAMP], [(0, 0, 40, "walk"), (0, 40, 44, "sit")], 8)


def segments_of_a_recording_without_a_window(tmp_path):
    segment_windows([RAMP, RAMP], [(0, 0, 40, "walk"), (1, 40, 44, "walk")], 8)


def times_that_are_not_read(tmp_path):
    times = pd.date_range("2026", periods=60, freq="s").strftime("%d.%m.%Y %H:%M:%S")
    sliding_windows([pd.DataFrame(RAMP, index=times)], 8)


def what_a_file_cannot_hold(tmp_path):
    fitted = pulse(callbacks=[GradientNormClipping()]).fit(X)
    fitted.save_pretrained(tmp_path / "model")


def what_a_folder_cannot_hold(tmp_path):
    seeded = LogisticRegression(random_state=np.random.RandomState(0))
    fitted = make_pipeline(StandardScaler(), seeded).fit(X[:, 0], y)
    save_pretrained(fitted, tmp_path / "chain")


def chunks_read_again(tmp_path):
    zarr = pytest.importorskip("zarr")
    stored = zarr.create_array({}, shape=X.shape, chunks=(3, *X.shape[1:]), dtype=X.dtype)
    stored[:] = X
    limits = {"_KEPT_BYTES": 0, "_MANY_PASSES": 1}
    with patch.multiple("sklearn_pulse._inputs._stored", **limits):
        pulse(batch_size=4).fit(stored)


def lost_variation(tmp_path):
    StatisticsTransformer().fit(X.astype(np.float64) + 1e8)


def lost_variation_in_a_pipeline(tmp_path):
    classifier(StatisticsTransformer()).fit(X.astype(np.float64) + 1e8, y)


def another_unit(tmp_path):
    StatisticsTransformer().fit(X).transform(1000 * X)


def another_unit_in_a_pipeline(tmp_path):
    classifier(StatisticsTransformer()).fit(X, y).predict(X / 1000)


def extreme_scale(tmp_path):
    pulse().fit(X + 1e6)


def extreme_scale_in_a_pipeline(tmp_path):
    classifier(pulse()).fit(1e6 * X, y)


def recording_as_table(tmp_path):
    quick(StatisticsTransformer).fit(RECORDING)


def recording_as_table_of_bags(tmp_path):
    SlidingWindows(4).fit(RECORDING)


def recording_as_table_in_a_pipeline(tmp_path):
    make_pipeline(quick(StatisticsTransformer)).fit_transform(RECORDING)


def more_channels_in_preprocessing(tmp_path):
    WindowScaler().fit(MORE_CHANNELS)


def more_channels_in_preprocessing_in_fit_transform(tmp_path):
    WindowScaler().fit_transform(MORE_CHANNELS)


def a_data_set_in_place_of_another(tmp_path):
    pytest.importorskip("wfdb")
    from tests.datasets.test_mitbih_af import RECORDS, write_record

    for name, (n_samples, marks) in RECORDS.items():
        write_record(tmp_path / "mitdb", name, n_samples, marks)
    fetch_mitbih_af(tmp_path)


def absent_records(tmp_path):
    pytest.importorskip("wfdb")
    from tests.datasets.test_mitbih_af import RECORDS, write_record

    for name, (n_samples, marks) in RECORDS.items():
        write_record(tmp_path, name, n_samples, marks)
    fetch_mitbih_af(tmp_path)


def foreign_records(tmp_path):
    pytest.importorskip("wfdb")
    from sklearn_pulse.datasets._mitbih_af import _RECORDS
    from tests.datasets.test_mitbih_af import write_record

    for name in ("100", *_RECORDS):
        write_record(tmp_path, name, 3000, [(0, "N")])
    fetch_mitbih_af(tmp_path)


def absent_nights(tmp_path):
    pytest.importorskip("mne")
    from tests.datasets.test_sleep_edf import random_stretches, write_hypnogram, write_psg

    stretches = random_stretches(np.random.default_rng(0), 150 * 30)
    write_psg(tmp_path / "SC4001E0-PSG.edf", 150, 0)
    write_hypnogram(tmp_path / "SC4001EC-Hypnogram.edf", stretches)
    fetch_sleep_edf(tmp_path)


def a_damaged_checkpoint(tmp_path):
    stored = pulse(checkpoint_dir=tmp_path, max_epochs=2).fit(X)
    (path,) = tmp_path.rglob("checkpoint.pt")
    path.write_bytes(b"damage")
    stored.fit(X)


def a_step_that_cuda_cannot_capture(tmp_path):
    refused = patch.object(_captured, "_capture", side_effect=RuntimeError("not permitted"))
    with pytest.MonkeyPatch.context() as patches, pretended_cuda(patches), refused:
        pulse(device="cuda", max_epochs=12).fit(X)


def own(**settings):
    shared = {"protocols": ["linear-probe"], "budget": "smoke", "verbose": False}
    return {"X": NOISE.reshape(40, 4, 1), "y": np.arange(40) % 2} | shared | settings


def own_windows_without_groups(tmp_path):
    compare(**own(methods=["majority"]))


def files_that_are_not_read(tmp_path):
    for name in ("X", "y", "groups", "starts"):
        np.save(tmp_path / f"{name}.npy", own(groups=np.arange(40) // 4).get(name, np.arange(40)))
    add_files(tmp_path, tmp_path / "out")


def arrays_that_are_not_read(tmp_path):
    arrays = own(groups=np.arange(40) // 4)
    parts = {name: arrays[name] for name in ("X", "y", "groups")}
    np.savez(tmp_path / "mine.npz", **parts, starts=np.arange(40))
    add_files(tmp_path, tmp_path / "out")


def runs_that_failed(tmp_path):
    settings = own(methods=["untrained", "majority"], groups=np.arange(40) // 4)
    with patch.object(RandomEncoderTransformer, "fit", side_effect=RuntimeError("no luck")):
        compare(**settings)


def runs_that_are_not_reused(tmp_path):
    lost = make_pipeline(FunctionTransformer(lambda X: X[:, :, 0]), StandardScaler())
    settings = own(methods=[("lost", lost)], groups=np.arange(40) // 4, out=tmp_path)
    compare(**settings)


def without_a_compiler(_):
    torch.compiler.reset()
    fitted = RandomEncoderTransformer(**SMALL_ENCODER, compile=True).fit(X)
    refuses = Mock(side_effect=RuntimeError("no compiler"))
    with patch("torch._dynamo.lookup_backend", return_value=refuses):
        fitted.transform(X)


TEXTS = {
    "more_channels": "X has more channels",
    "one_step": "X has windows of one time step",
    "longer_windows": "convolution weights that were never trained",
    "no_halves": "No window of X has an observed time step in both halves",
    "alike": "All windows of X have the same features",
    "start_without_groups": "start is not used, since no recording",
    "memory_without_a_seed": "memory finds nothing that another fit kept",
    "drift_without_a_comparison": "No other division of the recordings",
    "repeated_start": "start repeats within groups",
    "one_group": "groups holds one group only",
    "shared_steps": "validation shares time steps with training",
    "no_partner": "each window is its own partner",
    "one_window_of_each_recording": "each window is its own only candidate",
    "two_windows_of_each_recording": "all candidates of a window are the same",
    "recordings_of_more_channels": "recordings have more channels",
    "short_recordings": "are shorter than length=8 steps",
    "recordings_without_a_window": "keeps no window of 1 of 2 recordings",
    "classes_without_a_window": "no segment of the class 'sit' is as long as length=8",
    "segments_of_a_recording_without_a_window": "1 of 2 recordings that have segments",
    "times_that_are_not_read": "look like times, but are not dates, nor text in ISO format",
    "what_a_file_cannot_hold": "A file cannot hold callbacks",
    "what_a_folder_cannot_hold": "A folder cannot hold LogisticRegression",
    "extreme_scale": "The scale of X is extreme",
    "runs_that_are_not_reused": "are not reused in another call",
    "chunks_read_again": "in chunks of 3 rows, which have been read",
    "another_unit": "than the windows that StatisticsTransformer was fitted on",
    "lost_variation": "float32 does not hold the variation of X",
    "recording_as_table": "If it is one recording of 6 channels",
    "a_data_set_in_place_of_another": "is read instead",
    "absent_records": "lacks the records 04936",
    "foreign_records": "also holds the records 100",
    "absent_nights": "holds 1 of the 39 nights",
    "own_windows_without_groups": "Without groups, neighbouring windows",
    "files_that_are_not_read": "holds starts.npy, which are not read",
    "arrays_that_are_not_read": "files hold starts, which are not read",
    "runs_that_failed": "1 of 2 runs failed",
    "a_step_that_cuda_cannot_capture": "CUDA could not capture a training step",
    "a_damaged_checkpoint": "fit resumes from the one before",
    "without_a_compiler": "torch cannot compile the encoder here",
}
CASES = [
    (function, text)
    for name, function in list(globals().items())
    for start, text in TEXTS.items()
    if name.startswith(start)
]


@pytest.mark.parametrize(("function", "text"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_a_warning_points_at_the_line_of_the_user(function, text, tmp_path):
    with warnings.catch_warnings(record=True) as caught:  # a case may be skipped, with no warning
        warnings.simplefilter("always")
        function(tmp_path)
    lines, first = inspect.getsourcelines(function)
    last = first + len(lines) - 1  # the call that warns is the last line of the function
    about = [warning for warning in caught if text in str(warning.message)]
    assert about
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, last)}


def calls(path):
    """Names of the functions and methods that a module calls, once for each call."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return [getattr(function, "attr", getattr(function, "id", None)) for function in called]


def test_every_warning_is_given_through_the_helper_and_tried_above():
    called = {path: calls(path) for path in ROOT.rglob("*.py")}
    assert [path.name for path, names in called.items() if "warn" in names] == ["_warnings.py"]
    assert sum(names.count("warn_user") for names in called.values()) == len(TEXTS)
