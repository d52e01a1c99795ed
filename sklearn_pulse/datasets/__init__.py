"""Data sets: readers of published recordings, ready for windowing and cross-validation."""

from __future__ import annotations

from ._fetchers import fetch_har, get_data_home

__all__ = ["fetch_har", "get_data_home"]
