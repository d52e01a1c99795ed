"""Benchmarks of speed and memory, apart from the tests."""
