"""The Sleep-EDF reader, on EDF files made here."""

from __future__ import annotations

import math
import shutil
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pulse.datasets import _sleep_edf as reader
from sklearn_pulse.datasets import fetch_sleep_edf
from sklearn_pulse.windows import RecordingWindows, segment_windows

# Of a few recordings alone.
pytestmark = pytest.mark.filterwarnings("ignore:.*the parts are not the published:UserWarning")

mne = pytest.importorskip("mne")

LENGTH = 3000
AASM = {"W": 0, "1": 1, "2": 2, "3": 3, "4": 3, "R": 4}
PUBLISHED = {"W": 0, "1": 1, "2": 2, "3": 3, "4": 4}
# Length of an EDF record in seconds, and physical range of the EEG in microvolts.
RECORD, RANGE = 30, 192.0


def edf_header(labels, n_per_record, n_records, duration, reserved=""):
    """Return the bytes of an EDF header: fields of fixed width, one signal after the other."""
    n = len(labels)

    def fields(values, width):
        return "".join(f"{value!s:<{width}}" for value in values)

    text = fields(["0"], 8) + fields(["X X X X", "Startdate 24-APR-1989 X X X"], 80)
    text += fields(["24.04.89", "16.13.00", 256 * (n + 1)], 8) + fields([reserved], 44)
    text += fields([n_records, duration], 8) + fields([n], 4)
    text += fields(labels, 16) + fields([""] * n, 80)
    text += fields(["" if "Annotations" in label else "uV" for label in labels], 8)
    text += fields([-RANGE] * n, 8) + fields([RANGE] * n, 8)
    text += fields([-2048] * n, 8) + fields([2047] * n, 8) + fields(["HP:0.5Hz LP:100Hz"] * n, 80)
    text += fields(n_per_record, 8) + fields([""] * n, 32)
    return text.encode("ascii")


def write_psg(path, n_records, seed, rate=100, labels=None):
    """Write a polysomnogram; return its EEG as stored, shape (n_timesteps, 2)."""
    labels = labels or ["EEG Fpz-Cz", "EEG Pz-Oz", "EOG horizontal", "Temp rectal"]
    n_per_record = [RECORD * rate] * 3 + [RECORD]  # the last channel is at 1 Hz
    rng = np.random.default_rng(seed)
    eeg = rng.integers(-300, 300, (n_records * RECORD * rate, 3))
    eeg += np.array([100, -50, 7])
    with open(path, "wb") as stream:
        stream.write(edf_header(labels, n_per_record, n_records, RECORD))
        for block in eeg.reshape(n_records, -1, 3):
            stream.write(block.T.astype("<i2").tobytes())
            stream.write(rng.integers(-2000, 2000, RECORD).astype("<i2").tobytes())
    return (eeg[:, :2] + 2048) / 4095 * 2 * RANGE - RANGE


def literal_scores(eeg):
    """Return each channel's z-scores over the whole recording."""
    scaled = []
    for channel in eeg.T:
        mean = math.fsum(channel) / len(channel)
        deviation = math.sqrt(math.fsum((channel - mean) ** 2) / len(channel))
        scaled.append((channel - mean) / deviation)
    return np.array(scaled).T


