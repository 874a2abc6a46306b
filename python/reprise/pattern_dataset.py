# SPDX-License-Identifier: Apache-2.0
"""A dataset of items that patterns make of a dataset of steps, without a server."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple

from reprise import specs, structured_writer
from reprise.pattern_items import items_of, signature_of
from reprise.pipeline import Pipeline
from reprise.replay_sample import ReplaySample, SampleInfo
from reprise.sample_dataset import have_tensorflow
from reprise.sample_source import INFO_DTYPES

__all__ = ["PatternDataset", "items_of", "pattern_dataset_with_info"]


class PatternDataset(Pipeline):
    """Items made of a dataset of steps by patterns, as a structured writer makes them.

    With TensorFlow it is a `tf.data.Dataset`, as `input_dataset` must then be. Without, the
    input is anything that can be iterated over, and so is the result.

    Args:
      input_dataset: of steps, one an element.
      configs: made by `structured.create_config`; all of one structure. They are not changed.
      respect_episode_boundaries: no item reaches from one episode into the next.
      is_end_of_episode: of a step: is it the last of its episode? A bool.

    Raises:
      ValueError: the configs do not fit together, or `is_end_of_episode` gives no bool.
    """

    def __new__(cls, input_dataset: Any, *args: Any, **kwargs: Any) -> Any:
        if have_tensorflow():
            import tensorflow as tf

            if isinstance(input_dataset, tf.data.Dataset):
                from reprise import tf_dataset

                return tf_dataset.of_patterns(cls, input_dataset, *args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        input_dataset: Any,
        configs: Sequence[structured_writer.Config],
        respect_episode_boundaries: bool,
        is_end_of_episode: Callable[[Any], Any],
    ):
        if not configs:
            raise ValueError("At least one config must be provided.")
        spec = getattr(input_dataset, "element_spec", None)
        super().__init__(
            lambda: items_of(
                input_dataset, configs, respect_episode_boundaries, is_end_of_episode
            ),
            None if spec is None else signature_of(configs, spec),
        )


def pattern_dataset_with_info(
    input_dataset: Any,
    configs: Sequence[structured_writer.Config],
    respect_episode_boundaries: bool,
    is_end_of_episode: Callable[[Any], Any],
) -> Any:
    """A `PatternDataset` whose elements are `ReplaySample`s; all in their `info` is 0."""
    dataset = PatternDataset(
        input_dataset, configs, respect_episode_boundaries, is_end_of_episode
    )
    with_info = dataset.map(lambda *data: ReplaySample(SampleInfo.zeros(), _only(data)))
    if isinstance(with_info, Pipeline) and dataset.element_spec is not None:
        info = SampleInfo(*(specs.TensorSpec((), dtype) for dtype in INFO_DTYPES))
        with_info._element_spec = ReplaySample(info, dataset.element_spec)
    return with_info


def _only(data: Tuple[Any, ...]) -> Any:
    """The element again: one that is a tuple comes as several arguments."""
    return data[0] if len(data) == 1 else data
