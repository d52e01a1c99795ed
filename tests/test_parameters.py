"""The checks of parameters: kinds, ranges, and what their messages say."""

import decimal
import math
import pathlib
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse._groups import check_groups
from sklearn_pulse._parameters import (
    as_path,
    check_betas_go_with,
    check_boolean,
    check_heads,
    check_integer,
    check_mapping,
    check_n_jobs,
    check_odd,
    check_option,
    check_pair,
    check_real,
    check_schedule,
    check_seed,
    check_steps_or_fraction,
    check_verbose,
    plain,
)

NOT_NUMBERS = [
    *("8", "", b"8", None, [8], (8,), {}, ..., 8 + 0j, np.complex64(8), decimal.Decimal(8)),
    *(True, False, np.True_, np.False_, np.timedelta64(8, "s"), np.array(8), np.array([8.0])),
]
INTEGER_TYPES = [int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])]
FLOAT_TYPES = [float, *(np.dtype(code).type for code in np.typecodes["Float"])]
not_numbers = pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)


# Integers.


@not_numbers
def test_an_integer_of_another_kind(value):
    with pytest.raises(TypeError, match="^size must be an integer of at least 1, got .*size=1$"):
        check_integer("size", value, 1)


@pytest.mark.parametrize("value", [1.0, 2.5, math.nan, np.float32(2)])
def test_a_float_is_no_integer(value):
    with pytest.raises(TypeError, match="size must be an integer of at least 1"):
        check_integer("size", value, 1)


@given(value=st.integers(), bounds=st.tuples(st.integers(), st.none() | st.integers()).map(list))
def test_integers_in_and_out_of_range(value, bounds):
    minimum, maximum = bounds
    if maximum is None and value >= 2**31:
        maximum = 2**31 - 1  # what 32 bits hold
    if minimum <= value and (maximum is None or value <= maximum):
        assert check_integer("size", value, minimum, bounds[1]) == value
        return
    said = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    with pytest.raises(ValueError, match=f"^size must be an integer (of )?{said}, got {value};"):
        check_integer("size", value, minimum, bounds[1])


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_integers_of_numpy_are_those_of_python(kind):
    assert type(check_integer("size", kind(3), 1)) is int
    with pytest.raises(ValueError, match="from 4 to 9"):
        check_integer("size", kind(3), 4, 9)


def test_an_integer_message_says_what_is_counted():
    with pytest.raises(ValueError, match=r"got 0 \(1 keeps every step\); pass for example size=1"):
        check_integer("size", 0, 1, meaning="1 keeps every step")


@pytest.mark.parametrize(("value", "example"), [(64.0, 64), (0.5, 1), (0.0, 1), (200.0, 1)])
def test_a_whole_float_is_proposed_as_an_integer(value, example):
    with pytest.raises(TypeError, match=f"got {value}; pass for example size={example}$"):
        check_integer("size", value, 1, 100)


# Numbers.


@not_numbers
def test_a_number_of_another_kind(value):
    with pytest.raises(TypeError, match=r"^rate must be a number in \[0, inf\), got .*; pass for"):
        check_real("rate", value)


@pytest.mark.parametrize("kind", FLOAT_TYPES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(kind, value):
    for bounds in ((0.0,), (-math.inf,), (-math.inf, 0.0)):
        with pytest.raises(ValueError, match="rate must be a"):
            check_real("rate", kind(value), *bounds)


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_integers_beyond_every_float_are_infinite(value):
    with pytest.raises(ValueError, match="rate must be a finite number"):
        check_real("rate", value, -math.inf)


@given(
    value=st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 0.5, 1.0]),
    minimum=st.sampled_from([-math.inf, 0.0, 0.5]),
    maximum=st.sampled_from([0.5, 1.0, math.inf]),
    open_minimum=st.booleans(),
    open_maximum=st.booleans(),
)
def test_numbers_in_and_out_of_range(value, minimum, maximum, open_minimum, open_maximum):
    options = {"open_minimum": open_minimum, "open_maximum": open_maximum}
    above = value > minimum or (value == minimum and not open_minimum)
    below = value < maximum or (value == maximum and not open_maximum)
    if above and below:
        assert check_real("rate", value, minimum, maximum, **options) == value
        return
    with pytest.raises(ValueError, match=f"^rate must be a .*, got {re.escape(repr(value))}; pass"):
        check_real("rate", value, minimum, maximum, **options)


