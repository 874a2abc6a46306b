# SPDX-License-Identifier: Apache-2.0
"""Compares reprise.ReplayBuffer with other replay buffers for Python.

One process, one thread. A buffer has a million transitions: two observations of 84 float32, an
action, a reward and a flag. One call adds 64 transitions, samples 256 with importance weights, or
sets 256 priorities. Each peer takes turns with ours, round by round, and its best round is compared
with our best round of those turns. The smallest of these ratios is printed as the ratio. The peers
are installed from the package index into a scratch environment; a peer that cannot be installed is
left out.
"""

import argparse
import gc
import itertools
import logging
import os
import pathlib
import subprocess
import sys
import time
import warnings

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench-python"
ALPHA, BETA = 0.6, 0.4
ADD, SAMPLE, WIDTH = 64, 256, 84


#
# Each buffer has fill(rows), add(), sample(), and update(drawn), which takes a result of sample().

class Ours:
    name, prioritized, most = "ours", True, None

    def __init__(self, capacity, data, alpha=ALPHA, preallocate=True):
        import numpy
        from reprise.replay_buffer import ReplayBuffer

        self.buffer = ReplayBuffer(capacity, {
            "obs": ((WIDTH,), numpy.float32), "next_obs": ((WIDTH,), numpy.float32),
            "action": ((), numpy.int64), "reward": ((), numpy.float32),
            "done": ((), numpy.bool_)}, alpha=alpha, beta=BETA, seed=1, preallocate=preallocate)
        self.data = data

    def fill(self, rows):
        for _ in range(rows // ADD + 1):
            self.add()

    def add(self):
        self.buffer.add(**self.data)

    def sample(self):
        return self.buffer.sample(SAMPLE)["indices"]

    def as_it_likes_them(self, priorities):
        return priorities

    def update(self, drawn, priorities):
        self.buffer.update_priorities(drawn, priorities)


class OursUniform(Ours):
    name, prioritized = "ours, uniform", False

    def __init__(self, capacity, data):
        super().__init__(capacity, data, alpha=0)


class OursOnDemand(Ours):
    name = "ours, memory on demand"

    def __init__(self, capacity, data):
        super().__init__(capacity, data, preallocate=False)


class Cpprb(Ours):
    name = "cpprb"

    def __init__(self, capacity, data):
        import cpprb

        self.buffer = cpprb.PrioritizedReplayBuffer(
            capacity, {"obs": {"shape": WIDTH}, "next_obs": {"shape": WIDTH},
                       "action": {"dtype": data["action"].dtype}, "reward": {}, "done": {}},
            alpha=ALPHA)
        self.data = data

    def sample(self):
        return self.buffer.sample(SAMPLE, beta=BETA)["indexes"]


class TorchRL(Ours):
    name = "TorchRL"

    def __init__(self, capacity, data):
        import tensordict
        import torch
        from torchrl.data import LazyTensorStorage, ReplayBuffer
        from torchrl.data.replay_buffers.samplers import PrioritizedSampler

        logging.getLogger("torchrl").setLevel(logging.WARNING)

        self.torch = torch
        self.buffer = ReplayBuffer(storage=LazyTensorStorage(capacity), batch_size=SAMPLE,
                                   sampler=PrioritizedSampler(capacity, alpha=ALPHA, beta=BETA))
        self.data = tensordict.TensorDict({k: torch.from_numpy(v) for k, v in data.items()},
                                          batch_size=[ADD])

    def fill(self, rows):
        many = self.data.repeat(200)
        for _ in range(rows // len(many) + 1):
            self.buffer.extend(many)

    def add(self):
        self.buffer.extend(self.data)

    def sample(self):
        _, info = self.buffer.sample(return_info=True)
        return info["index"]

    def as_it_likes_them(self, priorities):
        return [self.torch.from_numpy(p).float() for p in priorities]

    def update(self, drawn, priorities):
        self.buffer.update_priority(drawn, priorities)


class Tianshou(Ours):
    name = "Tianshou"

    def __init__(self, capacity, data):
        import numpy
        from tianshou.data import Batch, PrioritizedVectorReplayBuffer

        self.buffer = PrioritizedVectorReplayBuffer(capacity, ADD, alpha=ALPHA, beta=BETA)
        self.ids = numpy.arange(ADD)
        self.data = Batch(obs=data["obs"], obs_next=data["next_obs"], act=data["action"],
                          rew=data["reward"], terminated=data["done"], truncated=data["done"],
                          info=numpy.array([{}] * ADD))

    def add(self):
        self.buffer.add(self.data, buffer_ids=self.ids)

    def sample(self):
        return self.buffer.sample(SAMPLE)[1]

    def update(self, drawn, priorities):
        self.buffer.update_weight(drawn, priorities)


class StableBaselines3(Ours):
    name, prioritized = "Stable-Baselines3, uniform", False

    def __init__(self, capacity, data):
        import gymnasium
        import numpy
        from stable_baselines3.common.buffers import ReplayBuffer

        observations = gymnasium.spaces.Box(-1, 1, (WIDTH,), numpy.float32)
        self.buffer = ReplayBuffer(capacity, observations, gymnasium.spaces.Discrete(4),
                                   device="cpu", n_envs=ADD)
        self.data = (data["obs"], data["next_obs"], data["action"].reshape(ADD, 1),
                     data["reward"], data["done"], [{}] * ADD)

    def add(self):
        self.buffer.add(*self.data)

    def sample(self):
        return self.buffer.sample(SAMPLE)


class RLlib(Ours):
    name, most = "RLlib", 100_000

    def __init__(self, capacity, data):
        from ray.rllib.policy.sample_batch import SampleBatch
        from ray.rllib.utils.replay_buffers import PrioritizedReplayBuffer

        self.buffer = PrioritizedReplayBuffer(capacity=capacity, storage_unit="timesteps",
                                              alpha=ALPHA)
        self.data = SampleBatch({"obs": data["obs"], "new_obs": data["next_obs"],
                                 "actions": data["action"], "rewards": data["reward"],
                                 "terminateds": data["done"]})

    def add(self):
        self.buffer.add(self.data)

    def sample(self):
        return self.buffer.sample(SAMPLE, beta=BETA)["batch_indexes"]


PEERS = [Cpprb, TorchRL, Tianshou, StableBaselines3, RLlib]


def rounds_of(work, seconds, best, key):
    """Runs `work` for `seconds`, in groups of a few calls. The fastest group counts."""
    end = time.perf_counter() + seconds
    while True:
        began = time.perf_counter()
        for _ in range(4):
            work()
        now = time.perf_counter()
        best[key] = min((now - began) / 4 * 1e6, best.get(key, float("inf")))
        if now > end:
            return


class Measured:
    """A buffer with a million transitions, and its best times, in us for each call."""

    def __init__(self, kind, capacity, data, priorities):
        self.kind = kind
        self.rows = min(capacity, kind.most or capacity)
        self.buffer = kind(self.rows, data)
        self.buffer.fill(self.rows)
        self.priorities = priorities = self.buffer.as_it_likes_them(priorities)
        self.best = {}
        if kind.prioritized:  # so that priorities differ, as in a buffer that was used
            for i in range(1000 if kind.most is None else 50):
                self.buffer.update(self.buffer.sample(), priorities[i % len(priorities)])

    def run(self, operation, seconds):
        buffer = self.buffer
        if operation == "update":
            # Rows and priorities repeat only after many calls: some trees skip updates that change
            # nothing.
            drawn = itertools.cycle([buffer.sample() for _ in range(100)])
            priorities = itertools.cycle(self.priorities)
            rounds_of(lambda: buffer.update(next(drawn), next(priorities)), seconds, self.best,
                      operation)
        else:
            rounds_of(getattr(buffer, operation), seconds, self.best, operation)


def take_turns(ours, peer, rounds, seconds):
    """Runs rounds of ours and of the peer in turn. Returns our best times of these rounds."""
    ours.best = {}
    for _ in range(rounds):
        for operation in ("add", "sample", "update"):
            if operation == "update" and not peer.kind.prioritized:
                continue
            for one in (peer, ours):
                one.run(operation, seconds)
    return ours.best


def show(measured, name, best):
    cells = "  ".join(f"{best[o]:9.1f}" if o in best else f"{'-':>9}"
                      for o in ("add", "sample", "update"))
    note = "" if measured.kind.most is None else f"   ({measured.rows} transitions)"
    print(f"{name:28} {cells}{note}", flush=True)


def ratios(pairings, suffix=""):
    """Prints the ratios. A pairing is a peer's name, its best times, and ours of the same turns."""
    for operation in ("add", "sample", "update"):
        found = [(theirs[operation] / ours[operation], name, theirs[operation], ours[operation])
                 for name, theirs, ours in pairings if operation in theirs]
        if found:
            _, name, theirs, mine = min(found)
            print(f"ratio python.{operation}{suffix} {theirs / mine:.2f} (ours {mine:.1f} us vs "
                  f"{name} {theirs:.1f} us)", flush=True)


def compare(quick):
    import numpy

    capacity = 1_000_000
    rounds, seconds = (3, 0.1) if quick else (8, 0.25)
    rng = numpy.random.default_rng(0)
    data = {"obs": rng.random((ADD, WIDTH), dtype=numpy.float32),
            "next_obs": rng.random((ADD, WIDTH), dtype=numpy.float32),
            "action": rng.integers(0, 4, ADD), "reward": rng.random(ADD, dtype=numpy.float32),
            "done": numpy.zeros(ADD, dtype=numpy.bool_)}
    priorities = [rng.random(SAMPLE) + 0.01 for _ in range(101)]
    print(f"# replay buffers in Python, us a call{' (quick)' if quick else ''}")
    print(f"{'':28} {'add 64':>9}  {'sample 256':>9}  {'update 256':>9}")
    for kinds, suffix in (([k for k in PEERS if k.prioritized], ""),
                          ([k for k in PEERS if not k.prioritized], ".uniform")):
        ours = Measured(OursUniform if suffix else Ours, capacity, data, priorities)
        pairings = []
        for kind in kinds:
            try:
                peer = Measured(kind, capacity, data, priorities)
            except ImportError as missing:
                print(f"{kind.name:28} not here: {missing}")
                continue
            beside = take_turns(ours, peer, rounds, seconds)
            show(peer, kind.name, peer.best)
            show(ours, f"  {ours.kind.name}, beside it", beside)
            peer.buffer = None
            gc.collect()
            pairings.append((kind.name, peer.best, beside))
        ratios(pairings, suffix)
    first_adds(quick, capacity, data)


def first_adds(quick, capacity, data):
    """Measures add() while a new buffer fills for the first time. cpprb takes all its memory when
    it is made, and so does ours; for comparison, ours with memory on demand."""
    best, made = {}, {}
    for _ in range(2 if quick else 4):
        for kind in (Cpprb, Ours, OursOnDemand):
            began = time.perf_counter()
            try:
                buffer = kind(capacity, data)
            except ImportError as missing:
                print(f"{kind.name:28} not here: {missing}")
                return
            ready = time.perf_counter()
            for _ in range(capacity // ADD):
                buffer.add()
            each = (time.perf_counter() - ready) / (capacity // ADD) * 1e6
            best[kind] = min(each, best.get(kind, each))
            made[kind] = min(ready - began, made.get(kind, ready - began))
            del buffer
            gc.collect()
    print(f"ratio python.add.first {best[Cpprb] / best[Ours]:.2f} (ours {best[Ours]:.1f} us vs "
          f"cpprb {best[Cpprb]:.1f} us)")
    print(f"# add with memory on demand: {best[OursOnDemand]:.1f} us; to make the buffers took "
          f"{made[Cpprb]:.2f} s (cpprb), {made[Ours]:.2f} s and {made[OursOnDemand]:.2f} s",
          flush=True)


class Game:
    """Frames of 84 x 84 bytes: four sprites that move over a fixed background."""

    def __init__(self, rng, background):
        self.rng, self.background = rng, background
        self.reset()

    def reset(self):
        self.at = self.rng.integers(0, 76, (4, 2))
        self.speed = self.rng.integers(-2, 3, (4, 2))

    def frame(self):
        frame = self.background.copy()
        self.at += self.speed
        self.speed[(self.at < 0) | (self.at > 76)] *= -1
        self.at.clip(0, 76, out=self.at)
        for x, y in self.at:
            frame[x:x + 8, y:y + 8] = 255
        return frame


def transitions(make_frame, reset, count, numpy):
    """Yields observations of four frames, the next observations, and whether the episode ends."""
    stack = None
    for i in range(count):
        if stack is None:
            reset()
            stack = numpy.repeat(make_frame()[None], 4, axis=0)
        following = numpy.concatenate([stack[1:], make_frame()[None]])
        done = i % 500 == 499
        yield stack, following, done
        stack = None if done else following


def memory(quick):
    import numpy
    from reprise.replay_buffer import ReplayBuffer

    count = 10_000 if quick else 50_000
    columns = {"obs": ((4, 84, 84), numpy.uint8), "next_obs": ((4, 84, 84), numpy.uint8),
               "action": ((), numpy.int64), "reward": ((), numpy.float32),
               "done": ((), numpy.bool_)}
    plain = sum(int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
                for shape, dtype in columns.values())
    rng = numpy.random.default_rng(0)
    game = Game(rng, rng.integers(0, 200, (84, 84), dtype=numpy.uint8))
    sources = [("", game.frame, game.reset),
               (".noise", lambda: rng.integers(0, 256, (84, 84), dtype=numpy.uint8), lambda: 0)]
    for suffix, make_frame, reset in sources:
        buffer = ReplayBuffer(count, columns, seed=1, frames={"obs": 4, "next_obs": 4})
        times = []
        for obs, next_obs, done in transitions(make_frame, reset, count + count // 4, numpy):
            began = time.perf_counter()
            buffer.add(obs, next_obs, 1, 0.0, done)
            times.append(time.perf_counter() - began)
        batch = buffer.sample(256)
        best = {}
        rounds_of(lambda: buffer.sample(256, out=batch), 0.5, best, "sample")
        each = buffer.nbytes / count
        print(f"ratio python.memory{suffix} {plain / each:.2f} (ours {each:.0f} B vs a NumPy ring "
              f"{plain} B)", flush=True)
        print(f"# add one: {sorted(times)[len(times) // 2] * 1e6:.1f} us, "
              f"sample 256: {best['sample']:.0f} us", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        warnings.simplefilter("ignore")
        compare(options.quick)
        memory(options.quick)
        sys.stdout.flush()
        os._exit(0)  # some of the peers take long to exit
    python = environment.interpreter("buffers", __file__)
    site = environment.build_package(python, BUILD)
    variables = {"PYTHONPATH": str(site), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
                 "PYTHONWARNINGS": "ignore", "RAY_DEDUP_LOGS": "0"}
    sys.exit(subprocess.call([python, __file__, "--inside", *["--quick"] * options.quick],
                             env={**os.environ, **variables}))


if __name__ == "__main__":
    main()
