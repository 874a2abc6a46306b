# SPDX-License-Identifier: Apache-2.0
"""Writers that make items by patterns. A pattern says which of the latest steps an item has.

>>> import reprise
>>> from reprise import structured
>>> step = {"obs": None, "reward": None}
>>> pattern = structured.pattern_from_transform(
...     step, lambda s: {"obs": s["obs"][-2:], "reward": s["reward"][-1]})
>>> config = structured.create_config(
...     pattern, table="replay", conditions=[structured.Condition.step_index() % 2 == 1])

>>> server = reprise.Server([reprise.Table.queue("replay", max_size=10)])
>>> writer = server.localhost_client().structured_writer([config])
>>> for i in range(4):
...     writer.append({"obs": i, "reward": 10.0 * i})
>>> writer.flush()
>>> server.localhost_client().server_info()["replay"].current_size
2

If `s` is a reference step, `s["obs"][-1]` is the latest value alone, `s["obs"][-3:]` are the latest
three values, `s["obs"][-5:-1]` the four before the latest, and `s["obs"][-5::2]` every second of
five.

All configs are tried in order after each append, and once more at the end of an episode. A config
makes an item if all its conditions hold and no value of its pattern is missing, but at most one
item for a step. Columns that no config uses are not copied.
"""

from __future__ import annotations

import copy
import datetime
import time
from typing import Any, Callable, List, Optional, Sequence, Tuple

from reprise import _check, _core, errors, pattern_protos, specs, tree
from reprise._log import CLOSED_EARLY, say_dropped

__all__ = [
    "BatchWriter",
    "Condition",
    "ConditionProto",
    "Config",
    "Pattern",
    "PatternTransform",
    "ReferenceStep",
    "StructuredWriter",
    "constant_priority_fn",
    "create_config",
    "create_reference_step",
    "infer_signature",
    "pattern_from_transform",
    "td_error",
    "unpack_pattern",
]

Config = pattern_protos.StructuredWriterConfig
ConditionProto = pattern_protos.Condition

Pattern = Any  # a nest of pattern_protos.PatternNode
ReferenceStep = Any  # a nest like a step
PatternTransform = Callable[[ReferenceStep], Pattern]

_LEFT = {
    "step_index": 0,
    "steps_since_applied": 1,
    "buffer_length": 2,
    "is_end_episode": 3,
    "flat_source_index": 4,
}
_COMPARE = {"eq": 0, "ge": 1, "mod_eq": 2}


def _node(node: Any) -> Tuple[Any, ...]:
    return (
        node.flat_source_index,
        node.start if node.HasField("start") else None,
        node.stop if node.HasField("stop") else None,
        node.step if node.HasField("step") else None,
    )


def _condition(condition: Any) -> Tuple[Any, ...]:
    left = condition.WhichOneof("left")
    compare = condition.WhichOneof("cmp")
    mod = value = 0
    if compare == "mod_eq":
        mod, value = condition.mod_eq.mod, condition.mod_eq.eq
    elif compare is not None:
        value = getattr(condition, compare)
    column = condition.flat_source_index if left == "flat_source_index" else 0
    return (
        _LEFT.get(left, -1),
        column,
        _COMPARE.get(compare, -1),
        mod,
        value,
        condition.inverse,
    )


def _priority(priority: Any) -> Tuple[Any, ...]:
    if priority.WhichOneof("priority_fn") == "td_error":
        error = priority.td_error
        return (1, 0.0, error.max_priority_weight, error.flat_source_index)
    if priority.WhichOneof("priority_fn") == "constant_fn":
        return (0, priority.constant_fn.value, 0.0, 0)
    return (0, 1.0, 0.0, 0)


def _patterns(configs: Sequence[Any]) -> Tuple[Any, ...]:
    if isinstance(configs, Config):
        raise TypeError("configs must be a list of configs, got one config: write [config]")
    if not configs:
        raise ValueError("At least one config must be provided.")
    for config in configs:
        if not isinstance(config, Config):
            raise TypeError(f"a config is what create_config() returns, got {config!r}")
    return tuple(
        (
            config.table,
            tuple(_node(node) for node in config.flat),
            tuple(_condition(condition) for condition in config.conditions),
            _priority(config.priority),
        )
        for config in configs
    )