@given(
    minimum=st.sampled_from([-math.inf, 0.0, 0.5]),
    maximum=st.sampled_from([1.0, math.inf]),
    open_minimum=st.booleans(),
    open_maximum=st.booleans(),
)
def test_the_example_of_a_message_is_accepted(minimum, maximum, open_minimum, open_maximum):
    options = {"open_minimum": open_minimum, "open_maximum": open_maximum}
    with pytest.raises(TypeError) as error:
        check_real("rate", "much", minimum, maximum, **options)
    example = float(str(error.value).rpartition("rate=")[2])
    assert check_real("rate", example, minimum, maximum, **options) == example


@pytest.mark.parametrize("kind", [*INTEGER_TYPES, *FLOAT_TYPES])
def test_numbers_of_numpy_are_those_of_python(kind):
    assert check_real("rate", kind(1), open_minimum=True) == 1.0
    assert type(check_real("rate", kind(1))) is float
    with pytest.raises(ValueError, match=r"rate must be a number in \[0, 1\)"):
        check_real("rate", kind(1), 0.0, 1.0)


def test_brackets_and_examples_of_the_message():
    for options, said in [
        ({}, r"\[0, 1\), got 'x'; pass for example rate=0$"),
        ({"open_minimum": True}, r"\(0, 1\), .*rate=0.5$"),
        ({"open_minimum": True, "open_maximum": False}, r"\(0, 1\], .*rate=1$"),
        ({"example": 1e-3}, r"\[0, 1\), .*rate=0.001$"),
        ({"meaning": "a share"}, r".*, got 'x' \(a share\); pass for example rate=0$"),
    ]:
        with pytest.raises(TypeError, match="rate must be a number in " + said):
            check_real("rate", "x", 0.0, 1.0, **options)
    # What is no name of a parameter stands in no assignment.
    with pytest.raises(TypeError, match="each of rates must be .*; pass for example 0$"):
        check_real("each of rates", "x", 0.0, 1.0)


# Options.


@pytest.mark.parametrize("value", [3, 1.5, None, True, np.False_, ["max"], b"max", np.array("max")])
def test_an_option_of_another_kind(value):
    with pytest.raises(TypeError, match="^pooling must be one of 'max', 'mean', got .*choose one"):
        check_option("pooling", value, ("max", "mean"))


@given(st.text())
def test_an_option_is_one_of_those_listed(value):
    options = ("max", "mean", "")
    if value in options:
        assert check_option("pooling", value, iter(options)) == value
        return
    with pytest.raises(ValueError, match="^pooling must be one of 'max', 'mean', '', got "):
        check_option("pooling", value, options)


def test_options_that_are_not_strings():
    options = ("auto", None, True, 2, 0.5)
    for value in options:
        assert check_option("mode", value, options) is value
    assert check_option("mode", np.True_, options) is True
    assert check_option("mode", np.int8(2), options) == 2
    assert check_option("mode", np.str_("auto"), options) == "auto"
    for value in (False, 1, 1.0, "None"):  # 1 is not True
        with pytest.raises(ValueError, match="mode must be one of 'auto', None, True, 2, 0.5"):
            check_option("mode", value, options)
    with pytest.raises(TypeError, match="mode must be one of"):
        check_option("mode", [2], options)
    with pytest.raises(TypeError, match="mode must be one of 1, got True"):
        check_option("mode", True, (1,))


