# SPDX-License-Identifier: Apache-2.0
"""Writes tests/rl/golden/adders.txt: what Acme's adders write of random episodes, as hashes.

    python3.11 -m pip install dm-reverb==0.14.0 tensorflow==2.14.0 'numpy<2' 'setuptools<70'
    python3.11 -m pip install --no-deps dm-acme==0.4.0
    python3.11 -m pip install dm-env==1.6 jax==0.4.20 jaxlib==0.4.20 'scipy<1.12'
    python3.11 tests/rl/make_adder_golden.py

A line is a case, with the items in the order in which they were written:

    NAME=VALUE... ITEMS HASH...

    kind      n_step, sequence or episode
    n         of n_step, whose discount is float32 .97
    length    of sequence and episode; period and end: of sequence; pad: of episode: none, 0 or 1
    reward    shape of the reward, discount: shape of the discount: 2x1; - is a scalar
    given     1: every discount is drawn; 0: 1, or 0 where an episode terminates
    extras    1: there is a column of extras
    seed      of numpy.random.default_rng()

The episodes of a case have 1, 2, ... 14 actions. Those with an even number terminate, the others are
truncated. u is the next uniform(-1, 1) of the generator. An observation is three u, float32. A step
is: the action int32((u + 1) * 50), the elements u of the reward, those (u + 1) / 2 of the discount if
`given`, int16((u + 1) * 50) for extras if any, the next observation. A hash is FNV-1a, 64 bits, over
the number of rows (a uint64, 0 if the item has no row dimension) and the bytes of every column.
"""

import itertools
import pathlib
import sys
import types

import numpy as np


def package(name):
    """Lets modules of a package be imported without its __init__."""
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [
        str(folder) for path in sys.path
        if (folder := pathlib.Path(path, *name.split("."))).is_dir()]


package("acme")
package("acme.utils")  # imports Launchpad, for agents
import dm_env  # noqa: E402
import reverb  # noqa: E402
from acme.adders.reverb import episode, sequence, transition  # noqa: E402

EPISODES = 14
TABLE = "items"


class Client(reverb.Client):
    """dm-reverb 0.14 dropped an argument that Acme 0.4 passes."""

    def trajectory_writer(self, num_keep_alive_refs, get_signature_timeout_ms=None):
        del get_signature_timeout_ms
        return super().trajectory_writer(num_keep_alive_refs)


def shape_of(text):
    return () if text == "-" else tuple(int(d) for d in text.split("x"))


def fnv(data, value=0xCBF29CE484222325):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def make_adder(case, client):
    functions = {TABLE: None}
    if case["kind"] == "n_step":
        return transition.NStepTransitionAdder(client, case["n"], .97, priority_fns=functions)
    if case["kind"] == "sequence":
        end = {"zero_pad": sequence.EndBehavior.ZERO_PAD, "truncate": sequence.EndBehavior.TRUNCATE,
               "write": sequence.EndBehavior.WRITE, "continue": sequence.EndBehavior.CONTINUE}
        return sequence.SequenceAdder(client, case["length"], case["period"],
                                      end_of_episode_behavior=end[case["end"]],
                                      priority_fns=functions)
    padding = {"none": None, "0": np.zeros, "1": np.ones}[case["pad"]]
    return episode.EpisodeAdder(client, case["length"], padding_fn=padding, priority_fns=functions)


def add_episodes(case, adder):
    rng = np.random.default_rng(case["seed"])

    def u(shape=()):
        count = int(np.prod(shape, dtype=int))
        return np.array([rng.uniform(-1, 1) for _ in range(count)]).reshape(shape)

    for actions in range(1, EPISODES + 1):
        adder.add_first(dm_env.restart(u((3,)).astype(np.float32)))
        for t in range(actions):
            last = t == actions - 1
            action = np.int32((u() + 1) * 50)
            reward = np.asarray(u(shape_of(case["reward"])), np.float32)
            shape = shape_of(case["discount"])
            if case["given"]:
                discount = np.asarray((u(shape) + 1) / 2, np.float32)
            else:
                discount = np.full(shape, 0 if last and actions % 2 == 0 else 1, np.float32)
            extras = {"logits": np.int16((u() + 1) * 50)} if case["extras"] else ()
            kind = dm_env.StepType.LAST if last else dm_env.StepType.MID
            adder.add(action, dm_env.TimeStep(kind, reward, discount, u((3,)).astype(np.float32)),
                      extras)


def drain(client):
    """Takes all items of the table, in order, and returns their hashes."""
    hashes = []
    while client.server_info()[TABLE].current_size > 0:
        count = client.server_info()[TABLE].current_size
        for sample in client.sample(TABLE, count, emit_timesteps=False):
            columns = [np.asarray(c) for c in sample.data]
            # Sequences and episodes have a bool as fifth column, with a row dimension.
            rows = len(columns[4]) if columns[4].dtype == bool else 0
            value = fnv(np.uint64(rows).tobytes())
            for column in columns:
                value = fnv(np.ascontiguousarray(column).tobytes(), value)
            hashes.append(f"{value:016x}")
    return hashes


def cases():
    base = {"reward": "-", "discount": "-", "given": 0, "extras": 0}
    for n, given, extras in itertools.product(range(1, 7), (0, 1), (0, 1)):
        if given == extras or n == 3:
            yield {"kind": "n_step", "n": n, **base, "given": given, "extras": extras}
    for reward, discount in (("2", "-"), ("-", "3"), ("2x1", "1x3"), ("3", "2x3")):
        yield {"kind": "n_step", "n": 4, **base, "reward": reward, "discount": discount, "given": 1,
               "extras": 1}
    for length in range(1, 7):
        for period in range(1, length + 1):
            for number, end in enumerate(("zero_pad", "truncate", "write", "continue")):
                yield {"kind": "sequence", "length": length, "period": period, "end": end, **base,
                       "given": period % 2, "extras": (length + number) % 2}
    for end in ("zero_pad", "write", "continue"):  # Acme's own rule fails with truncate
        yield {"kind": "sequence", "length": 3, "period": 5, "end": end, **base}
    for length, pad, extras in (15, "none", 0), (15, "0", 1), (15, "1", 1), (20, "1", 0), (40, "none", 1):
        yield {"kind": "episode", "length": length, "pad": pad, **base, "given": extras,
               "extras": extras}


def main():
    table = reverb.Table.queue(TABLE, 100000)
    server = reverb.Server([table], port=None)
    client = Client(f"localhost:{server.port}")
    lines = []
    for seed, case in enumerate(cases()):
        case["seed"] = seed
        adder = make_adder(case, client)
        add_episodes(case, adder)
        adder._writer.flush(0)  # what CONTINUE leaves
        hashes = drain(client)
        words = [f"{name}={value}" for name, value in case.items()]
        lines.append(" ".join([*words, str(len(hashes)), *hashes]))
    path = pathlib.Path(__file__).parent / "golden" / "adders.txt"
    path.write_text("\n".join(lines) + "\n")
    server.stop()


if __name__ == "__main__":
    main()
