# SPDX-License-Identifier: Apache-2.0
"""On-policy learning through a queue: REINFORCE on a bandit with ten arms.

Actors put whole trajectories into a queue, and the learner takes each of them once, in order. The queue has
room for 8: actors that are ahead wait, so no trajectory is older than a few updates of the policy.
"""

import threading

import numpy as np

import reprise

ARMS, STEPS, BATCHES, SIZE = 10, 16, 400, 4
means = np.linspace(0, 1, ARMS)  # of the rewards; the last arm is the best
preferences = np.zeros(ARMS)
stop = threading.Event()

table = reprise.Table.queue("trajectories", max_size=8, signature={
    "action": reprise.TensorSpec((STEPS,), np.int64), "reward": reprise.TensorSpec((STEPS,), np.float64)})
server = reprise.Server([table])


def policy() -> np.ndarray:
    weights = np.exp(preferences - preferences.max())
    return weights / weights.sum()


def act(seed: int) -> None:
    random = np.random.default_rng(seed)
    client = server.localhost_client()
    try:
        with client.trajectory_writer(num_keep_alive_refs=STEPS) as writer:
            while not stop.is_set():
                actions = random.choice(ARMS, STEPS, p=policy())
                for action in actions:
                    writer.append({"action": action, "reward": random.normal(means[action], 0.3)})
                writer.create_item("trajectories", 1.0, {name: writer.history[name][-STEPS:]
                                                         for name in ("action", "reward")})
                writer.flush()  # waits while the queue is full
    except reprise.errors.StatusError:
        if not stop.is_set():  # otherwise the server was stopped, which ends the calls that wait
            raise


actors = [threading.Thread(target=act, args=(seed,)) for seed in range(2)]
for actor in actors:
    actor.start()

baseline = 0.0
for _, batch in zip(range(BATCHES), server.localhost_client().sampler("trajectories", batch_size=SIZE)):
    actions, rewards = batch["action"].ravel(), batch["reward"].ravel()
    gradient = np.zeros(ARMS)
    np.add.at(gradient, actions, rewards - baseline)
    gradient -= policy() * (rewards - baseline).sum()
    preferences += 0.5 * gradient / len(actions)
    baseline += 0.1 * (rewards.mean() - baseline)

stop.set()
server.stop()
for actor in actors:
    actor.join()
print(f"the best arm is chosen with probability {policy()[-1]:.2f}, mean reward {policy() @ means:.2f}")
assert policy() @ means > 0.8
