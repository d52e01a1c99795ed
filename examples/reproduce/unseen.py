"""
Simulated recordings that no choice was made on
===============================================

`simulated.py` holds what choices of `CrossPredictionTransformer` were made on. The recordings here
were simulated afterwards, and each has something that no other source has; `archives.py` scores the
methods on them.

- `ecg-alone` and `ecg-three`: ECGs of many people, each of whom has one rhythm and one window, or
  three. So a recording is hardly longer than a window.
- `eeg-imagery`: EEG of eight channels, of people who imagine to move the left or the right hand, or
  rest, in trials of random order. The power of 9 to 12 Hz and of the double falls over one
  hemisphere. How the sources reach the channels is each person's own.
- `emg-gestures`: eight electrodes around a forearm, and seven gestures, each of which is held for a
  while. Each person wears the ring of electrodes turned in another way.
- `eeg-seizures`: EEG of four channels, in which a tenth of the windows hold spikes and waves, and
  another tenth movement. So one class is rare.
"""

from __future__ import annotations

import numpy as np
from simulated import SETTLING, Heart, filtered, of_people


def of_one_power(signals):
    """Return signals, each with a standard deviation of 1."""
    return signals / signals.std(1, keepdims=True)


def background(rng, n_signals, n_timesteps, lowest, rate):
    """Return random walks without the slowest frequencies, as an EEG has without a rhythm."""
    walks = np.cumsum(rng.normal(size=(n_signals, n_timesteps + SETTLING)), axis=1)
    return of_one_power(filtered("highpass", lowest, walks, rate, order=1))


def waves(rng, n_signals, n_timesteps, band, rate):
    """Return random waves of a band of frequencies."""
    noise = rng.normal(size=(n_signals, n_timesteps + SETTLING))
    return of_one_power(filtered("bandpass", band, noise, rate))


def short_ecg(seed, n_people, n_windows):
    """Return windows of two leads, of people each of whom has one of four rhythms."""
    rng = np.random.default_rng(seed)
    windows, rhythms = [], []
    for _ in range(n_people):
        heart, rhythm = Heart(rng), rng.choice([0, 0, 1, 2, 3])
        windows += [heart.window(rhythm, rng) for _ in range(n_windows)]
        rhythms += [rhythm] * n_windows
    return of_people(windows, rhythms, np.repeat(np.arange(n_people), n_windows))


# %%
# Imagined movements
# ------------------

LEFT, RIGHT, REST = range(3)
IMAGERY_RATE, IMAGERY_LENGTH, IMAGERY_CHANNELS = 128, 256, 8
OVER_HEMISPHERES = np.array([[0, 0.5, 1, 0.5, 0, 0, 0, 0], [0, 0, 0, 0, 0.5, 1, 0.5, 0]]).T


class Imagination:
    """What makes the EEG of a person who imagines movements theirs."""

    def __init__(self, rng):
        self.frequency = rng.uniform(9, 12)
        self.others = rng.normal(size=(IMAGERY_CHANNELS, 8))
        self.mixing = OVER_HEMISPHERES + 0.25 * rng.normal(size=(IMAGERY_CHANNELS, 2))
        self.gain = rng.lognormal(0, 0.3, IMAGERY_CHANNELS)
        self.falls_to = rng.uniform(0.3, 0.7)
        self.beta = rng.uniform(18, 24)

    def window(self, movement, rng):
        """Return a window of a movement, of shape (n_timesteps, n_channels)."""
        amplitude = np.ones(2) * rng.lognormal(0, 0.3) * rng.lognormal(0, 0.2, 2)
        if movement != REST:
            amplitude[1 - movement] *= self.falls_to  # over the other hemisphere
        size = 2, IMAGERY_LENGTH
        slow = waves(rng, *size, (self.frequency - 1.5, self.frequency + 1.5), IMAGERY_RATE)
        fast = waves(rng, *size, (self.beta - 2, self.beta + 2), IMAGERY_RATE)
        other = background(rng, 8, IMAGERY_LENGTH, 1, IMAGERY_RATE)
        eeg = self.mixing @ (amplitude[:, None] * (1.2 * slow + 0.5 * fast))
        eeg += 0.75 * self.others @ other / np.sqrt(8)
        eeg += 0.3 * rng.normal(size=eeg.shape)
        return (self.gain[:, None] * eeg).T


def imagery(seed, n_people=10, n_trials=80):
    """Return windows of eight channels, of people who imagine movements in random order."""
    rng = np.random.default_rng(seed)
    windows, movements = [], []
    for _ in range(n_people):
        person = Imagination(rng)
        for _ in range(n_trials):
            movements.append(rng.integers(3))
            windows.append(person.window(movements[-1], rng))
    return of_people(windows, movements, np.repeat(np.arange(n_people), n_trials))


# %%
# Muscles of a forearm
# --------------------

N_ELECTRODES, N_MUSCLES, N_GESTURES = 8, 5, 7
MUSCLE_RATE, MUSCLE_LENGTH = 200, 200
N_HELD = 5  # windows for which a gesture is held