def _advice(configs: Sequence[Config]) -> str:
    """Returns what to write instead of the first node that counts steps from the start."""
    for config in configs:
        for node in config.flat:
            start, stop = _node(node)[1:3]
            if (stop if start is None else start) is None or (stop if start is None else start) < 0:
                continue
            path = getattr(node, "_path", (node.flat_source_index,))
            name = "".join(f"[{part!r}]" for part in path)
            return (f" Column {'/'.join(map(str, path))!r}: steps are counted back from the latest: "
                    f"write step{name}[-1] for that step, or step{name}[-1:] to keep its dimension.")
    return ""


def _open(make: Callable[[], Any], configs: Sequence[Config]) -> Any:
    try:
        return make()
    except ValueError as e:
        raise ValueError(f"{e}{_advice(configs)}") from None


def _limit_ms(timeout_ms: Optional[float], timeout: Optional[float]) -> Optional[float]:
    """Returns the timeout that was given, in milliseconds. At most one may be given."""
    if timeout is None:
        return timeout_ms
    if timeout_ms is not None:
        raise TypeError("give timeout, in seconds, or timeout_ms, not both")
    return _check.milliseconds("timeout", timeout)


def _late(
    call: str, timeout_ms: Optional[float], cause: Exception
) -> errors.DeadlineExceededError:
    limit = datetime.timedelta(milliseconds=timeout_ms or 0)
    return errors.DeadlineExceededError(
        f"{call} call did not complete within provided timeout of {limit}: {cause}"
    )


_ASK_S = 0.25  # how long an append waits for the signatures of the tables
_ASK_AGAIN_S = 5.0  # time between two requests of signatures


class _NameCheck:
    """Compares names at the first append: those of the step with those of the reference steps, and
    those of the patterns with the signatures of their tables."""

    def __init__(self, client: _core.Client, configs: Sequence[Config]) -> None:
        self._client = client
        self._configs = [config for config in configs if config.HasField("pattern_structure")]
        nodes = [node for config in configs for node in config.flat]
        self._columns = {
            node.flat_source_index: node._path for node in nodes if hasattr(node, "_path")
        }
        self._reference = next(
            (node._reference for node in nodes if hasattr(node, "_reference")), None
        )
        self._leaves = 1 + max(
            [node.flat_source_index for node in nodes]
            + [condition.flat_source_index for config in configs for condition in config.conditions
               if condition.WhichOneof("left") == "flat_source_index"],
            default=-1,
        )
        self._ask_at = 0.0

    def passes(self, step: Any, timeout: Optional[float]) -> bool:
        """Returns False if a server has not said the signatures of its tables: try again with the
        next step. ValueError if names differ, NotFoundError if a table does not exist."""
        _check.check_seconds("timeout", timeout)
        structure = _core.Structure(step)
        _check.check_leaf_count(structure, self._leaves, self._reference)
        _check.check_pattern(structure, self._columns)
        if time.monotonic() < self._ask_at:
            return False
        try:
            limit = _ASK_S if timeout is None else min(timeout, _ASK_S)
            tables = {config.table: self._client.tables(limit, config.table)[0]
                      for config in self._configs}
        except errors.NotFoundError:
            raise
        except (errors.StatusError, errors.ReverbError):
            self._ask_at = time.monotonic() + _ASK_AGAIN_S
            return False
        for config in self._configs:
            pattern = _core.Structure(pattern_protos.decode_structure(config.pattern_structure))
            signature = tables[config.table]["signature"]
            text = _check.differing_names(pattern, signature, "the pattern")
            if text is not None:
                raise ValueError(f"table {config.table!r} cannot have items of a pattern: {text}")
        return True


