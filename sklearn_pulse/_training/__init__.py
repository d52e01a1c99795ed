"""The training loop, on skorch."""