@pytest.mark.parametrize("value", [0, 1, 1.0, "yes", None, [True], np.array(True)])
def test_a_switch_of_another_kind(value):
    with pytest.raises(TypeError, match="^compile must be True or False, got"):
        check_boolean("compile", value)


@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_switches_of_numpy_are_those_of_python(kind):
    assert [check_boolean("compile", kind(value)) for value in (0, 1)] == [False, True]
    check_verbose(kind(1))


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "2", np.timedelta64(2)])
def test_a_number_of_processes_of_another_kind(value):
    for number in (None, -1, np.int8(2)):
        check_n_jobs(number)
    with pytest.raises(TypeError, match="^n_jobs must be None, a number of processes, .*n_jobs=2$"):
        check_n_jobs(value)


# Lengths, kernels, heads.


@pytest.mark.parametrize("value", [1, 64, np.int32(64), 0.5, np.float32(0.5)])
def test_steps_or_fractions(value):
    assert check_steps_or_fraction("length", value) == value


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, "length must be an integer of at least 1, got 0 .an integer counts time"),
        (np.int64(-2), ValueError, "length must be an integer of at least 1"),
        (0.0, ValueError, r"length must be a number in \(0, 1\), got 0.0 \(a fraction of the wind"),
        (1.0, ValueError, r"length must be a number in \(0, 1\)"),
        (np.float32(1.5), ValueError, "length must be a number"),
        (math.nan, ValueError, "length must be a number"),
        ("8", TypeError, "length must be a number"),
        (True, TypeError, "length must be a number"),
        (None, TypeError, "length must be a number"),
    ],
)
def test_neither_steps_nor_fractions(value, error, message):
    with pytest.raises(error, match=message):
        check_steps_or_fraction("length", value)


def test_kernels_have_a_centre():
    assert check_odd("kernel_size", np.int64(5)) == 5
    with pytest.raises(ValueError, match="kernel_size must be odd, got 4: .* no centre; take 5"):
        check_odd("kernel_size", 4)
    with pytest.raises(ValueError, match="kernel_size must be an integer of at least 1"):
        check_odd("kernel_size", -1)
    with pytest.raises(TypeError, match="kernel_size must be an integer"):
        check_odd("kernel_size", 5.0)


def test_heads_divide_the_embedding():
    check_heads(320, np.int64(8))
    with pytest.raises(ValueError, match="embedding_dim=320 must be a multiple of n_heads=3"):
        check_heads(320, 3)
    with pytest.raises(TypeError, match="n_heads must be an integer"):
        check_heads(320, 8.0)


# Pairs, dictionaries, schedules.


def test_a_pair_is_two_numbers():
    check_pair("scale", [1, 2], (0.5, 1.5))
    with pytest.raises(TypeError, match=r"scale must be a pair of numbers, got 2; .*\(0.5, 1.5\)"):
        check_pair("scale", 2, (0.5, 1.5))
    with pytest.raises(ValueError, match=r"scale must be a pair of numbers, got \(1, 2, 3\)"):
        check_pair("scale", (1, 2, 3), (0.5, 1.5))


def test_a_dictionary_is_one_and_not_empty():
    check_mapping("scores", {"A": 1}, "arrays by method", "{'A': array}")
    with pytest.raises(TypeError, match=r"scores must be a dictionary of arrays by method, got \["):
        check_mapping("scores", [1], "arrays by method", "{'A': array}")
    with pytest.raises(ValueError, match="scores must be .*pass for example scores={'A': array}"):
        check_mapping("scores", {}, "arrays by method", "{'A': array}")


@pytest.mark.parametrize(
    ("schedule", "betas", "error", "message"),
    [
        ("step", None, ValueError, "schedule must be one of 'one_cycle', 'cosine'"),
        (3, None, TypeError, "schedule must be one of"),
        ("cosine", 0.9, TypeError, "betas must be a pair"),
        ("cosine", (0.9, 1.0), ValueError, r"each of betas must be a number in \[0, 1\)"),
        ("cosine", (0.9, "1"), TypeError, "each of betas must be a number"),
    ],
)
def test_schedules_and_betas_that_are_not_known_are_refused(schedule, betas, error, message):
    check_schedule("one_cycle", ("one_cycle", "cosine"), None)
    check_schedule("cosine", ("one_cycle", "cosine"), [0.9, np.float32(0.99)])
    with pytest.raises(error, match=message):
        check_schedule(schedule, ("one_cycle", "cosine"), betas)