class StructuredWriter:
    """Makes items of the steps appended to it, by configs. Made by `Client.structured_writer`.

    One thread at a time may use it, in the process that made it.
    """

    def __init__(self, client: _core.Client, configs: Sequence[Config]) -> None:
        patterns = _patterns(configs)
        self._closed = False
        self._writer = _open(lambda: _core.StructuredWriter(client, patterns), configs)
        self._check = _NameCheck(client, configs)
        self._append = self._check_and_append

    def _check_and_append(self, data: Any, partial_step: bool, timeout: Optional[float]) -> None:
        begun = time.monotonic_ns()
        if self._check.passes(data, timeout):
            self._append = self._writer.append
        else:
            self._writer.waited_ns += time.monotonic_ns() - begun
        self._writer.append(data, partial_step, timeout)

    def append(
        self, data: Any, *, partial_step: bool = False, timeout: Optional[float] = None
    ) -> None:
        """Appends a step, or a part of one, and makes the items that the configs ask for.

        Args:
          data: a nest with the same number of leaves in every step. None stands for a value that
            is missing, or that is in another part of the step.
          partial_step: this is a part of a step, and more of the step follows. Each value may be
            given once in a step.
          timeout: seconds to wait while too many items are unconfirmed. If it passes, nothing was
            appended.

        Raises:
          ValueError: the number of leaves changes; a value has another dtype or shape than its
            column, or was already given in this step; names differ from those of earlier steps, of
            the reference step, or of the signature of a pattern's table; a dict becomes a list.
        """
        self._append(data, partial_step, timeout)

    def flush(
        self,
        block_until_num_items: int = 0,
        timeout_ms: Optional[float] = None,
        *,
        timeout: Optional[float] = None,
    ) -> None:
        """Sends items and waits until all but `block_until_num_items` are confirmed.

        Waits for `timeout_ms` milliseconds, or `timeout` seconds, at most.

        Raises:
          ValueError: block_until_num_items < 0.
          DeadlineExceededError: the timeout has passed; sending continues in the background.
          StatusError: the server refuses an item.
        """
        timeout_ms = _limit_ms(timeout_ms, timeout)
        _check.whole_number("block_until_num_items", block_until_num_items, 0)
        try:
            self._writer.flush(block_until_num_items, timeout_ms)
        except errors.DeadlineExceededError as e:
            raise _late("Flush", timeout_ms, e) from e

    def end_episode(
        self,
        clear_buffers: bool = True,
        timeout_ms: Optional[float] = None,
        *,
        timeout: Optional[float] = None,
    ) -> None:
        """Makes the items that are due at the end of an episode, flushes, and begins a new one.

        Args:
          clear_buffers: discard the steps. If False, later items may have steps of this episode.
          timeout_ms, timeout: how many milliseconds, or seconds, to wait for the flush.

        Raises:
          DeadlineExceededError: the timeout has passed; the episode has not ended, and sending
            continues in the background.
        """
        timeout_ms = _limit_ms(timeout_ms, timeout)
        try:
            self._writer.end_episode(clear_buffers, timeout_ms)
        except errors.DeadlineExceededError as e:
            raise _late("End episode", timeout_ms, e) from e

    @property
    def step_is_open(self) -> bool:
        """True if the latest append was a part of a step that is still open."""
        return self._writer.is_open

    def close(self) -> None:
        """Closes the writer. Items that are not confirmed are dropped, and their number is logged: flush
        before."""
        self._closed = True
        say_dropped("StructuredWriter", self._writer.close(), CLOSED_EARLY)

    def __enter__(self) -> StructuredWriter:
        return self

    def __exit__(self, exc_type: Any, *_: Any) -> None:
        try:
            if exc_type is None and not self._closed:
                self.flush()
        finally:  # after an exception, or Ctrl-C in the flush, close without waiting
            say_dropped("StructuredWriter", self._writer.close())


