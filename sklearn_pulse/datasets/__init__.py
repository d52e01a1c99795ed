"""Data sets: chaotic systems and published recordings, with windows, splits and groups.

The functions ``make_*`` simulate data. The functions ``fetch_*`` read a published data set from
the data folder, and download it first if it is not there.
"""

from __future__ import annotations

from ._epilepsy import fetch_epilepsy
from ._generators import (
    make_fitzhugh_nagumo,
    make_hindmarsh_rose,
    make_lorenz,
    make_thomas,
)
from ._gesture import fetch_gesture
from ._har import fetch_har
from ._home import get_data_home
from ._mitbih_af import fetch_mitbih_af
from ._sleep_edf import fetch_sleep_edf
from ._system_classification import make_system_classification
from ._wesad import fetch_wesad

__all__ = [
    "fetch_epilepsy",
    "fetch_gesture",
    "fetch_har",
    "fetch_mitbih_af",
    "fetch_sleep_edf",
    "fetch_wesad",
    "get_data_home",
    "make_fitzhugh_nagumo",
    "make_hindmarsh_rose",
    "make_lorenz",
    "make_system_classification",
    "make_thomas",
]