def write_hypnogram(path, stretches):
    """Write (onset, duration, description) as an EDF+ file that holds only annotations."""
    lists = [b"+0\x14\x14\x00"] + [
        f"+{onset:g}\x15{duration:g}\x14{description}\x14\x00".encode()
        for onset, duration, description in stretches
    ]
    content = b"".join(lists)
    content += b"\x00" * (len(content) % 2)
    with open(path, "wb") as stream:
        stream.write(edf_header(["EDF Annotations"], [len(content) // 2], 1, 0, "EDF+C"))
        stream.write(content)


def random_stretches(rng, end):
    """Return successive stages, from a long evening to a long morning."""
    stretches, time = [(0, 2400, "Sleep stage W")], 2400
    while time < end - 2000:
        duration = 30 * int(rng.integers(1, 12))
        stage = rng.choice(["W", "1", "2", "3", "4", "R", "?", "M"])
        name = "Movement time" if stage == "M" else f"Sleep stage {stage}"
        stretches.append((time, duration, name))
        time += duration
    stretches += [(time, 120, "Sleep stage 2"), (time + 120, end - time - 120, "Sleep stage W")]
    return [*stretches, (end, 600, "Sleep stage ?")]


def literal_epochs(stretches, codes, n_timesteps):
    """Return the first step and the label of each epoch, in steps of the file."""
    begin, end = stretches[1][0] - 1800, stretches[-2][0] + 1800
    epochs = []
    for onset, duration, description in stretches:
        stop = min(onset + duration, end)
        time = max(onset, begin)
        label = codes.get(description.removeprefix("Sleep stage "))
        while time + 30 <= stop:
            if label is not None and (time + 30) * 100 <= n_timesteps:
                epochs.append((round(time * 100), label))
            time += 30
    return epochs


NIGHTS = ["SC4001E0", "SC4002E0", "SC4011E0", "SC4012F0", "SC4131E0", "SC4191E0", "SC4192E0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a data home with seven short nights; return it, their content and the Bunch."""
    home = tmp_path_factory.mktemp("data")
    (home / "sleep_edf").mkdir()
    rng = np.random.default_rng(5)
    content = {}
    for seed, name in enumerate(NIGHTS):
        n_records = 150 + 5 * seed
        stretches = random_stretches(rng, n_records * RECORD)
        eeg = write_psg(home / "sleep_edf" / f"{name}-PSG.edf", n_records, seed)
        write_hypnogram(home / "sleep_edf" / f"{name[:7]}C-Hypnogram.edf", stretches)
        content[name] = literal_scores(eeg), stretches
    # Files of another subject of the study, and of another study.
    for name in ("SC4201E0-PSG.edf", "SC4201EC-Hypnogram.edf", "ST7011J0-PSG.edf"):
        shutil.copy(home / "sleep_edf" / "SC4001E0-PSG.edf", home / "sleep_edf" / name)
    return home, content, fetch_sleep_edf(home)


def assert_literal(data, content, codes, downsample, truncate=True):
    """Compare a Bunch with the literal rules."""
    names = list(NIGHTS)
    np.random.RandomState(1234).shuffle(names)
    series, rows, X = [], [], []
    for place, name in enumerate(names):
        scaled, stretches = content[name]
        epochs = literal_epochs(stretches, codes, len(scaled))
        first = epochs[0][0]
        series.append(scaled[first : epochs[-1][0] + LENGTH])
        part = "train" if place < int(0.7 * 7) else "val" if place < int(0.85 * 7) else "test"
        for start, label in epochs:
            rows.append((place, start - first, label, part, int(name[3:5])))
            X.append(scaled[start : start + LENGTH : downsample])
    got = zip(data.recording, data.start, data.y, data.split, data.groups, strict=True)
    assert rows == list(got)
    np.testing.assert_allclose(data.X, X, rtol=0, atol=1e-5)
    shortest = min(map(len, series))
    for recording, expected in zip(data.recordings, series, strict=True):
        assert recording.dtype == np.float32
        expected = expected[:shortest] if truncate else expected
        np.testing.assert_allclose(recording, expected, rtol=0, atol=1e-5)
    assert [
        f"SC4{s:02d}{n}" for s, n in zip(data.recording_subject, data.recording_night, strict=True)
    ] == [name[:6] for name in names]
    assert data.recording_split.tolist() == ["train"] * 4 + ["val"] + ["test"] * 2


def test_epochs_follow_the_literal_rules(folder):
    _, content, data = folder
    assert_literal(data, content, AASM, 3)
    assert data.X.shape[1:] == (1000, 2) and data.X.dtype == np.float32
    assert set(data.y.tolist()) == set(range(5))


@pytest.mark.parametrize(
    ("stages", "codes", "downsample", "truncate"),
    [("published", PUBLISHED, 7, True), ("aasm", AASM, 1, False)],
)
def test_epochs_follow_the_literal_rules_with_options(folder, stages, codes, downsample, truncate):
    home, content, _ = folder
    data = fetch_sleep_edf(home, stages=stages, downsample=downsample, truncate=truncate)
    assert_literal(data, content, codes, downsample, truncate)
    assert data.downsample == downsample


def test_published_stages_leave_rem_out(folder):
    home, content, aasm = folder
    data = fetch_sleep_edf(home, stages="published")
    assert data.target_names == ["W", "N1", "N2", "N3", "N4"]
    assert aasm.target_names == ["W", "N1", "N2", "N3", "REM"]
    deep = (data.y == 3).sum(), (data.y == 4).sum()
    assert min(deep) > 0 and sum(deep) == (aasm.y == 3).sum()
    assert len(aasm.y) - len(data.y) == (aasm.y == 4).sum() > 0


def test_windows_are_cut_from_the_recordings(folder):
    data = fetch_sleep_edf(folder[0], truncate=False)
    again = RecordingWindows(data.recordings, data.recording, data.start, 1000, data.downsample)
    np.testing.assert_array_equal(again, data.X)
    cut = segment_windows(data.recordings, data.segments, 1000, downsample=3)
    for key in ("X", "y", "recording", "start"):
        np.testing.assert_array_equal(cut[key], data[key])
    # A segment lasts as long as its stage.
    before, after = data.segments[:-1], data.segments[1:]
    touch = (before[:, 0] == after[:, 0]) & (before[:, 2] == after[:, 1])
    assert (before[touch, 3] != after[touch, 3]).all() and touch.any()


def test_segments_lie_in_the_truncated_recordings(folder):
    data = folder[-1]
    length = len(data.recordings[0])
    assert {len(recording) for recording in data.recordings} == {length}
    assert data.segments[:, 2].max() == length
    assert (data.segments[:, 2] > data.segments[:, 1]).all()
    inside = data.start + LENGTH <= length
    assert 0 < inside.sum() < len(inside)
    whole = fetch_sleep_edf(folder[0], truncate=False)
    expected = [
        (r, s, min(e, length), label) for r, s, e, label in whole.segments.tolist() if s < length
    ]
    assert [tuple(row) for row in data.segments.tolist()] == expected


def test_split_of_39_nights():
    """The sizes of the parts are published; the order is by subject and night, shuffled."""
    order, split = reader.shuffled_split(39)
    assert [int((split == part).sum()) for part in ("train", "val", "test")] == [27, 6, 6]
    expected = list(range(39))
    np.random.RandomState(1234).shuffle(expected)
    assert order.tolist() == expected


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_events_are_those_of_mne(data):
    """Compare with mne's own cropping and chunking of annotations, on arbitrary stretches."""
    step = data.draw(st.sampled_from([30.0, 10.0, 0.01]))
    durations = data.draw(st.lists(st.integers(1, 400), min_size=3, max_size=12))
    gaps = data.draw(
        st.lists(st.integers(0, 100), min_size=len(durations), max_size=len(durations))
    )
    duration = np.array(durations) * step
    onset = np.cumsum(np.array(gaps) * step + np.append(0, duration[:-1]))
    onset, duration = onset.round(2), duration.round(2)
    description = data.draw(
        st.lists(
            st.sampled_from([*(f"Sleep stage {s}" for s in "W1234R?"), "Movement time"]),
            min_size=len(durations),
            max_size=len(durations),
        )
    )
    hypnogram = reader.Hypnogram(onset, duration, np.array(description))
    start, y = reader.stage_epochs(reader.crop_hypnogram(hypnogram), AASM)

    annotations = mne.Annotations(onset, duration, description)
    annotations.crop(onset[1] - 1800, onset[-2] + 1800, verbose="ERROR")
    n_timesteps = int((onset[-1] + duration[-1]) * 100) + 10
    info = mne.create_info(1, 100.0)
    raw = mne.io.RawArray(np.zeros((1, n_timesteps)), info, verbose="ERROR")
    raw.set_annotations(annotations, verbose="ERROR")
    ids = {f"Sleep stage {stage}": label for stage, label in AASM.items()}
    ids = {key: label for key, label in ids.items() if key in set(raw.annotations.description)}
    events = np.empty((0, 3), int)
    if ids:
        events, _ = mne.events_from_annotations(raw, ids, chunk_duration=30.0, verbose="ERROR")
    assert start.tolist() == events[:, 0].tolist()
    assert y.tolist() == events[:, 2].tolist()


def test_epoch_at_the_end_of_the_recording_is_dropped(tmp_path):
    write_psg(tmp_path / "SC4001E0-PSG.edf", 4, 0)
    stretches = [(0, 30, "Sleep stage W"), (30, 300, "Sleep stage 1"), (330, 30, "Sleep stage ?")]
    write_hypnogram(tmp_path / "SC4001EC-Hypnogram.edf", stretches)
    data = fetch_sleep_edf(tmp_path)
    assert data.y.tolist() == [0, 1, 1, 1]
    assert len(data.recordings[0]) == 4 * LENGTH


def test_gaps_stay_in_the_recordings(tmp_path):
    write_psg(tmp_path / "SC4001E0-PSG.edf", 6, 0)
    stretches = [
        (0, 30, "Sleep stage W"),
        (30, 30, "Sleep stage R"),
        (60, 45, "Sleep stage ?"),
        (105, 30, "Sleep stage 4"),
        (135, 45, "Movement time"),
    ]
    write_hypnogram(tmp_path / "SC4001EC-Hypnogram.edf", stretches)
    data = fetch_sleep_edf(tmp_path, stages="published")
    assert data.start.tolist() == [0, 10500] and data.y.tolist() == [0, 4]
    assert [len(recording) for recording in data.recordings] == [13500]
    assert data.segments.tolist() == [[0, 0, 3000, 0], [0, 10500, 13500, 4]]


def test_bunch_is_complete(folder):
    data = folder[-1]
    assert data.channel_names == ["EEG Fpz-Cz", "EEG Pz-Oz"]
    assert data.sampling_rate == 100.0 and data.window_rate == 100.0 / 3
    for word in ("Kemp", "REM sleep is left out", "not new people", "Open Data Commons"):
        assert word in data.DESCR


def test_groups_are_subjects_or_recordings(folder):
    home, _, data = folder
    assert data.groups.tolist() == data.recording_subject[data.recording].tolist()
    other = fetch_sleep_edf(home, group="recording")
    np.testing.assert_array_equal(other.groups, other.recording)


@pytest.fixture
def damaged(folder, tmp_path):
    """Copy one night to damage it; return its folder."""
    for path in (folder[0] / "sleep_edf").glob("SC4001*"):
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["SC4001E0-PSG.edf", "SC4001EC-Hypnogram.edf"])
def test_file_that_is_cut_off(damaged, name):
    content = (damaged / name).read_bytes()
    (damaged / name).write_bytes(content[: 3 * len(content) // 4])
    with pytest.raises(ValueError, match=rf"{name} is cut off: it has \d+ of {len(content)} bytes"):
        fetch_sleep_edf(damaged)


@pytest.mark.parametrize("low", [b"nan     ", b"-1e308  "])
def test_channel_without_a_range(damaged, low):
    path = damaged / "SC4001E0-PSG.edf"
    path.write_bytes(path.read_bytes().replace(b"-192.0  ", low, 1))
    with pytest.raises(ValueError, match=r"PSG\.edf has a channel without a range"):
        fetch_sleep_edf(damaged)


def test_where_the_folder_is_looked_for(damaged, tmp_path_factory):
    expected = fetch_sleep_edf(damaged).X
    by_wget = "physionet.org/files/sleep-edfx/1.0.0/sleep-cassette"
    for name in ("sleep-cassette", "physionet-sleep-data", "sleep_edf", by_wget):
        home = tmp_path_factory.mktemp("home")
        shutil.copytree(damaged, home / name)
        np.testing.assert_array_equal(fetch_sleep_edf(home).X, expected)


def test_a_night_in_the_folder_of_mne_hides_no_data_set(damaged, tmp_path):
    expected = fetch_sleep_edf(damaged)
    shutil.copytree(damaged, tmp_path / "sleep_edf")
    (tmp_path / "physionet-sleep-data").mkdir()
    for path in damaged.glob("SC4001*"):
        shutil.copy(path, tmp_path / "physionet-sleep-data" / path.name.replace("SC400", "SC401"))
    with pytest.warns(UserWarning, match="sleep_edf holds 1 of the 39 nights of the subjects 0 to"):
        np.testing.assert_array_equal(fetch_sleep_edf(tmp_path).X, expected.X)


def test_two_recordings_of_one_night(damaged):
    shutil.copy(damaged / "SC4001E0-PSG.edf", damaged / "SC4001F0-PSG.edf")
    shutil.copy(damaged / "SC4001EC-Hypnogram.edf", damaged / "SC4001FC-Hypnogram.edf")
    with pytest.raises(
        ValueError, match="SC4001E0-PSG.edf and SC4001F0-PSG.edf in .* night 1: rem"
    ):
        fetch_sleep_edf(damaged)


def test_missing_hypnogram(damaged):
    (damaged / "SC4001EC-Hypnogram.edf").rename(damaged / "SC4002EC-Hypnogram.edf")
    with pytest.raises(FileNotFoundError, match="SC4001E.-Hypnogram.edf is missing"):
        fetch_sleep_edf(damaged)


def test_missing_polysomnogram(damaged):
    shutil.copy(damaged / "SC4001EC-Hypnogram.edf", damaged / "SC4002EC-Hypnogram.edf")
    with pytest.raises(FileNotFoundError, match=r"SC4002E\?-PSG.edf is missing, .*unpack"):
        fetch_sleep_edf(damaged)


def test_no_night_of_these_subjects(damaged):
    for path in list(damaged.iterdir()):
        path.rename(damaged / path.name.replace("SC40", "SC45"))
    with pytest.raises(ValueError, match="no recording of the subjects 0 to 19"):
        fetch_sleep_edf(damaged)


# The header of a file with -999 signals, whose fields would lie before the file.
FEWER_THAN_NONE = b"%-184d%-52d%-16d-999" % (0, 256, 1)


@pytest.mark.parametrize(
    "content",
    [b"", b"no EDF", b"0" + b" " * 300, FEWER_THAN_NONE],
    ids=["empty", "text", "blank", "fewer than none"],
)
@pytest.mark.parametrize("name", ["SC4001E0-PSG.edf", "SC4001EC-Hypnogram.edf"])
def test_damaged_file_is_named(damaged, name, content):
    # mne reads a damaged hypnogram as a hypnogram without annotations.
    (damaged / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}( is not a readable EDF|: the hypnogram has 0)"):
        fetch_sleep_edf(damaged)


def test_missing_channel(damaged):
    labels = ["EEG Fpz-Cz", "EEG Oz", "EOG horizontal", "Temp rectal"]
    write_psg(damaged / "SC4001E0-PSG.edf", 4, 0, labels=labels)
    with pytest.raises(ValueError, match="has no channel 'EEG Pz-Oz'"):
        fetch_sleep_edf(damaged)


def test_other_sampling_rate(damaged):
    write_psg(damaged / "SC4001E0-PSG.edf", 4, 0, rate=50)
    with pytest.raises(ValueError, match="sampled at 50 Hz instead of 100 Hz"):
        fetch_sleep_edf(damaged)


def test_other_sampling_rate_of_one_channel(damaged):
    """Once mne resampled it, in silence."""
    path = damaged / "SC4001E0-PSG.edf"
    path.write_bytes(path.read_bytes().replace(b"3000    ", b"1500    ", 1))
    with pytest.raises(ValueError, match="50 Hz instead of 100 Hz in 'EEG Fpz-Cz'"):
        fetch_sleep_edf(damaged)


@pytest.mark.parametrize(
    ("stretches", "message"),
    [
        ([(0, 30, "Sleep stage W")], r"Hypnogram.edf: the hypnogram has 1 annotation"),
        ([(0, 30, "Sleep stage ?"), (30, 60, "Movement time")], "scores no stage within"),
    ],
)
def test_hypnogram_without_a_night(damaged, stretches, message):
    write_hypnogram(damaged / "SC4001EC-Hypnogram.edf", stretches)
    with pytest.raises(ValueError, match=message):
        fetch_sleep_edf(damaged)


@pytest.mark.parametrize(
    "parameters",
    [{"downsample": 0}, {"downsample": 3001}, {"stages": "AASM"}, {"group": "night"}],
    ids=str,
)
def test_bad_parameters(tmp_path, parameters):
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} must be"):
        fetch_sleep_edf(tmp_path, **parameters)


def test_without_mne(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "mne", None)
    with pytest.raises(ImportError, match=r"sklearn-pulse\[eeg\]"):
        fetch_sleep_edf(folder[0])


def test_constant_channel_becomes_zero():
    signals = np.column_stack([np.full(1000, 0.1), np.arange(1000.0)])
    scaled = reader.standardize(signals)
    assert not scaled[:, 0].any()
    assert scaled[:, 1].std() == pytest.approx(1.0)
