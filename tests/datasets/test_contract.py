"""What all fetchers promise, on small files made here."""

from __future__ import annotations

import importlib
import inspect
import re

import numpy as np
import pytest

from sklearn_pulse import datasets
from sklearn_pulse.datasets import _remote

FETCHERS = [name for name in datasets.__all__ if name.startswith("fetch_")]
# A few recordings alone, and labels that change often.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{text}:UserWarning")
    for text in (".*the parts are not the published", ".* recordings that have segments")
]


def write_har(made, home):
    rows = made.random_label_rows(np.random.default_rng(3), made.LENGTHS)
    made.write_folder(home / "hapt" / "RawData", made.LENGTHS, rows)


def write_wesad(made, home):
    made.write_pickles(home / "wesad")


def write_mitbih_af(made, home):
    for name, (n_samples, marks) in made.RECORDS.items():
        made.write_record(home / "mitbih_af", name, n_samples, marks)


def write_sleep_edf(made, home):
    rng = np.random.default_rng(5)
    (home / "sleep_edf").mkdir()
    for seed, name in enumerate(made.NIGHTS):
        made.write_psg(home / "sleep_edf" / f"{name}-PSG.edf", 150, seed)
        path = home / "sleep_edf" / f"{name[:7]}C-Hypnogram.edf"
        made.write_hypnogram(path, made.random_stretches(rng, 4500))


def write_epilepsy(made, home):
    made.write_bonn(home / "bonn_epilepsy")


def write_gesture(made, home):
    rng = np.random.default_rng(0)
    for file, n in (("TRAIN", 9), ("TEST", 16)):
        path = home / "uwave_gesture" / f"UWaveGestureLibrary_{file}.ts"
        made.write_ts(path, rng.normal(size=(n, 315, 3)), (np.arange(n) % 8 + 1).tolist())


@pytest.fixture(scope="module", params=FETCHERS)
def fetched(request, tmp_path_factory):
    """Write a small data set; return its fetcher, its data home and its Bunch."""
    name = request.param.removeprefix("fetch_")
    made = importlib.import_module(f"tests.datasets.test_{name}")  # skips without its package
    home = tmp_path_factory.mktemp(name)
    globals()[f"write_{name}"](made, home)
    fetch = getattr(datasets, request.param)
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    data = fetch(home, download_if_missing=False)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    return fetch, home, data


def test_bunch_holds_what_the_docstring_names(fetched):
    fetch, _, data = fetched
    returns = inspect.getdoc(fetch).partition("\nReturns\n")[2].partition("\nRaises\n")[0]
    assert re.findall(r"^    (\w+) : ", returns, re.MULTILINE) == list(data)


def test_windows_fit_one_another_and_their_recordings(fetched):
    data = fetched[-1]
    for key in ("y", "groups", "recording", "start", "split"):
        assert len(data[key]) == len(data.X) > 0, key
    for key in data:
        if key.startswith("recording_") and data[key] is not None:
            assert len(data[key]) == len(data.recordings), key
    if data.recording_split is not None:
        np.testing.assert_array_equal(data.split, data.recording_split[data.recording])
    assert {x.dtype for x in data.recordings} == {np.dtype(np.float32)}
    assert {x.shape[1] for x in data.recordings} == {data.X.shape[2]} == {len(data.channel_names)}
    assert set(data.y.tolist()) <= set(range(len(data.target_names)))
    assert data.segments.dtype == np.int64 and data.segments.shape[1] == 4
    assert "Licence" in data.DESCR


def test_no_array_changes_with_another(fetched):
    data = fetched[-1]
    arrays = [value for value in data.values() if isinstance(value, np.ndarray)]
    for i, array in enumerate(arrays):
        assert not any(np.shares_memory(array, x) for x in [*arrays[:i], *data.recordings])


def test_the_forms_of_the_result(fetched):
    fetch, home, data = fetched
    X, y = fetch(home, return_X_y=True)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    if fetch is not datasets.fetch_gesture:  # whose groups are gestures with the same values
        by_recording = fetch(home, group="recording")
        np.testing.assert_array_equal(by_recording.groups, by_recording.recording)


def test_the_data_home_may_be_the_folder_itself_or_named_outside(fetched, monkeypatch):
    fetch, home, data = fetched
    (folder,) = home.iterdir()
    np.testing.assert_array_equal(fetch(folder).y, data.y)
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(home))
    np.testing.assert_array_equal(fetch().y, data.y)


def test_a_missing_data_set_writes_nothing(fetched, tmp_path):
    fetch = fetched[0]
    entry = _remote.REMOTES[fetch.__name__.removeprefix("fetch_")]
    with pytest.raises(OSError, match="download_if_missing is False.* by hand") as caught:
        fetch(tmp_path / "nothing", download_if_missing=False)
    assert entry.title in str(caught.value) and entry.url in str(caught.value)
    assert not (tmp_path / "nothing").exists()