class BatchWriter:
    """Structured writers for N environments that step together. One call appends a step of each.

        writer = client.batch_writer(len(envs), [config])
        while True:
            actions = policy(observations)
            next_observations, rewards, ends = envs.step(actions)
            writer.append_batch(
                {"obs": observations, "action": actions, "reward": rewards}, ends)
            observations = next_observations

    Made by `Client.batch_writer`. One thread at a time may use it, in the process that made it.
    """

    def __init__(
        self, client: _core.Client, num_environments: int, configs: Sequence[Config]
    ) -> None:
        _check.whole_number("num_environments", num_environments)
        patterns = _patterns(configs)
        self._closed = False
        self._writer = _open(
            lambda: _core.BatchWriter(client, num_environments, patterns), configs
        )
        self._check = _NameCheck(client, configs)
        self._append_batch = self._check_and_append

    def _check_and_append(self, data: Any, ends: Any, timeout: Optional[float]) -> None:
        begun = time.monotonic_ns()
        if self._check.passes(data, timeout):
            self._append_batch = self._writer.append_batch
        else:
            self._writer.waited_ns += time.monotonic_ns() - begun
        self._writer.append_batch(data, ends, timeout)

    @property
    def num_environments(self) -> int:
        """The number of environments."""
        return self._writer.environments

    def append_batch(
        self, data: Any, ends: Any = None, *, timeout: Optional[float] = None
    ) -> None:
        """Appends a step of every environment and makes the items that the configs ask for.

        Args:
          data: a nest of arrays, each with a row for every environment.
          ends: an array of booleans: True for each environment whose episode ends with this step.
            No item has steps of two episodes. The end of an episode does not wait for a flush.
          timeout: seconds to wait while too many items are unconfirmed. If it passes, nothing was
            appended.

        Raises:
          ValueError: an array has another number of rows, dtype or shape; names differ from those
            of earlier steps, of the reference step, or of the signature of a pattern's table.
        """
        self._append_batch(data, ends, timeout)

    def flush(
        self, timeout_ms: Optional[float] = None, *, timeout: Optional[float] = None
    ) -> None:
        """Sends all items and waits until they are confirmed, for `timeout_ms` milliseconds, or
        `timeout` seconds, at most.

        Raises:
          DeadlineExceededError: the timeout has passed; sending continues in the background.
          StatusError: the server refuses an item.
        """
        timeout_ms = _limit_ms(timeout_ms, timeout)
        try:
            self._writer.flush(0, timeout_ms)
        except errors.DeadlineExceededError as e:
            raise _late("Flush", timeout_ms, e) from e

    def close(self) -> None:
        """Closes the writer. Items that are not confirmed are dropped, and their number is logged: flush
        before."""
        self._closed = True
        say_dropped("BatchWriter", self._writer.close(), CLOSED_EARLY)

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, exc_type: Any, *_: Any) -> None:
        try:
            if exc_type is None and not self._closed:
                self.flush()
        finally:  # after an exception, or Ctrl-C in the flush, close without waiting
            say_dropped("BatchWriter", self._writer.close())


class _RefNode:
    """A leaf of a reference step: indexing it makes a node of a pattern."""

    def __init__(self, index: int, paths: Sequence[Tuple[Any, ...]]) -> None:
        self._index = index
        self._paths = paths

    def __getitem__(self, key: Any) -> pattern_protos.PatternNode:
        if isinstance(key, int):
            key = slice(key)
        elif not isinstance(key, slice):
            raise ValueError(f"Key must be int or slice by got {key} (type {type(key)}).")
        node = pattern_protos.PatternNode(
            flat_source_index=self._index, start=key.start, stop=key.stop, step=key.step
        )
        object.__setattr__(node, "_path", self._paths[self._index])
        object.__setattr__(node, "_reference", self._paths)
        return node


class _RefDict(dict):
    """A dict of a reference step, whose KeyError lists its columns."""

    def __missing__(self, name: Any) -> Any:
        raise _check.unknown_column("the step", name, self)


def _named(step: Any) -> Any:
    """Makes the dicts of a reference step, also those inside dicts, list their columns in errors."""
    if type(step) is not dict:
        return step
    return _RefDict((name, _named(part)) for name, part in step.items())


def _numbered(structure: Any) -> Tuple[Any, List[int]]:
    return structure, list(range(len(tree.flatten(structure))))


def create_reference_step(step_structure: Any) -> ReferenceStep:
    """Returns a nest like the steps. Indexing its leaves makes the nodes of a pattern.

    >>> step = create_reference_step({"obs": None, "reward": None})
    >>> pattern = {"before": step["obs"][-2], "rewards": step["reward"][-3:]}
    """
    structure, numbers = _numbered(step_structure)
    paths = _core.Structure(structure).paths()
    return _named(tree.unflatten_as(structure, [_RefNode(i, paths) for i in numbers]))


