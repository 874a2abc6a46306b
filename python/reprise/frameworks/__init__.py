# SPDX-License-Identifier: Apache-2.0
"""The replay buffer of reprise inside other frameworks: a module for each of them.

    reprise.frameworks.stable_baselines3   a replay_buffer_class, and DQN with prioritized replay
    reprise.frameworks.torchrl             TensorDictPrioritizedReplayBuffer
    reprise.frameworks.tianshou            PrioritizedVectorReplayBuffer
    reprise.frameworks.rllib               PrioritizedEpisodeReplayBuffer

A module imports its framework, so import only those that you need; this package imports none. The
page docs/frameworks.md has programs that run.
"""
