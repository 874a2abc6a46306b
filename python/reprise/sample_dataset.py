# SPDX-License-Identifier: Apache-2.0
"""The base of `TimestepDataset` and `TrajectoryDataset`: samples of a table as a dataset.

If TensorFlow is installed, such a dataset is a `tf.data.Dataset` (tf_dataset.py). Otherwise it is a
`Pipeline` of NumPy arrays, with the same elements and the usual methods of `tf.data.Dataset`.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Optional

from reprise import tree
from reprise.connection import Connection
from reprise.errors import NotFoundError
from reprise.pipeline import Pipeline
from reprise.sample_source import Source

__all__ = ["Pipeline", "SampleDataset", "Source", "have_tensorflow"]


def have_tensorflow() -> bool:
    """Imports TensorFlow. Returns False if that is not possible."""
    if "tensorflow" not in sys.modules and importlib.util.find_spec("tensorflow") is None:
        return False
    try:
        import tensorflow
    except ImportError:
        return False
    return hasattr(tensorflow, "data")


class SampleDataset(Pipeline):
    """The arguments and the behaviour that both datasets have in common."""

    _timesteps: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        dataset = super().__new__(cls)
        if not have_tensorflow():
            return dataset
        from reprise import tf_dataset

        dataset.__init__(*args, **kwargs)
        return tf_dataset.of_source(cls, dataset.source)

    def __init__(
        self,
        server_address: str,
        table: str,
        dtypes: Any,
        shapes: Any,
        max_in_flight_samples_per_worker: int,
        num_workers_per_iterator: int = -1,
        max_samples_per_stream: int = -1,
        rate_limiter_timeout_ms: int = -1,
        max_samples: int = -1,
    ):
        self.source = Source(
            server_address,
            table,
            dtypes,
            shapes,
            self._timesteps,
            max_in_flight_samples_per_worker,
            num_workers_per_iterator,
            max_samples_per_stream,
            rate_limiter_timeout_ms,
            max_samples,
        )
        super().__init__(lambda: self.source.open().elements(), self.source.element_spec)

    @classmethod
    def from_table_signature(
        cls,
        server_address: str,
        table: str,
        max_in_flight_samples_per_worker: int,
        num_workers_per_iterator: int = -1,
        max_samples_per_stream: int = -1,
        rate_limiter_timeout_ms: int = -1,
        get_signature_timeout_secs: Optional[int] = None,
        max_samples: int = -1,
    ) -> Any:
        """Returns a dataset with the dtypes and shapes of the table's signature.

        Waits for the server up to `get_signature_timeout_secs`; None: for ever. The other
        arguments are those of the class.

        Raises:
          NotFoundError: there is no such table.
          ValueError: the table has no signature, or a number is out of range.
          DeadlineExceededError: the server did not respond in time.
        """
        tables = Connection(server_address).details(get_signature_timeout_secs or None)
        if table not in tables:  # in Reverb's words, which its tests expect
            raise NotFoundError(
                f"Server at {server_address} does not contain any table named {table}. "
                f"Found: {', '.join(sorted(tables))}."
            )
        signature = tables[table]["signature"]
        if not signature:
            raise ValueError(f"Table {table} at {server_address} does not have a signature.")
        return cls(
            server_address=server_address,
            table=table,
            dtypes=tree.map_structure(lambda spec: spec.dtype, signature),
            shapes=tree.map_structure(lambda spec: spec.shape, signature),
            max_in_flight_samples_per_worker=max_in_flight_samples_per_worker,
            num_workers_per_iterator=num_workers_per_iterator,
            max_samples_per_stream=max_samples_per_stream,
            rate_limiter_timeout_ms=rate_limiter_timeout_ms,
            max_samples=max_samples,
        )