def pattern_from_transform(step_structure: Any, transform: PatternTransform) -> Pattern:
    """Returns the pattern that `transform` makes of a reference step.

    >>> pattern = pattern_from_transform(
    ...     {"obs": None, "reward": None}, lambda step: step["obs"][-4:])
    """
    step = create_reference_step(step_structure)
    try:
        return transform(step)
    except errors.UnknownColumnError:
        raise
    except KeyError as error:
        missing = error.args[0] if error.args else None
        if not hasattr(step, "keys") or not isinstance(missing, str) or missing in step:
            raise
        raise _check.unknown_column("the step", missing, step) from error


def create_config(
    pattern: Pattern,
    table: str,
    conditions: Sequence[ConditionProto] = (),
    priority: Optional[pattern_protos.Priority] = None,
) -> Config:
    """Returns a config: items of this pattern are made in this table when all conditions hold.

    `priority` is made by `constant_priority_fn` or `td_error`. None: the priority is 1.
    """
    if priority is None:
        priority = constant_priority_fn(1.0)
    nodes = tree.flatten(pattern)
    for node in nodes:
        if not isinstance(node, pattern_protos.PatternNode):
            raise TypeError(
                "a pattern consists of slices of a reference step, such as step['obs'][-2:], got "
                + ("a leaf of the step itself" if isinstance(node, _RefNode) else repr(node))
            )
    for condition in conditions:
        if not isinstance(condition, ConditionProto):
            raise TypeError("a condition is a comparison, such as Condition.step_index() >= 3, got "
                            f"{condition!r}")
    return Config(
        flat=nodes,
        pattern_structure=pattern_protos.encode_structure(pattern),
        table=table,
        priority=priority,
        conditions=list(conditions),
    )


def unpack_pattern(config: Config) -> Pattern:
    """Returns the pattern of a config in its structure, or a list if the config has no structure.
    """
    if not config.HasField("pattern_structure"):
        return config.flat
    structure = pattern_protos.decode_structure(config.pattern_structure)
    return tree.unflatten_as(structure, config.flat)


