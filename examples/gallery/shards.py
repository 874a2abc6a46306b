# SPDX-License-Identifier: Apache-2.0
"""Three servers as one: shards of the same table, one of which dies.

Writers spread items over the shards, and samplers draw as if there were one table. When a shard is killed, both go on with
the others.
"""

import numpy as np

import reprise


def table() -> reprise.Table:
    return reprise.Table("replay", reprise.selectors.Prioritized(0.6), reprise.selectors.Fifo(), max_size=10_000,
                         rate_limiter=reprise.rate_limiters.MinSize(1))


if __name__ == "__main__":
    shards = [reprise.Server([table()], where="child") for _ in range(3)]
    client = reprise.Client(",".join(f"localhost:{shard.port}" for shard in shards))
    for i in range(300):
        client.insert([np.float32(i)], {"replay": 1.0 + i % 3})
    sizes = [reprise.Client(f"localhost:{s.port}").server_info()["replay"].current_size for s in shards]
    print(f"items of the shards: {sizes}; together {client.server_info()['replay'].current_size}")
    assert sum(sizes) == 300 and min(sizes) > 50

    batches = iter(client.sampler("replay", 32))  # a learner that is running
    next(batches)
    shards[0].kill()
    after = [next(batches).size for _ in range(50)]
    assert after == [32] * 50
    sampled = [sample for sample in client.sample("replay", num_samples=100, emit_timesteps=False)]
    client.insert([np.float32(300)], {"replay": 1.0})
    print(f"one shard is gone: {sum(after)} samples of a running sampler, {len(sampled)} of a new one and an "
          "insert came through all the same")
    for shard in shards[1:]:
        shard.stop()
