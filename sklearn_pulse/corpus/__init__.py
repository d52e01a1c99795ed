"""Corpora larger than memory: embedding into Zarr, and fitting by parts on a cluster.

joblib runs the parts: in this process, in processes of this machine, or on the workers of a Dask
client. Zarr stores the embeddings.
"""

from ._embed import embed_dataset
from ._fit import fit_dataset

__all__ = ["embed_dataset", "fit_dataset"]