class Forearm:
    """What makes the muscles of a person, and the place of the electrodes, theirs."""

    def __init__(self, rng, places, activity):
        turned, width = rng.normal(0, 0.35), rng.uniform(0.5, 0.9)
        self.gain = rng.lognormal(0, 0.4)
        self.activity = activity * rng.lognormal(0, 0.25, activity.shape)
        center = rng.uniform(40, 70)  # of the spectrum, in Hz
        self.band = center - 25, min(center + 30, 98)
        electrodes = 2 * np.pi * np.arange(N_ELECTRODES) / N_ELECTRODES
        near = np.exp(-(1 - np.cos(electrodes[:, None] - places - turned)) / width**2)
        self.mixing = near * rng.lognormal(0, 0.2, (N_ELECTRODES, 1))

    def window(self, gesture, effort, rng):
        """Return a window of a gesture, of shape (n_timesteps, n_channels)."""
        noise = rng.normal(size=(N_MUSCLES, MUSCLE_LENGTH + 50))
        signal = filtered("bandpass", self.band, noise, MUSCLE_RATE, order=1, settling=50)
        drift = np.cumsum(rng.normal(size=signal.shape), axis=1) / np.sqrt(MUSCLE_LENGTH)
        active = (self.activity[gesture] * effort)[:, None] * np.exp(0.6 * drift) * signal
        noise = 0.02 * rng.normal(size=(N_ELECTRODES, MUSCLE_LENGTH))
        return (self.gain * self.mixing @ active + noise).T


def muscles(seed, n_people=12, n_rounds=4):
    """Return windows of eight electrodes, of people who hold seven gestures in each round."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 2 * np.pi, N_MUSCLES)
    activity = rng.uniform(0, 1, (N_GESTURES, N_MUSCLES)) ** 2
    activity[0] *= 0.05  # rest
    windows, gestures = [], []
    for _ in range(n_people):
        forearm = Forearm(rng, places, activity)
        for _ in range(n_rounds):
            for gesture in rng.permutation(N_GESTURES):
                effort = rng.lognormal(0, 0.3)
                windows += [forearm.window(gesture, effort, rng) for _ in range(N_HELD)]
                gestures += [gesture] * N_HELD
    n_windows = n_rounds * N_GESTURES * N_HELD
    return of_people(windows, gestures, np.repeat(np.arange(n_people), n_windows))


# %%
# Seizures
# --------

SEIZURE_RATE, SEIZURE_LENGTH, SEIZURE_CHANNELS = 64, 256, 4


class Patient:
    """What makes the EEG of a patient, and their seizures, theirs."""

    def __init__(self, rng):
        self.mixing = np.eye(SEIZURE_CHANNELS) + 0.4 * rng.normal(size=(SEIZURE_CHANNELS,) * 2)
        self.spikes = rng.uniform(2.5, 5)  # per second
        self.focus = rng.integers(SEIZURE_CHANNELS)
        self.alpha = rng.uniform(8, 12)
        self.gain = rng.lognormal(0, 0.4)

    def has_seizure(self, n_windows, rng):
        """Return which windows of a recording hold a seizure, of two or three."""
        found = np.zeros(n_windows, dtype=int)
        for _ in range(rng.integers(2, 4)):
            first = rng.integers(n_windows - 8)
            found[first : first + rng.integers(3, 7)] = 1
        return found

    def window(self, is_seizure, vigilance, rng):
        """Return a window, of shape (n_timesteps, n_channels)."""
        size = SEIZURE_CHANNELS, SEIZURE_LENGTH
        other = background(rng, *size, 0.5, SEIZURE_RATE)
        alpha = waves(rng, *size, (self.alpha - 1, self.alpha + 1), SEIZURE_RATE)
        eeg = np.exp(0.2 * rng.normal()) * other + 0.5 * np.exp(vigilance) * alpha
        if is_seizure:
            rate = self.spikes * (1 + 0.1 * rng.normal())
            phase = 2 * np.pi * rate * np.arange(SEIZURE_LENGTH) / SEIZURE_RATE + rng.uniform(0, 6)
            walk = np.cumsum(rng.normal(size=SEIZURE_LENGTH))
            phase += 0.3 * walk / np.sqrt(SEIZURE_RATE)
            spikes = np.abs(np.sin(phase / 2)) ** 8 - 0.3 * np.cos(phase)
            reach = np.where(np.arange(SEIZURE_CHANNELS) == self.focus, 1, 0.3)
            eeg = eeg + np.outer(reach, spikes) * rng.uniform(0.6, 1.6)
        if rng.random() < 0.1:  # the patient moves
            pull = rng.normal(size=SEIZURE_CHANNELS)
            eeg = eeg + np.outer(pull, np.cumsum(rng.normal(size=SEIZURE_LENGTH))) / 4
        return (self.gain * self.mixing @ eeg).T


def seizures(seed, n_people=12, n_windows=100):
    """Return windows of four channels, of patients who have two or three seizures each."""
    rng = np.random.default_rng(seed)
    windows, classes = [], []
    for _ in range(n_people):
        patient = Patient(rng)
        found = patient.has_seizure(n_windows, rng)
        vigilance = 0.2 * np.cumsum(rng.normal(size=n_windows))
        windows += [patient.window(*each, rng) for each in zip(found, vigilance, strict=True)]
        classes += [*found]
    return of_people(windows, classes, np.repeat(np.arange(n_people), n_windows))


SOURCES = {
    "ecg-alone": lambda: short_ecg(0, 600, 1),
    "ecg-three": lambda: short_ecg(1, 200, 3),
    "eeg-imagery": lambda: imagery(0),
    "emg-gestures": lambda: muscles(0),
    "eeg-seizures": lambda: seizures(0),
}
