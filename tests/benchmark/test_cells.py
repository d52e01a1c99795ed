"""Finished cells on disk."""

import dataclasses
import json
import os

import joblib
import pytest

from sklearn_pulse.benchmark import Cell, Results

CELL = Cell("linear-probe", "har", "pulse", 0, "val", "small")


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "results")


def test_a_cell_is_one_file_that_comes_back(results):
    assert results.read(CELL) is None
    results.write(CELL, {"lr": 0.1}, {"scores": {"accuracy": 0.5}})
    record = results.read(CELL)
    assert record["scores"] == {"accuracy": 0.5}
    assert Cell(**record["cell"]) == CELL
    assert [r["cell"]["seed"] for r in results] == [0]
    files = [path for path in results.folder.rglob("*") if path.is_file()]
    assert [path.suffix for path in files] == [".json"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_others_may_read_a_cell_as_any_new_file(results):
    results.write(CELL, {}, {"scores": {}})
    path = results.folder / "cells" / CELL.path
    plain = path.with_name("plain")
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_write_that_fails_leaves_no_file(results, monkeypatch):
    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr("sklearn_pulse.benchmark._cells.os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        results.write(CELL, {}, {"scores": {}})
    assert [path for path in results.folder.rglob("*") if path.is_file()] == []


def test_other_settings_are_another_result(results):
    results.write(CELL, {"lr": 0.1, "sizes": (1, 2)}, {"scores": {}})
    assert results.has(CELL, {"lr": 0.1, "sizes": (1, 2)})
    assert not results.has(CELL, {"lr": 0.2, "sizes": (1, 2)})
    results.write(CELL, {"lr": 0.2}, {"scores": {}})
    assert len(list(results)) == 1


def test_a_cell_that_is_set_aside_during_a_report_is_left_out(results):
    """Another process may be running cells anew, whose settings have changed."""
    for seed in range(3):
        results.write(dataclasses.replace(CELL, seed=seed), {}, {"scores": {}})
    records = iter(results)
    seeds = [next(records)["cell"]["seed"]]
    results.set_aside(dataclasses.replace(CELL, seed=1))
    assert seeds + [record["cell"]["seed"] for record in records] == [0, 2]


def test_every_part_of_its_name_tells_cells_apart():
    others = [
        Cell("ablation", "har", "pulse", 0, "val", "small"),
        Cell("linear-probe", "ecg", "pulse", 0, "val", "small"),
        Cell("linear-probe", "har", "untrained", 0, "val", "small"),
        Cell("linear-probe", "har", "pulse", 1, "val", "small"),
        Cell("linear-probe", "har", "pulse", 0, "test", "small"),
        Cell("linear-probe", "har", "pulse", 0, "val", "full"),
    ]
    assert len({cell.path for cell in [CELL, *others]}) == 7


def test_a_format_that_is_not_known_is_as_if_it_were_not_there(results):
    results.write(CELL, {}, {"scores": {}})
    path = results.folder / "cells" / CELL.path
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    assert results.read(CELL) is None
    assert not results.has(CELL, {})
    assert list(results) == []


def test_what_a_killed_process_left_half_written_is_no_cell(results):
    path = results.folder / "cells" / CELL.path
    path.parent.mkdir(parents=True)
    (path.parent / "abc.partial").write_text('{"format": 1, "cell"')
    assert list(results) == []


def test_a_damaged_file_is_named(results):
    results.write(CELL, {}, {"scores": {}})
    path = results.folder / "cells" / CELL.path
    path.write_text(path.read_text()[:-9])
    for read in (lambda: results.read(CELL), lambda: list(results)):
        with pytest.raises(
            ValueError, match=r"val-small-0\.json is no finished cell .*: delete it"
        ):
            read()


def test_a_cell_of_an_earlier_version_has_no_checksum(results):
    content = {"scores": {"accuracy": [0.1 + 0.2, 1e-300]}, "note": "µV", "parts": {1: 2}}
    results.write(CELL, {"sizes": (1, 2)}, content)
    path = results.folder / "cells" / CELL.path
    record = results.read(CELL)
    assert record["scores"] == content["scores"]
    path.write_text(json.dumps(record))
    assert "checksum" not in path.read_text()
    assert results.read(CELL) == record


def test_a_cell_without_scores_is_not_finished(results):
    results.write(CELL, {}, {"note": ""})
    with pytest.raises(ValueError, match="is no finished cell .its scores are damaged.: delete it"):
        results.read(CELL)


def _look(folder, seed):
    for _ in range(50):
        Results(folder).log_look(Cell("linear-probe", "har", "pulse", seed, "test", "small"))


@pytest.mark.xdist_group("workers")
def test_looks_at_the_test_part_of_several_processes_are_all_logged(results):
    assert results.looks() == []
    joblib.Parallel(2)(joblib.delayed(_look)(results.folder, seed) for seed in range(2))
    looks = results.looks()
    assert len(looks) == 100
    assert sum(look["seed"] for look in looks) == 50
    assert all(look["time"].endswith("Z") for look in looks)


def test_an_empty_line_is_no_look(results):
    """A process that looks at the end of the log while another writes there may leave one."""
    _look(results.folder, 0)
    path = results.folder / "test_looks.jsonl"
    looks, text = results.looks(), path.read_text()
    path.write_text(text.replace("\n", "\n\n", 1))
    assert results.looks() == looks


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"pulse"', '"majority"'), "holds another cell"),
        (lambda text: text.replace('"seed"', '"sead"'), "names no cell"),
        (lambda text: text.replace("0.5", "NaN"), "NaN is not JSON"),
        (lambda text: text.replace("0.5", "null"), "scores are damaged"),
        (lambda text: text.replace("0.5", '["good"]'), "scores are damaged"),
        (lambda text: text.replace("0.5", "[]"), "scores are damaged"),
        (lambda text: text.replace("0.5", "1e999"), "scores are damaged"),
        (lambda text: text.replace('"scores"', '"note": 1, "scores"'), "note is damaged"),
        (lambda text: text.replace('"scores"', '"training": [], "scores"'), "training is damaged"),
        (lambda text: text.replace('"scores"', '"versions": "1", "scores"'), "versions is damaged"),
        (lambda text: "[]", "no dictionary"),
        (lambda text: "[" * 10**5, "nested too deeply"),
        (lambda text: "{}", "no format"),
        (lambda text: text.replace('"identity"', '"identities"'), "no identity"),
        (lambda text: text.replace("0.5", "0.6"), "does not hold what was written"),
        (lambda text: text.replace('"scores"', '"note": "?", "scores"'), "what was written"),
        (lambda text: text.replace('"checksum": "', '"checksum": "0'), "what was written"),
    ],
)
def test_a_cell_that_is_none_is_named(results, change, message):
    results.write(CELL, {}, {"scores": {"accuracy": 0.5}})
    path = results.folder / "cells" / CELL.path
    path.write_text(change(path.read_text()))
    for read in (lambda: results.read(CELL), lambda: list(results)):
        with pytest.raises(ValueError, match=rf"val-small-0\.json is no .*{message}.*: delete it"):
            read()


@pytest.mark.parametrize("line", [b'{"time": "2024', b"looked\n", b'{"a": 1}\n', b"[]\n"])
def test_a_damaged_log_of_looks_is_named(results, line):
    results.log_look(CELL)
    with open(results.folder / "test_looks.jsonl", "ab") as file:
        file.write(line)
    with pytest.raises(ValueError, match=r"test_looks\.jsonl, line 2 is no logged look .*mend"):
        results.looks()


def test_a_look_after_half_a_line_is_a_line_of_its_own(results):
    results.log_look(CELL)
    path = results.folder / "test_looks.jsonl"
    path.write_bytes(path.read_bytes() + b'{"time": "2024')
    results.log_look(CELL)
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in (lines[0], lines[2])))
    assert len(results.looks()) == 2
