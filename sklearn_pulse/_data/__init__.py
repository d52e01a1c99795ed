"""Checked input, and batches of it on a device."""
