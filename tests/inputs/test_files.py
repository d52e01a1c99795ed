"""Recordings in files are opened only while they are read, and pickled as paths."""

import os
import pickle
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import RecordingFile, SlidingWindows, open_recordings, sliding_windows
from sklearn_pulse.windows._context import ContextWindows

RECORDING = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


def test_windows_of_files_are_those_of_arrays(tmp_path):
    arrays = [RECORDING, RECORDING[:30] + 1]
    for layout, folder in (("ntc", tmp_path / "ntc"), ("nct", tmp_path / "nct")):
        folder.mkdir()
        for number, array in enumerate(arrays):
            np.save(folder / f"{number}.npy", array if layout == "ntc" else array.T)
        files = open_recordings(folder, input_layout=layout)
        assert [file.shape for file in files] == [(50, 3), (30, 3)]
        ours = sliding_windows(files, 8, 3, lazy=True, downsample=2).X
        theirs = sliding_windows(arrays, 8, 3, downsample=2).X
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(ours[[3, 1]], theirs[[3, 1]])
        assert ours.observed_windows().all()


def test_one_channel(tmp_path):
    np.save(tmp_path / "a.npy", RECORDING[:, 0])
    (file,) = open_recordings(tmp_path)
    assert (file.shape, len(file), file.nbytes) == ((50, 1), 50, 200)
    np.testing.assert_array_equal(np.asarray(file), RECORDING[:, :1])
    np.testing.assert_array_equal(np.asarray(file, dtype=float), RECORDING[:, :1].astype(float))


def test_a_pickle_holds_paths(tmp_path):
    long = np.zeros((100_000, 2), np.float32)
    np.save(tmp_path / "a.npy", long)
    X = sliding_windows(open_recordings(tmp_path), 1000, lazy=True).X
    stored = pickle.dumps(X)
    assert len(stored) < 10_000
    np.testing.assert_array_equal(pickle.loads(stored), X)


def test_the_size_says_what_a_pickle_holds(tmp_path):
    """Dask sends large objects once, and small ones with each call."""
    np.save(tmp_path / "a.npy", RECORDING)
    in_memory = sliding_windows([RECORDING], 5, lazy=True).X
    in_file = sliding_windows(open_recordings(tmp_path), 5, lazy=True).X
    assert sys.getsizeof(in_memory) > RECORDING.nbytes > sys.getsizeof(in_file)
    scaled = WindowScaler().fit(in_memory).transform(in_memory)
    assert sys.getsizeof(scaled) > RECORDING.nbytes


def test_a_file_that_changes_is_noticed(tmp_path):
    np.save(tmp_path / "a.npy", RECORDING)
    X = sliding_windows(open_recordings(tmp_path), 5, lazy=True).X
    np.save(tmp_path / "a.npy", RECORDING[:20])
    with pytest.raises(
        ValueError, match=r"a.npy held shape \(50, 3\) .* open the recordings again"
    ):
        np.asarray(X)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(FileNotFoundError, match="a.npy"):
        np.asarray(X)


def test_a_cache_notices_that_a_file_was_written_again(tmp_path):
    (tmp_path / "recordings").mkdir()
    path = tmp_path / "recordings" / "a.npy"

    def fitted(X):
        chain = Pipeline([("scale", WindowScaler()), ("last", "passthrough")], memory=memory)
        return chain.fit(X)[0].scale_

    memory = joblib.Memory(tmp_path / "cache", verbose=0)
    np.save(path, RECORDING)
    X = sliding_windows(open_recordings(path.parent), 5, lazy=True).X
    first = fitted(X)
    np.testing.assert_array_equal(fitted(X), first)
    later = path.stat().st_mtime_ns + 10**10  # though a file system may count whole seconds
    np.save(path, 10 * RECORDING)  # the same name, shape, size and type
    os.utime(path, ns=(later, later))
    again = sliding_windows(open_recordings(path.parent), 5, lazy=True).X
    for windows in (again, X, pickle.loads(pickle.dumps(X))):
        np.testing.assert_allclose(fitted(windows), 10 * first, rtol=1e-5)


def test_a_copied_file_is_read_whenever_it_was_written(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, RECORDING)
    stored = pickle.dumps(open_recordings(tmp_path)[0])
    os.utime(path, (0, 0))  # as on the machine to which the pickle is sent
    np.testing.assert_array_equal(pickle.loads(stored), RECORDING)
    path.unlink()
    absent = pickle.loads(pickle.dumps(pickle.loads(stored)))
    np.save(path, RECORDING)
    np.testing.assert_array_equal(absent, RECORDING)


def with_header(text):
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text.encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (np.zeros((2, 3, 4)), r"must hold one recording .* got shape \(2, 3, 4\)"),
        (np.array(["a"]), "must hold real numbers"),
        (np.array([{}], dtype=object), "is no complete file"),
        (
            b"PAR1",
            r"is no complete file of numpy.save: it begins otherwise\. Read a file of another",
        ),
        (b"", "is no complete file"),
        (b"PK\x03\x04", "is no complete file"),
        (b"PK\x05\x06" + bytes(18), "must hold one recording .* got an archive"),
        (with_header("(" * 9), "is no complete file"),
        (with_header("{1: 2, 'a': 3}"), "is no complete file"),
    ],
    ids=[
        "windows",
        "text",
        "objects",
        "other",
        "empty",
        "half an archive",
        "archive",
        "half a header",
        "another header",
    ],
)
# numpy leaves the file of half an archive open until it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_without_a_recording_are_named(tmp_path, content, text):
    path = tmp_path / "a.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content, allow_pickle=True)
    with pytest.raises(ValueError, match=f"a.npy {text}"):
        open_recordings(tmp_path)


