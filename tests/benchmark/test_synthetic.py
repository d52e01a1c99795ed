"""The synthetic protocol: systems by noise level, oracles with labels, crossed tables."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.utils import Bunch

from sklearn_pulse import PulseOracleTransformer, presets
from sklearn_pulse.benchmark import Cell, Results, _synthetic, plan, report
from sklearn_pulse.benchmark.__main__ import main
from sklearn_pulse.benchmark._synthetic import NOISE_LEVELS, SYNTHETIC, SYSTEMS
from sklearn_pulse.benchmark._tables import EVERYTHING, tables
from sklearn_pulse.benchmark._tasks import load_once
from sklearn_pulse.windows import sliding_windows

from .toy import SMALL_SETTINGS

DATASETS = [
    f"{system}-{noise}" for system in ("lorenz", "thomas", "hindmarsh-rose") for noise in (0, 3)
]


def toy_system(system, noise, random_state):
    """Two frequencies, ten recordings each, as make_system_classification would give them."""
    toy_system.calls.append((system, noise, random_state))
    rng = np.random.default_rng(random_state)
    target = np.repeat([0, 1], 10)
    time = np.arange(100)[:, None]
    recordings = [
        np.sin((0.3 + 0.5 * fast) * time + rng.uniform(0, 6, size=(1, 3))) for fast in target
    ]
    windows = sliding_windows(recordings, 20, 20, y=target)
    split = np.tile(["train"] * 6 + ["val"] * 2 + ["test"] * 2, 2)
    return Bunch(
        X=windows.X.astype(np.float32),
        y=windows.y,
        groups=windows.groups,
        split=split[windows.recording],
        recordings=recordings,
        recording_split=split,
    )


@pytest.fixture
def toy(monkeypatch):
    toy_system.calls = []
    monkeypatch.setattr(_synthetic, "make_system_classification", toy_system)
    load_once.cache_clear()
    cut = presets.windows("pulse", "synthetic") | {"length": 20, "stride": 5, "stride_val": 10}
    labeled = presets.windows("pulseoracle", "synthetic") | {"length": 20}
    monkeypatch.setattr(presets, "get", lambda *args, **kwargs: dict(SMALL_SETTINGS))
    monkeypatch.setattr(
        presets,
        "windows",
        lambda method, _, **kwargs: labeled if method == "pulseoracle" else cut,
    )
    yield
    load_once.cache_clear()


def finish(folder, dataset, method, seed, accuracy):
    cell = Cell("synthetic", dataset, method, seed, "val", "small")
    Results(folder).write(cell, {}, {"scores": {"accuracy": accuracy}, "note": ""})


def test_every_system_of_the_table_at_every_noise_level():
    assert NOISE_LEVELS == (0, 1, 3, 5)
    assert len(SYNTHETIC) == 12
    assert set(SYSTEMS) == {"lorenz", "thomas", "hindmarsh_rose"}


@pytest.mark.slow
def test_the_oracles_get_labels_and_the_seed_draws_the_task(tmp_path, toy, monkeypatch):
    seen = {}
    fit = PulseOracleTransformer.fit

    def spy(self, X, y, **kwargs):
        seen[self.kind] = len(X), np.unique(y).tolist(), len(kwargs["y_val"])
        return fit(self, X, y, **kwargs)

    monkeypatch.setattr(PulseOracleTransformer, "fit", spy)
    methods = ("pulse", "oracle-positive", "oracle-negative", "untrained", "pulse-shared-encoder")
    arguments = ["synthetic", "--dataset", "lorenz-0", "thomas-3", "--method", *methods]
    arguments += ["--budget", "smoke", "--seeds", "2", "--out", str(tmp_path)]
    assert main(arguments) == 0
    records = list(Results(tmp_path))
    assert len(records) == 2 * 5 * 2
    assert all(0 <= record["scores"]["accuracy"] <= 1 for record in records)
    assert seen == {kind: (60, [0, 1], 20) for kind in ("positive", "negative")}
    assert set(toy_system.calls) == {
        (s, n, r) for s, n in (("lorenz", 0.0), ("thomas", 3.0)) for r in (0, 1)
    }
    assert main(["report", "--out", str(tmp_path)]) == 0
    assert {path.name for path in (tmp_path / "tables").glob("*.png")} == {
        f"synthetic-{name}-val-smoke.png" for name in ("Lorenz", "Thomas")
    }


@pytest.mark.usefixtures("few_penalties")
def test_a_chaotic_source_of_the_comparison_is_drawn_and_loaded_once(tmp_path, toy):
    arguments = ["comparison", "--dataset", "lorenz-3", "--seeds", "1", "--out", str(tmp_path)]
    for method in ("statistics", "majority"):
        assert main([*arguments, "--method", method, "--budget", "smoke"]) == 0
    assert toy_system.calls == [("lorenz", 3.0, 0)]
    assert len({record["cell"]["method"] for record in Results(tmp_path)}) == 2


def test_the_mean_is_over_systems_seed_by_seed(tmp_path):
    rng = np.random.default_rng(0)
    scores = {}
    for dataset in DATASETS:
        for seed in (0, 1):
            scores[dataset, seed] = rng.uniform(0.5, 1)
            finish(tmp_path, dataset, "pulse", seed, scores[dataset, seed])
    finish(tmp_path, "lorenz-0", "ts2vec", 0, 0.9)  # the other systems are missing
    found = {table.dataset: table for table in tables(Results(tmp_path))}
    assert list(found) == [EVERYTHING, "Lorenz", "Thomas", "Hindmarsh-Rose"]
    assert found["Thomas"].values["pulse", "noise 3"].of_seed == {
        seed: scores["thomas-3", seed] for seed in (0, 1)
    }
    for noise in (0, 3):
        means = [
            np.mean([scores[d, s] for d in DATASETS if d.endswith(str(noise))]) for s in (0, 1)
        ]
        assert found[EVERYTHING].values["pulse", f"noise {noise}"].per_seed == pytest.approx(means)
    assert ("ts2vec", "noise 0") not in found[EVERYTHING].values
    assert found["Lorenz"].values["ts2vec", "noise 0"].mean == 0.9
    assert found[EVERYTHING].paper("pulse", "noise 3") == pytest.approx(0.8342)
    assert found[EVERYTHING].paper("oracle-positive", "noise 5") == pytest.approx(0.8265)
    assert found["Lorenz"].paper("pulse", "noise 3") is None


def test_a_mean_over_systems_that_were_not_asked_for_is_no_table(tmp_path):
    """All its entries would be called missing, though nobody asked for them."""
    finish(tmp_path, "lorenz-0", "pulse", 0, 0.8)
    Results(tmp_path).note_asked(plan(["synthetic"], datasets=["lorenz-0"], budget="smoke"))
    Results(tmp_path).note_asked([Cell("synthetic", "lorenz-0", "pulse", 0, "val", "small")])
    text = report(Results(tmp_path), tmp_path / "tables")
    assert text.startswith("### Parameters of chaotic systems, Lorenz, validation part")
    assert "mean over systems" not in text
    others = plan(["synthetic"], datasets=["thomas-0", "hindmarsh-rose-3"], methods=["pulse"])
    Results(tmp_path).note_asked(others)
    text = report(Results(tmp_path), tmp_path / "tables")
    assert "mean over systems" in text  # since other means are missing


def test_the_order_of_the_oracles_is_told_with_its_spread(tmp_path):
    for dataset in DATASETS:
        for seed, positive in enumerate((0.9, 0.75)):
            finish(tmp_path, dataset, "oracle-positive", seed, positive)
            finish(tmp_path, dataset, "oracle-negative", seed, 0.8)
            finish(tmp_path, dataset, "pulse", seed, positive - 0.1)
    text = report(Results(tmp_path), tmp_path / "tables")
    assert "positive oracle minus PULSE: noise 0: +10.0 ± 0.0 (above in 2 of 2)" in text
    assert "oracle minus negative oracle: noise 0: +2.5 ± 7.5 (above in 1 of 2)" in text
    assert "minus untrained encoder" not in text  # which is not there
    assert "| positive oracle | 2 | **82.5 ± 7.5** |" in text


def test_training_is_told_beside_none_on_the_seeds_of_both(tmp_path):
    for dataset in DATASETS:
        for seed, untrained in enumerate((0.7, 0.9, 0.1)):
            finish(tmp_path, dataset, "untrained", seed, untrained)
        for seed in (0, 1):
            finish(tmp_path, dataset, "pulse", seed, 0.8)
    text = report(Results(tmp_path), tmp_path / "tables")
    told = "Seed by seed, PULSE minus untrained encoder: noise 0: +0.0 ± 10.0 (above in 1 of 2)"
    assert told in text


def test_a_single_seed_has_no_spread(tmp_path):
    for dataset in DATASETS:
        finish(tmp_path, dataset, "pulse", 0, 0.8)
    text = report(Results(tmp_path), tmp_path / "tables")
    assert "| PULSE | 1 | **80.0** |" in text
    assert "± 0.0" not in text


def test_columns_with_other_numbers_of_seeds(tmp_path):
    for dataset in DATASETS:
        for seed in range(3 if dataset.endswith("0") else 2):
            finish(tmp_path, dataset, "pulse", seed, 0.8)
    Results(tmp_path).note_asked(plan(["synthetic"], methods=["ts2vec"], n_seeds=1))
    text = report(Results(tmp_path), tmp_path / "tables")
    assert "| PULSE | 2-3 | **80.0 ± 0.0** |" in text
    assert "| TS2Vec | 0 | missing |" in text


def test_the_picture_has_accuracies_and_gains_over_no_training(tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: seen.update({path.name: self}))
    for dataset in DATASETS:
        finish(tmp_path, dataset, "pulse", 0, 0.8)
    report(Results(tmp_path), tmp_path / "tables")
    accuracy, gain = seen["synthetic-all-val-small.png"].axes
    assert [bar.get_label() for bar in accuracy.containers] == ["PULSE"]
    assert [text.get_text() for text in gain.texts] == ["missing"]

    for dataset in DATASETS:
        finish(tmp_path, dataset, "pulse", 1, 0.6)
        for seed, untrained in enumerate((0.7, 0.9, 0.1)):
            finish(tmp_path, dataset, "untrained", seed, untrained)
    report(Results(tmp_path), tmp_path / "tables")
    accuracy, gain = seen["synthetic-all-val-small.png"].axes
    means = {bar.get_label(): bar.lines[0].get_ydata() for bar in accuracy.containers}
    assert means["PULSE"] == pytest.approx([0.7, 0.7])  # noise 0 and 3
    assert means["untrained encoder"] == pytest.approx([1.7 / 3] * 2)
    (pulse,) = gain.containers
    assert pulse.lines[0].get_ydata() == pytest.approx([(0.1 - 0.3) / 2] * 2)
    assert pulse.lines[0].get_xdata() == pytest.approx([0, 1], abs=0.35)  # two columns
    assert gain.get_yscale() == "symlog"

    for dataset in DATASETS:
        finish(tmp_path, dataset, "minirocket", 2, 0.45)  # 35 points above
    report(Results(tmp_path), tmp_path / "tables")
    _, gain = seen["synthetic-all-val-small.png"].axes
    low, high = gain.get_ylim()
    ticks = {t.get_text() for t in gain.get_yticklabels() if low < t.get_position()[1] < high}
    assert high > 0.35 and {"-10", "0", "+10", "+20"} <= ticks


def test_every_method_is_told_beside_the_untrained_encoder_on_the_same_seeds(tmp_path):
    for dataset in SYNTHETIC:
        for seed, untrained in enumerate((0.7, 0.9)):
            finish(tmp_path, dataset, "untrained", seed, untrained)
            finish(tmp_path, dataset, "pulse", seed, 0.8)
        finish(tmp_path, dataset, "minirocket", 1, 1.0)
    Results(tmp_path).note_asked(plan(["synthetic"], methods=["ts2vec"], n_seeds=1))
    text = report(Results(tmp_path), tmp_path / "tables")
    (mean, *_) = text.split("### ")[1:]
    (_, gains) = mean.split("Differences from the untrained encoder, on the seeds that both have:")
    assert "| PULSE | 2 |" + " +0.0 ± 10.0 |" * 4 in gains
    assert "| MiniRocket | 1 |" + " +10.0 |" * 4 in gains
    assert "| TS2Vec | 0 |" + " missing |" * 4 in gains
    assert "| untrained" not in gains
