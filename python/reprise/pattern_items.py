# SPDX-License-Identifier: Apache-2.0
"""Patterns applied to a dataset of steps, without a server.

>>> import numpy as np
>>> from reprise import structured
>>> steps = [{"obs": np.float32(i), "last": i == 3} for i in range(4)]
>>> pattern = structured.pattern_from_transform(
...     steps[0], lambda ref: {"pair": ref["obs"][-2:]})
>>> config = structured.create_config(pattern, "table")
>>> for item in items_of(steps, [config], True, lambda step: step["last"]):
...     print(item["pair"].tolist())
[0.0, 1.0]
[1.0, 2.0]
[2.0, 3.0]
"""

from __future__ import annotations

import copy
from typing import Any, Callable, Iterable, Iterator, List, Sequence, Tuple

from reprise import _core, structured_writer, tree
from reprise.sample_source import lists_to_tuples

__all__ = ["apply_patterns", "items_of", "signature_of"]

_TABLE = "items"


class _Applier:
    """A structured writer to a queue in a private store, and a sampler of that queue."""

    def __init__(self, configs: Sequence[structured_writer.Config]):
        private = []
        for config in configs:
            config = copy.deepcopy(config)
            config.table = _TABLE
            private.append(config)
        # No insert may wait, since the items of a step are read only after all of them are written.
        self._store = _core.Store()
        self._store.add_table(
            _TABLE,
            limiter=(1.0, 1, -1e300, 1e300),
            max_size=2**30,
            sampler="fifo",
            remover="fifo",
            max_times_sampled=1,
        )
        client = _core.Client.local(self._store)
        self._writer = structured_writer.StructuredWriter(client, private)
        self._sampler = _core.Sampler(client, _TABLE, max_in_flight=1000)
        self._taken = 0

    def append(self, step: Any) -> None:
        self._writer.append(step)

    def end_episode(self, clear: bool) -> None:
        self._writer.end_episode(clear_buffers=clear)

    def items(self) -> Iterator[List[Any]]:
        """Yields the columns of the items that were made since the last call."""
        self._writer.flush()
        made = self._store.table_info(_TABLE)["inserts"]
        while self._taken < made:
            samples = self._sampler.next(made - self._taken)
            self._taken += len(samples)
            for sample in samples:
                yield sample[5]

    def close(self) -> None:
        self._sampler.close()
        self._writer.close()


def apply_patterns(
    steps: Iterable[Tuple[Any, Any]],
    configs: Sequence[structured_writer.Config],
    respect_episode_boundaries: bool,
) -> Iterator[List[Any]]:
    """Yields the columns of each item. `steps` are pairs: a step, and whether it ends an episode.
    """
    applier = _Applier(configs)
    try:
        for step, is_end in steps:
            applier.append(step)
            if is_end:
                applier.end_episode(respect_episode_boundaries)
            yield from applier.items()
    finally:
        applier.close()


def items_of(
    steps: Iterable[Any],
    configs: Sequence[structured_writer.Config],
    respect_episode_boundaries: bool,
    is_end_of_episode: Callable[[Any], Any],
) -> Iterator[Any]:
    """Yields the items that a `StructuredWriter` would make of these steps.

    Args:
      steps: nests, all of one structure.
      configs: all with the same pattern structure. They are not changed.
      respect_episode_boundaries: no item has steps of two episodes.
      is_end_of_episode: a function of a step; returns True if the step is the last of its episode.
    """
    pack = tree.Structure(lists_to_tuples(structured_writer.unpack_pattern(configs[0]))).pack
    pairs = ((step, is_end_of_episode(step)) for step in steps)
    return map(pack, apply_patterns(pairs, configs, respect_episode_boundaries))


def signature_of(configs: Sequence[structured_writer.Config], element_spec: Any) -> Any:
    return lists_to_tuples(structured_writer.common_signature(configs, element_spec))
