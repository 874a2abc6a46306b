# SPDX-License-Identifier: Apache-2.0
"""reprise inside other frameworks: a module for each of them.

    reprise.frameworks.stable_baselines3   a replay_buffer_class, and DQN with prioritized replay
    reprise.frameworks.torchrl             TensorDictPrioritizedReplayBuffer
    reprise.frameworks.tianshou            PrioritizedVectorReplayBuffer
    reprise.frameworks.rllib               PrioritizedEpisodeReplayBuffer
    reprise.frameworks.transfer_queue      a storage backend for TransferQueue

A module imports its framework, so import only those that you need; this package imports none. The
pages docs/frameworks.md and docs/llm.md (for TransferQueue) have programs that run.
"""