@pytest.mark.parametrize(("layout", "other"), [("ntc", "nct"), ("nct", "ntc")])
def test_a_file_with_other_channels_is_named(tmp_path, layout, other):
    np.save(tmp_path / "a.npy", np.zeros((9, 9)))
    np.save(tmp_path / "b.npy", np.zeros((8, 8)))
    message = rf"recordings\[1\] \(.*b.npy\) has 8 channels .*input_layout='{other}'"
    with pytest.raises(ValueError, match=message):
        sliding_windows(open_recordings(tmp_path, input_layout=layout), 2)


def test_a_file_that_is_cut_short_is_named(tmp_path):
    np.save(tmp_path / "a.npy", RECORDING)
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-100])
    with pytest.raises(ValueError, match="a.npy is no complete file"):
        open_recordings(tmp_path)


def test_hidden_files_are_no_recordings(tmp_path):
    traces = (".Trash-1000/ben.npy", ".ipynb_checkpoints/anna-checkpoint.npy", "__MACOSX/cleo.npy")
    for name in ("anna.npy", "night/dora.npy", *traces):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / name, RECORDING)
    (tmp_path / "._anna.npy").write_bytes(b"\x00\x05\x16")  # of a Mac, on a disk of another kind
    names = [Path(x.path).relative_to(tmp_path).as_posix() for x in open_recordings(tmp_path)]
    assert names == ["anna.npy", "night/dora.npy"]


def test_linked_folders_are_read_once(tmp_path):
    people = tmp_path / "people"
    (people / "anna").mkdir(parents=True)
    np.save(people / "anna" / "a.npy", np.zeros((4, 1)))
    study = tmp_path / "study"
    study.mkdir()
    np.save(study / "c.npy", np.zeros((4, 1)))
    (study / "linked").symlink_to(people, target_is_directory=True)
    (people / "around").symlink_to(study, target_is_directory=True)
    found = [recording.path for recording in open_recordings(study)]
    assert [path.relative_to(study).as_posix() for path in map(Path, found)] == [
        "c.npy",
        "linked/anna/a.npy",
    ]


def test_a_folder_that_may_not_be_read_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "ben").mkdir()
    np.save(tmp_path / "anna.npy", RECORDING)
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "ben":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError, match="ben"):
        open_recordings(tmp_path)


def test_folders_without_recordings(tmp_path):
    with pytest.raises(ValueError, match="folder must be a path .*got ''"):
        open_recordings("")
    with pytest.raises(NotADirectoryError, match="name one with .npy files"):
        open_recordings(tmp_path / "missing")
    with pytest.raises(ValueError, match="holds no file"):
        open_recordings(tmp_path)
    with pytest.raises(ValueError, match="input_layout"):
        RecordingFile(tmp_path / "a.npy", input_layout="tnc")
    with pytest.raises(TypeError, match="path must be a path .*got 3"):
        RecordingFile(3)
    with pytest.raises(ValueError, match="path must be a path .*got ''"):
        RecordingFile("")


def test_windows_with_context_open_each_file_once(tmp_path, monkeypatch):
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.arange(40.0).reshape(20, 2) + i)
    X = sliding_windows(open_recordings(tmp_path), 4, 2, lazy=True).X
    opened, n_opened = RecordingFile._opened, []
    monkeypatch.setattr(RecordingFile, "_opened", lambda x: n_opened.append(x) or opened(x))
    wide = ContextWindows(X, 1).take(np.arange(len(X)))
    assert len(n_opened) == 2
    np.testing.assert_array_equal(wide[:, 1:-1], X)


@pytest.fixture
def few_handles():
    """Let a test open sixteen files at a time."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as file:
        lowest = file.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 16, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("lengths", [[20], [20, 12, 3]], ids=["equal", "unequal"])
def test_recordings_may_be_more_than_files_that_can_be_open(tmp_path, few_handles, lengths):
    rng = np.random.default_rng(0)
    arrays = [1e3 * rng.normal(size=(lengths[i % len(lengths)], 2)) for i in range(60)]
    for i, array in enumerate(arrays):
        np.save(tmp_path / f"{i:02}.npy", array)
    files = open_recordings(tmp_path)
    kept = [i for i in range(60) if len(arrays[i]) > 3]
    X = sliding_windows([files[i] for i in kept], 4, lazy=True).X
    theirs = sliding_windows([arrays[i] for i in kept], 4).X
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(X.take(order), theirs[order])
    np.testing.assert_array_equal(ContextWindows(X, 1).take(order)[:, 1:-1], theirs[order])
    for step in (WindowScaler(), WindowScaler(per="window", robust=True), SlidingWindows(4, 3)):
        for ours, array in zip(step.fit_transform(files), step.transform(arrays), strict=True):
            np.testing.assert_array_equal(ours, array)
    if lengths == [20]:  # a window per file
        statistics = StatisticsTransformer()
        ours = statistics.fit_transform(files)
        np.testing.assert_array_equal(ours, statistics.transform(np.array(arrays)))


def test_labels_in_files_are_read_as_their_message_says(tmp_path):
    for name in ("anna", "ben"):
        np.save(tmp_path / f"{name}.npy", [0] * 4 + [1] * 4)
    opened = open_recordings(tmp_path)
    with pytest.raises(ValueError, match=r"pass the column, numpy.ravel\(y\[0\]\), which holds"):
        sliding_windows([np.zeros(8)] * 2, 4, y=opened)
    labels = [np.ravel(file) for file in opened]
    assert sliding_windows([np.zeros(8)] * 2, 4, y=labels).y.tolist() == [0, 1, 0, 1]
