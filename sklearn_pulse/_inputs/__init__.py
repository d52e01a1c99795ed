"""The kinds of X that everything accepts: arrays, lists, frames, files, lazy windows."""
