# SPDX-License-Identifier: Apache-2.0
"""64 environments in one call: a batch writer makes the items of each environment by patterns.

The pattern is written once, as a function of the steps; the C library applies it after every step.
"""

import time

import numpy as np

import reprise

COPIES, STEPS = 64, 200
server = reprise.Server([reprise.Table(
    "replay", reprise.selectors.Uniform(), reprise.selectors.Fifo(), max_size=100_000,
    rate_limiter=reprise.rate_limiters.MinSize(1))])
client = server.localhost_client()

step = reprise.structured.create_reference_step({"obs": 0, "action": 0, "reward": 0})
pattern = reprise.structured.pattern_from_transform(step, lambda s: {
    "obs": s["obs"][-2:], "action": s["action"][-2], "reward": s["reward"][-2]})
config = reprise.structured.create_config(pattern, table="replay")
random, begin = np.random.default_rng(1), time.perf_counter()

with client.batch_writer(COPIES, [config]) as writer:
    for t in range(STEPS):
        writer.append_batch({"obs": random.normal(size=(COPIES, 8)).astype(np.float32),
                             "action": random.integers(4, size=COPIES), "reward": np.full(COPIES, t, np.float32)})
    writer.flush()

count = client.server_info()["replay"].current_size
print(f"{count} items of {COPIES * STEPS} steps in {time.perf_counter() - begin:.2f} s")
assert count == COPIES * (STEPS - 1)
server.stop()
