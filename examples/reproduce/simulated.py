"""
Simulated recordings of people: heart rhythms and sleep
=======================================================

`blocks.py` scores choices of `CrossPredictionTransformer` on recordings, and on these, since real
sources are few. Each person has a physiology of their own: shapes of beats, rates, spectra, gains
and noise. So what is easiest to tell is who was recorded, as in life.

An ECG has two leads and four rhythms: sinus rhythm, atrial fibrillation (no P wave, irregular
intervals, fibrillatory waves), premature ventricular beats, and flutter (a sawtooth, of which every
second, third or fourth wave is conducted). Sleep has a channel of EEG and one of the eyes, and five
stages, which follow one another as in a Markov chain.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.signal import butter, sosfilt
from sklearn.utils import Bunch

SINUS, FIBRILLATION, PREMATURE, FLUTTER = range(4)
ECG_RATE, ECG_LENGTH = 80, 640  # in Hz, and in time steps
SLEEP_RATE, SLEEP_LENGTH = 50, 500
SETTLING = 200  # time steps of a filter before a window
WAKE, N1, N2, N3, REM = range(5)
BANDS = (0.5, 4), (4, 8), (8, 12), (12, 16), (16, 24)  # in Hz
BAND_POWERS = (  # of each stage
    (1.0, 0.6, 1.5, 0.3, 0.6),
    (1.2, 1.2, 0.6, 0.4, 0.4),
    (2.0, 1.0, 0.4, 0.9, 0.3),
    (5.0, 1.0, 0.3, 0.4, 0.2),
    (1.0, 1.1, 0.6, 0.3, 0.5),
)
EYES = (2.5, 0.3), (1.2, 0.3), (0.5, 0.2), (0.8, 0.2), (2.0, 0.3)  # slow movements, and noise


def of_people(X, y, person):
    """Return windows, each person a recording, in order of time."""
    X, y, person = np.array(X, dtype=np.float32), np.array(y), np.array(person)
    order = np.concatenate([np.arange(n) for n in np.bincount(person)])
    return Bunch(X=X, y=y, groups=person, recording=person, start=order * X.shape[1], split=None)


# %%
# Heart rhythms
# -------------


class Heart:
    """What makes the ECG of a person theirs."""

    def __init__(self, rng):
        self.rate = rng.uniform(50, 100)
        shape = rng.normal(size=(2, 5)) * 0.5
        usual = np.array([[0.15, 1.2, -0.3, 0.3, 0.1], [0.1, 0.6, -0.5, 0.2, 0.1]])
        self.waves = shape + usual * rng.lognormal(0, 0.5, (2, 5))  # P, Q or R, S and T
        self.waves[1] *= rng.choice([-1, 1])  # the second lead may be the other way round
        self.widths = np.array([0.03, 0.014, 0.016, 0.05, 0.03]) * rng.uniform(0.7, 1.5, 5)
        self.offsets = np.array([-0.17, 0, 0.035, 0.27, 0.0]) * rng.uniform(0.85, 1.15)
        self.noise, self.wander = rng.uniform(0.02, 0.12), rng.uniform(0.02, 0.3)
        self.atrial_rate, self.atrial_size = rng.uniform(4.5, 8), rng.uniform(0.02, 0.12)

    def window(self, rhythm, rng):
        """Return a window of a rhythm, of shape (n_timesteps, 2)."""
        usual = 60 / (self.rate * rng.uniform(0.93, 1.07))
        interval, is_premature = self._intervals(rhythm, usual, rng)
        beats = np.cumsum(interval) - rng.uniform(0, usual) - 1
        time = np.arange(ECG_LENGTH) / ECG_RATE
        X = np.zeros((ECG_LENGTH, 2))
        is_atrial = rhythm in (FIBRILLATION, FLUTTER)
        for i in range(1 if is_atrial else 0, 4):  # without P waves
            near = beats[~is_premature] + self.offsets[i] * np.sqrt(usual)
            X += bumps(time, near, self.widths[i])[:, None] * self.waves[:, i]
        if is_premature.any():
            early = beats[is_premature]
            X += bumps(time, early, 0.05)[:, None] * self.waves[:, 1] * 1.2
            X -= bumps(time, early + 0.25, 0.08)[:, None] * self.waves[:, 1] * 0.5
        if is_atrial:
            drift = 0.3 * np.cumsum(rng.normal(size=ECG_LENGTH)) / ECG_RATE**0.5
            phase = 2 * np.pi * (self.atrial_rate * time + drift)
            size = self.atrial_size * (1 if rhythm == FIBRILLATION else 2)
            sawtooth = (np.sin(phase) + 0.4 * np.sin(2 * phase))[:, None]
            X += size * sawtooth * np.array([0.4, 1]) * np.sign(self.waves[:, 1])
        breath = np.sin(2 * np.pi * rng.uniform(0.1, 0.4) * time + rng.uniform(0, 6))
        return X + self.wander * breath[:, None] + self.noise * rng.normal(size=X.shape)

    def _intervals(self, rhythm, usual, rng, n_beats=40):
        """Return intervals between beats, in seconds, and which beats are premature."""
        is_premature = np.zeros(n_beats, dtype=bool)
        if rhythm == SINUS:
            breath = np.sin(np.arange(n_beats) * rng.uniform(0.8, 2) + rng.uniform(0, 6))
            interval = 1 + 0.03 * breath + rng.uniform(0.005, 0.04) * rng.normal(size=n_beats)
            return usual * interval, is_premature
        if rhythm == FIBRILLATION:
            interval = usual * rng.uniform(0.6, 1.05)
            interval *= np.exp(rng.uniform(0.12, 0.3) * rng.normal(size=n_beats))
            return np.maximum(interval, 0.3), is_premature
        if rhythm == PREMATURE:
            every = rng.choice([2, 3, 4])
            is_premature = np.arange(n_beats) % every == rng.integers(every)
            interval = usual * (1 + 0.02 * rng.normal(size=n_beats))
            interval[is_premature] *= 0.65
            interval[np.roll(is_premature, 1)] *= 1.3  # the pause after it
            return interval, is_premature
        if rng.random() < 0.5:
            shares = rng.dirichlet([1, 1, 1])
            conducted = rng.choice([2, 3, 4], size=n_beats, p=shares)
        else:
            conducted = np.full(n_beats, rng.choice([2, 3, 4]))
        return conducted / self.atrial_rate, is_premature


def bumps(time, centers, width):
    """Return the sum of Gaussian bumps, of shape (n_timesteps,)."""
    return np.exp(-0.5 * ((time[:, None] - centers) / width) ** 2).sum(1)


def ecg(seed, *, mostly_sinus):
    """Return windows of two leads, of people some of whom have another rhythm for a while.

    If `mostly_sinus`, 20 people have 50 windows each, else 40 have 30, and each rhythm as often.
    """
    rng = np.random.default_rng(seed)
    n_people, n_windows = (20, 50) if mostly_sinus else (40, 30)
    windows, rhythms, person = [], [], []
    for number in range(n_people):
        heart = Heart(rng)
        other = rng.choice([0, 0, 1, 1, 2, 3] if mostly_sinus else [0, 1, 2, 3])
        share = rng.choice([0.2, 0.5, 0.9] if mostly_sinus else [0.5, 0.9]) if other else 0
        n_other = int(share * n_windows)
        first = rng.integers(0, n_windows - n_other + 1)
        of_person = np.zeros(n_windows, dtype=int)
        of_person[first : first + n_other] = other
        windows += [heart.window(rhythm, rng) for rhythm in of_person]
        rhythms += [*of_person]
        person += [number] * n_windows
    return of_people(windows, rhythms, person)


# %%
# Sleep
# -----


class Sleeper:
    """What makes the sleep of a person theirs."""

    def __init__(self, rng):
        self.gain = rng.lognormal(0, 0.35, 2)
        powers, eyes = np.array(BAND_POWERS), np.array(EYES)
        self.powers = powers * rng.lognormal(0, 0.3, (1, 5)) * rng.lognormal(0, 0.15, powers.shape)
        self.eyes = eyes * rng.lognormal(0, 0.3, eyes.shape)
        self.leak = rng.uniform(0.1, 0.5)  # of the EEG into the other channel

    def window(self, stage, rng):
        """Return a window of a stage, of shape (n_timesteps, 2)."""
        powers = self.powers[stage] * rng.lognormal(0, 0.25, 5)
        noise = rng.normal(size=(5, SLEEP_LENGTH + SETTLING))
        eeg = np.zeros(SLEEP_LENGTH)
        for power, band, drawn in zip(powers, BANDS, noise, strict=True):
            passed = in_band(band, drawn)
            eeg += np.sqrt(power) * passed / np.std(passed)
        if stage == N2:  # spindles
            time = np.arange(SLEEP_LENGTH) / SLEEP_RATE
            for _ in range(rng.integers(0, 4)):
                around = np.exp(-(((time - rng.uniform(1, 9)) / 0.4) ** 2))
                eeg += 2 * around * np.sin(2 * np.pi * 13.5 * time)
        slow, noisy = self.eyes[stage]
        drawn = rng.normal(size=SLEEP_LENGTH + SETTLING)
        eyes = 2 * np.sqrt(slow) * in_band(BANDS[0], drawn)
        if stage == REM:  # movements come in bursts
            eyes *= np.repeat(rng.random(10) < 0.4, SLEEP_LENGTH // 10)
        eyes += noisy * rng.normal(size=SLEEP_LENGTH) + self.leak * eeg
        eeg = self.gain[0] * eeg + 0.2 * rng.normal(size=SLEEP_LENGTH)
        return np.stack([eeg, self.gain[1] * eyes], axis=1)


def in_band(band, noise):
    """Return what a filter of a band lets through, once it has settled."""
    return filtered("bandpass", band, noise, SLEEP_RATE)


def filtered(kind, frequencies, noise, rate, order=2, settling=SETTLING):
    """Return what a filter lets through, once it has settled, of shape (..., n_timesteps)."""
    return sosfilt(_designed(kind, frequencies, rate, order), noise)[..., settling:]


@cache
def _designed(kind, frequencies, rate, order):
    """Return the sections of a filter; the few that there are pass thousands of signals."""
    return butter(order, frequencies, kind, fs=rate, output="sos")


def sleep(seed, n_people=16, n_windows=60):
    """Return windows of one EEG channel and one of the eyes, of people who sleep."""
    rng = np.random.default_rng(seed)
    stays = np.full((5, 5), 0.05) + 0.75 * np.eye(5)
    stays /= stays.sum(1, keepdims=True)
    windows, stages, person = [], [], []
    for number in range(n_people):
        sleeper, stage = Sleeper(rng), WAKE
        for _ in range(n_windows):
            stage = rng.choice(5, p=stays[stage])
            windows.append(sleeper.window(stage, rng))
            stages.append(stage)
            person.append(number)
    return of_people(windows, stages, person)
