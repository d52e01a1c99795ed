"""Whole chains in folders: preprocessing, an encoder and the linear steps around it."""

from ._export import export
from ._load import load_pretrained
from ._save import push_to_hub, save_pretrained

__all__ = ["export", "load_pretrained", "push_to_hub", "save_pretrained"]
