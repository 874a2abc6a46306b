# SPDX-License-Identifier: Apache-2.0
"""n-step transitions: the first and the last observation, and the discounted rewards between.

An item may use any recent steps of a column, also single ones: here one column of the steps becomes two columns of the
item, its first and its last observation. Steps are stored once, however many items use them.
"""

import numpy as np

import reprise

STEPS, DISCOUNT = 3, 0.9
server = reprise.Server([reprise.Table(
    "replay", reprise.selectors.Uniform(), reprise.selectors.Fifo(), max_size=1000,
    rate_limiter=reprise.rate_limiters.MinSize(1),
    signature={"obs": reprise.TensorSpec((4,), np.float32), "last_obs": reprise.TensorSpec((4,), np.float32),
               "action": reprise.TensorSpec((), np.int64), "rewards": reprise.TensorSpec((STEPS,), np.float64)})])
client = server.localhost_client()

with client.trajectory_writer(num_keep_alive_refs=STEPS + 1) as writer:
    for step in range(100):
        writer.append({"obs": np.full(4, step, np.float32), "action": step % 2, "reward": float(step)})
        if step >= STEPS:
            history = writer.history
            writer.create_item("replay", 1.0, {
                "obs": history["obs"][-STEPS - 1], "last_obs": history["obs"][-1],
                "action": history["action"][-STEPS - 1], "rewards": history["reward"][-STEPS - 1:-1]})

batch = next(iter(client.sampler("replay", batch_size=32)))
returns = batch["rewards"] @ DISCOUNT ** np.arange(STEPS)
first = batch["obs"][:, 0]
assert np.array_equal(batch["last_obs"][:, 0], first + STEPS)
assert np.allclose(returns, sum(DISCOUNT**k * (first + k) for k in range(STEPS)))
print(f"{client.server_info()['replay'].current_size} items of 100 steps; returns of a batch: {returns[:4].round(2)} ...")
server.stop()