def test_betas_that_a_schedule_moves_are_refused():
    options = "one_cycle", "cosine"
    check_betas_go_with("cosine", options, (0.9, 0.99))
    check_betas_go_with("one_cycle", options, None)
    with pytest.raises(ValueError, match="betas=.* goes with schedule='cosine' only"):
        check_betas_go_with("one_cycle", options, (0.9, 0.99))


# Seeds, paths, groups.


@pytest.mark.parametrize(
    "value", [0, 2**32 - 1, np.int64(7), None, np.random, np.random.RandomState(0)]
)
def test_seeds(value):
    check_seed("random_state", value)


@pytest.mark.parametrize("value", ["0", 0.5, True, np.random.default_rng(0), [1]])
def test_a_seed_of_another_kind(value):
    with pytest.raises(TypeError, match="random_state must be an integer from 0.*random_state=0"):
        check_seed("random_state", value)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_seed_out_of_range(value):
    with pytest.raises(ValueError, match="random_state must be an integer from 0 to 4294967295, "):
        check_seed("random_state", value)


class BytesPath:
    def __fspath__(self):
        return b"data"


def test_a_path_is_text_or_a_path_and_not_empty():
    assert as_path("folder", "data") == as_path("folder", pathlib.Path("data"))
    assert as_path("folder", "~/data") == pathlib.Path.home() / "data"
    for value in (3, None, b"data", ["data"], BytesPath()):
        with pytest.raises(TypeError, match="folder must be a path .*pass for example folder='fo"):
            as_path("folder", value)
    for optional in (False, True):
        with pytest.raises(ValueError, match=r"folder must be a path .*got ''") as raised:
            as_path("folder", "", optional=optional)
        assert ("or None" in str(raised.value)) == optional
    with pytest.raises(ValueError, match=r"folder must be a path .*got 'a\\x00b'"):
        as_path("folder", "a\0b")


def test_groups_are_one_per_sample():
    assert check_groups(None, 3) is None
    assert check_groups(["a", "b"], 2).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"groups has shape \(2,\), but there are 3 samples: pass"):
        check_groups(["a", "b"], 3)
    with pytest.raises(ValueError, match=r"\(1, 2\), but there are 2 recordings: .* per recording"):
        check_groups([["a", "b"]], 2, unit="recording")


@pytest.mark.parametrize(
    "groups",
    [
        ["a", None, None],
        [1.0, np.nan, np.nan],
        np.array(["2020-01-01", "NaT", "NaT"], "datetime64[D]"),
        pd.array(["a", pd.NA, pd.NA]),
        pd.Series([1, None, None], dtype="Int64"),
        ["a", np.nan, np.nan],
    ],
    ids=["None", "NaN", "NaT", "NA", "Int64", "NaN among texts"],
)
def test_a_missing_group_is_no_group(groups):
    with pytest.raises(ValueError, match=r"groups is missing for 2 sample\(s\) \(first sample 1\)"):
        check_groups(groups, 3)
    assert len(check_groups(groups[:1], 1)) == 1


@pytest.mark.parametrize("value", [np.int8(3), np.float32(0.5), np.True_, np.str_("max"), 3, None])
def test_plain_values_are_no_numbers_of_numpy(value):
    assert plain(value) == value
    assert not isinstance(plain(value), np.generic)


@pytest.mark.parametrize(("value", "kind"), [(2**63 - 1, int), (2**63, float), (-(10**30), float)])
def test_plain_integers_have_64_bits(value, kind):
    assert plain(value) == kind(value)
    assert type(plain(value)) is kind
