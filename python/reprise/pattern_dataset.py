# SPDX-License-Identifier: Apache-2.0
"""A dataset of items that are made by patterns from a dataset of steps, without a server."""

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
    """Items that are made by patterns from a dataset of steps, as a structured writer makes them.

    If `input_dataset` is a `tf.data.Dataset`, so is the result. Otherwise `input_dataset` is any
    iterable, and the result is an iterable.

    Args:
      input_dataset: a dataset with one step in each element.
      configs: made by `structured.create_config`; all of one structure. They are not changed.
      respect_episode_boundaries: no item has steps of two episodes.
      is_end_of_episode: a function of a step; returns True if the step is the last of its episode.

    Raises:
      ValueError: the configs have no common signature (see `structured.infer_signature`), or
        `is_end_of_episode` does not return a bool.
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
    """Returns a `PatternDataset` of `ReplaySample`s. All fields of their `info` are 0."""
    dataset = PatternDataset(
        input_dataset, configs, respect_episode_boundaries, is_end_of_episode
    )
    with_info = dataset.map(lambda *data: ReplaySample(SampleInfo.zeros(), _only(data)))
    if isinstance(with_info, Pipeline) and dataset.element_spec is not None:
        info = SampleInfo(*(specs.TensorSpec((), dtype) for dtype in INFO_DTYPES))
        with_info._element_spec = ReplaySample(info, dataset.element_spec)
    return with_info


def _only(data: Tuple[Any, ...]) -> Any:
    """Returns the element of which `data` are the arguments: `map` passes a tuple as several."""
    return data[0] if len(data) == 1 else data
