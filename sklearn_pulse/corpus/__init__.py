"""Corpora larger than memory, and clusters: embedding into Zarr, fitting by parts, searching.

joblib runs the parts: in this process, in processes of this machine, or on the workers of a Dask
client. Zarr stores the embeddings.
"""

from ._embed import embed_dataset
from ._fit import fit_dataset
from ._spread import dask_workers

__all__ = ["dask_workers", "embed_dataset", "fit_dataset"]