def _shape(node: Any, spec: specs.TensorSpec) -> Optional[Tuple[Optional[int], ...]]:
    """Returns the shape of a column of the items."""
    if spec.shape is None or not node.HasField("start"):
        return spec.shape
    step = node.step or 1
    return (-((node.start - node.stop) // step), *spec.shape)


def _merge(path: Any, nodes: Sequence[Any], step: Sequence[specs.TensorSpec]) -> Any:
    """Returns the spec of a column that several configs make."""
    dtypes = [step[node.flat_source_index].dtype for node in nodes]
    if any(dtype != dtypes[0] for dtype in dtypes):
        raise ValueError(
            f"Configs produce trajectories with multiple dtypes at {path}. Got {dtypes}."
        )
    shapes = [_shape(node, step[node.flat_source_index]) for node in nodes]
    first = shapes[0]
    if any(shape != first for shape in shapes):
        # The shapes may differ in the first dimension only.
        if not first or any(
            not shape or (len(shape), shape[1:]) != (len(first), first[1:]) for shape in shapes
        ):
            raise ValueError(
                f"Configs produce trajectories with incompatible shapes at {path}. "
                f"Got {shapes}."
            )
        first = (None, *first[1:])
    return specs.TensorSpec(first, dtypes[0], "/".join(str(part) for part in path))


def infer_signature(configs: Sequence[Config], step_spec: Any) -> Any:
    """Returns the signature of a table whose items are made by these configs.

    Args:
      configs: all configs that make items for the table.
      step_spec: a nest of specs of a step.

    Returns:
      A nest of `reprise.TensorSpec`, or of `tf.TensorSpec` in a process that has imported TensorFlow.
      If the configs differ in the length of a column, its first dimension is None.

    Raises:
      ValueError: there are no configs; they differ in structure, table or dtype, or in the shapes
        of single steps.
    """
    return specs.as_reverb(common_signature(configs, step_spec))


def common_signature(configs: Sequence[Config], step_spec: Any) -> Any:
    """Does the same as `infer_signature`, but always returns a nest of `reprise.TensorSpec`."""
    if not configs:
        raise ValueError("At least one config must be provided.")
    if any(c.pattern_structure != configs[0].pattern_structure for c in configs):
        raise ValueError("All configs must have exactly the same pattern_structure.")
    tables = sorted({config.table for config in configs})
    if len(tables) > 1:
        raise ValueError(
            f"All configs must target the same table but provided configs included "
            f'{", ".join(tables)}.'
        )
    step = tree.flatten(specs.convert(step_spec))
    patterns = [unpack_pattern(config) for config in configs]
    return tree.map_structure_with_path(
        lambda path, *nodes: _merge(path, nodes, step), *patterns
    )


class _ConditionBuilder:
    """The left-hand side of a condition, which a comparison completes."""

    def __init__(self, incomplete: ConditionProto) -> None:
        self._incomplete = incomplete

    def _with(self, **fields: Any) -> ConditionProto:
        condition = copy.deepcopy(self._incomplete)
        for name, value in fields.items():
            setattr(condition, name, value)
        return condition

    def __mod__(self, mod: int) -> _ConditionBuilder:
        return _ConditionBuilder(self._with(mod_eq=ConditionProto.ModuloEq(mod=mod)))

    def __eq__(self, value: int) -> ConditionProto:  # type: ignore[override]
        mod = self._incomplete.mod_eq.mod
        if mod:
            return self._with(mod_eq=ConditionProto.ModuloEq(mod=mod, eq=value))
        return self._with(eq=value)

    def __ne__(self, value: int) -> ConditionProto:  # type: ignore[override]
        condition = self == value
        condition.inverse = True
        return condition

    def __ge__(self, value: int) -> ConditionProto:
        return self._with(ge=value)

    def __gt__(self, value: int) -> ConditionProto:
        return self >= value + 1

    def __lt__(self, value: int) -> ConditionProto:
        return self._with(ge=value, inverse=True)

    def __le__(self, value: int) -> ConditionProto:
        return self < value + 1

    __hash__ = None  # type: ignore[assignment]


class Condition:
    """The left-hand sides of conditions: compare one with a number.

    >>> conditions = [Condition.step_index() >= 10, Condition.steps_since_applied() % 4 == 0]
    """

    @staticmethod
    def step_index() -> Any:
        """The index of the latest step in its episode."""
        return _ConditionBuilder(ConditionProto(step_index=True))

    @staticmethod
    def steps_since_applied() -> Any:
        """Steps since this config last made an item; 1 at the first step."""
        return _ConditionBuilder(ConditionProto(steps_since_applied=True))

    @staticmethod
    def is_end_episode() -> ConditionProto:
        """True at the end of an episode. It is a condition itself, without a comparison."""
        return ConditionProto(is_end_episode=True, eq=1)

    @staticmethod
    def data(step_structure: Any) -> Any:
        """Returns a nest like the steps. Each leaf stands for the latest value of its column, which
        must be an integer or a bool."""
        structure, numbers = _numbered(step_structure)
        builders = [_ConditionBuilder(ConditionProto(flat_source_index=i)) for i in numbers]
        return tree.unflatten_as(structure, builders)


def constant_priority_fn(value: float) -> pattern_protos.Priority:
    """Gives every item the priority `value`."""
    return pattern_protos.Priority(
        constant_fn=pattern_protos.Priority.ConstantPriorityFn(value=value)
    )


def td_error(
    max_priority_weight: float,
    step_structure: Any,
    get_field_from_step_fn: Callable[[Any], Any],
) -> pattern_protos.Priority:
    """The priority of R2D2 (Kapturowski et al., 2019): w * max|x| + (1 - w) * mean|x|.

    Args:
      max_priority_weight: w, in [0, 1].
      step_structure: a nest with the structure of a step.
      get_field_from_step_fn: takes a step and returns its field x. Its values must be scalars, and
        the pattern must contain it exactly once.
    """
    structure, numbers = _numbered(step_structure)
    index = get_field_from_step_fn(tree.unflatten_as(structure, numbers))
    return pattern_protos.Priority(
        td_error=pattern_protos.Priority.TDError(
            max_priority_weight=max_priority_weight, flat_source_index=index
        )
    )
