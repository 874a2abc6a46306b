# SPDX-License-Identifier: Apache-2.0
"""Overlapping sequences for recurrent networks, with the state of the network at their start (R2D2).

Items are 8 steps long and begin every 4 steps; the last one of an episode is shorter. The learner pads the batch, and gets the
length of each item to mask the loss.
"""

import numpy as np

import reprise

LENGTH, PERIOD, STATE = 8, 4, 16
server = reprise.Server([reprise.Table(
    "sequences", reprise.selectors.Prioritized(0.9), reprise.selectors.Fifo(), max_size=1000,
    rate_limiter=reprise.rate_limiters.MinSize(1),
    signature={"obs": reprise.TensorSpec((None, 3), np.float32), "reward": reprise.TensorSpec((None,), np.float32),
               "state": reprise.TensorSpec((STATE,), np.float32)})])
client = server.localhost_client()
random = np.random.default_rng(1)


def create(writer: reprise.TrajectoryWriter, length: int) -> None:
    writer.create_item("sequences", 1.0, {
        "obs": writer.history["obs"][-length:], "reward": writer.history["reward"][-length:],
        "state": writer.history["state"][-length]})  # the state before the first step


with client.trajectory_writer(num_keep_alive_refs=LENGTH) as writer:
    for episode in range(20):
        steps = int(random.integers(5, 30))
        for step in range(steps):
            writer.append({"obs": np.full(3, step, np.float32), "reward": np.float32(1),
                           "state": np.full(STATE, step, np.float32)})
            if step + 1 >= LENGTH and (step + 1 - LENGTH) % PERIOD == 0:
                create(writer, LENGTH)
        rest = steps if steps < LENGTH else (steps - LENGTH) % PERIOD
        if rest:
            create(writer, min(steps, LENGTH - PERIOD + rest))
        writer.end_episode()

for batch in client.sampler("sequences", batch_size=16, ragged="pad"):
    lengths = batch.lengths["obs"] if batch.lengths else None
    print(f"obs {batch['obs'].shape}, lengths {lengths}")
    assert batch["obs"].shape[1] <= LENGTH and np.array_equal(batch["state"][:, 0], batch["obs"][:, 0, 0])
    break
server.stop()
