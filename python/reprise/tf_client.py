# SPDX-License-Identifier: Apache-2.0
"""A client for TensorFlow code: its calls are operations, also inside a `tf.function`.

Without TensorFlow the same calls take and return NumPy arrays.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import numpy as np

from reprise import tree
from reprise.client import Client
from reprise.replay_sample import ReplaySample, SampleInfo
from reprise.sample_dataset import have_tensorflow
from reprise.sample_source import INFO_DTYPES

__all__ = ["TFClient"]


def _numpy_dtype(dtype: Any) -> np.dtype:
    return np.dtype(getattr(dtype, "as_numpy_dtype", dtype))


class TFClient:
    """Calls to a server as TensorFlow operations.

    Args:
      server_address: the address of the server.
      shared_name: for compatibility with Reverb; without effect.
      name: a prefix for the names of the operations.
    """

    def __init__(
        self, server_address: str, shared_name: Optional[str] = None, name: str = "reverb"
    ):
        self._name = name
        self._server_address = server_address
        self._client = Client(server_address)

    @property
    def server_address(self) -> str:
        """The address that was passed to the client."""
        return self._server_address

    def _call(
        self,
        function: Any,
        inputs: Sequence[Any],
        dtypes: List[Any],
        what: str,
        name: Optional[str],
    ) -> Any:
        """Applies `function` to the inputs, as an operation if TensorFlow is installed."""
        if not have_tensorflow():
            return function(*inputs)
        import tensorflow as tf

        with tf.name_scope(name or f"{self._name}_{what}"):
            return tf.numpy_function(function, list(inputs), dtypes)

    def sample(self, table: str, data_dtypes: Any, name: Optional[str] = None) -> ReplaySample:
        """Draws one item and returns its first step, in the structure of `data_dtypes`.

        Waits while the rate limiter does not allow samples.
        """
        expected = [_numpy_dtype(dtype) for dtype in tree.flatten(data_dtypes)]

        def draw(table: Any) -> List[np.ndarray]:
            table = _text(table)
            item = next(iter(self._client.sample(table, 1)))[0]
            if len(item.data) != len(expected):
                raise ValueError(
                    f"Inconsistent number of tensors received from table '{table}'.  "
                    f"Specification has {len(expected)} tensors, but data coming from the "
                    f"table shows {len(item.data)} tensors."
                )
            for i, (column, dtype) in enumerate(zip(item.data, expected)):
                if column.dtype != dtype:
                    raise ValueError(
                        f"Received incompatible tensor at flattened index {i} from table "
                        f"'{table}'.  Specification has dtype {dtype}.  Tensor has dtype "
                        f"{column.dtype}."
                    )
            return [np.asarray(x, t) for x, t in zip(item.info, INFO_DTYPES)] + list(item.data)

        dtypes = list(INFO_DTYPES) + [t if t != object else np.dtype(bytes) for t in expected]
        if have_tensorflow():
            import tensorflow as tf

            dtypes = [tf.as_dtype(t) for t in INFO_DTYPES] + tree.flatten(data_dtypes)
        flat = self._call(draw, [table], dtypes, "sample", name)
        return ReplaySample(SampleInfo(*flat[:5]), tree.unflatten_as(data_dtypes, flat[5:]))

    def insert(
        self, data: Sequence[Any], tables: Any, priorities: Any, name: Optional[str] = None
    ) -> Any:
        """Inserts `data`, a list of tensors, as one step. It becomes an item of each of `tables`,
        with the priority at the same index of `priorities`.

        Raises:
          ValueError: tables is not a string tensor of rank 1, priorities is not a float64 tensor of
            rank 1, or they differ in length.
        """
        if not have_tensorflow():
            tables, priorities = np.asarray(tables), np.asarray(priorities)
        if not _is_vector(tables, "string"):
            raise ValueError("tables must be a string tensor of rank 1")
        if not _is_vector(priorities, "float64"):
            raise ValueError("priorities must be a float64 tensor of rank 1")
        lengths = tables.shape[0], priorities.shape[0]
        if None not in lengths and lengths[0] != lengths[1]:
            raise ValueError("priorities and tables must have the same shape")

        def put(tables: np.ndarray, priorities: np.ndarray, *data: np.ndarray) -> List[Any]:
            names = [_text(table) for table in tables]
            self._client.insert(list(data), dict(zip(names, map(float, priorities))))
            return []

        return self._call(put, [tables, priorities, *data], [], "insert", name)

    def update_priorities(
        self, table: str, keys: Any, priorities: Any, name: Optional[str] = None
    ) -> Any:
        """Sets the priorities of items. Unknown keys are ignored.

        Raises:
          ValueError: keys and priorities differ in length.
        """

        def update(table: Any, keys: np.ndarray, priorities: np.ndarray) -> List[Any]:
            self._client.update_priorities(
                _text(table), np.asarray(keys, np.uint64), np.asarray(priorities, np.float64)
            )
            return []

        return self._call(update, [table, keys, priorities], [], "update_priorities", name)


def _text(value: Any) -> str:
    value = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
    return value.decode() if isinstance(value, bytes) else value


def _is_vector(tensor: Any, dtype: str) -> bool:
    """Returns True if a tensor or an array has rank 1 and the dtype that TensorFlow calls `dtype`.
    """
    if isinstance(tensor, np.ndarray):
        strings = tensor.dtype.kind in "SUO"
        return tensor.ndim == 1 and ("string" if strings else tensor.dtype.name) == dtype
    return getattr(tensor.dtype, "name", "") == dtype and tensor.shape.rank == 1
