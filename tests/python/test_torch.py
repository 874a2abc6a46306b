# SPDX-License-Identifier: Apache-2.0
"""Dataset.torch(): batches as tensors, without and with a DataLoader."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import reprise  # noqa: E402

SIGNATURE = {
    "obs": reprise.TensorSpec((None, 3), np.float32),
    "action": reprise.TensorSpec((None,), np.int64),
}


@pytest.fixture(params=["process", "child"])
def client(request):
    server = reprise.Server(
        [
            reprise.Table.queue("queue", 10000, signature=SIGNATURE),
            reprise.Table.queue("words", 10000),
        ],
        where=request.param,
    )
    yield reprise.Client(f"localhost:{server.port}")
    server.stop()


def fill(client, count, length=1):
    with client.writer(length) as writer:
        for i in range(count * length):
            writer.append({"obs": np.full(3, i, np.float32), "action": np.int64(i)})
            if (i + 1) % length == 0:
                writer.create_item("queue", length, 1.0)
        writer.flush()


def actions(batches):
    return [a for batch in batches for a in batch["action"][:, 0].tolist()]


def test_tensors(client):
    fill(client, 10)
    dataset = client.sampler("queue", 4, max_samples=10).torch()
    assert isinstance(dataset, torch.utils.data.IterableDataset)
    batches = list(dataset)

    assert actions(batches) == list(range(10))
    batch = batches[0]
    assert isinstance(batch, reprise.dataset.Batch)
    assert batch["obs"].dtype == torch.float32 and batch["obs"].shape == (4, 1, 3)
    assert isinstance(batch.weights, torch.Tensor) and isinstance(batch.keys, np.ndarray)
    batch["obs"].add_(1)  # the tensor is writable


def test_tensors_share_the_memory_of_the_arrays(client):
    fill(client, 8)
    addresses = {
        batch["obs"].data_ptr()
        for batch in client.sampler("queue", 2, max_samples=8, prefetch=1, reuse=1).torch()
    }
    assert len(addresses) == 2


def test_memory_of_torch(client):
    """Batches are stacked directly into tensors."""
    fill(client, 8)
    sets = [[torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, 1, 3)] for _ in range(2)]
    memory = [[tensor.numpy() for tensor in tensors] for tensors in sets]
    dataset = client.sampler("queue", 2, max_samples=8, prefetch=1, reuse=1, memory=memory)
    for i, batch in enumerate(dataset):
        assert sets[i % 2][0][:, 0].tolist() == [2 * i, 2 * i + 1]
        assert batch["obs"] is memory[i % 2][1]


def test_ragged(client):
    fill(client, 1, length=1)
    fill(client, 1, length=2)
    (batch,) = client.sampler("queue", 2, max_samples=2, ragged="pad").torch()
    assert batch.lengths["action"].tolist() == [1, 2]
    assert isinstance(batch.lengths["action"], torch.Tensor)


def test_strings_stay_arrays(client):
    client.insert({"w": np.array("word", object), "x": np.float32(1)}, {"words": 1.0})
    (batch,) = client.sampler("words", 1, max_samples=1).torch()
    assert batch.data[0].tolist() == [[b"word"]] and isinstance(batch.data[1], torch.Tensor)


def test_device(client):
    fill(client, 4)
    dataset = client.sampler("queue", 2, max_samples=4).torch(device="cpu")
    assert actions(dataset) == [0, 1, 2, 3]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("device", [None, "cuda"])
def test_pinned(client, device):
    fill(client, 10)
    count = 0
    for i, batch in enumerate(client.sampler("queue", 2, max_samples=10).torch(device=device)):
        assert batch["obs"].is_cuda if device else batch["obs"].is_pinned()
        assert batch["action"][:, 0].tolist() == [2 * i, 2 * i + 1]
        count += 1
    assert count == 5


@pytest.mark.parametrize("device", [None, "cpu"])
def test_pinned_memory_path_without_cuda(client, monkeypatch, device):
    """The same without a CUDA device, with memory that is not pinned."""
    from reprise import torch_dataset

    monkeypatch.setattr(torch_dataset, "_pin", lambda array: torch.from_numpy(array.copy()))
    fill(client, 11)
    dataset = client.sampler("queue", 2, max_samples=11)
    seen, addresses = [], set()
    for batch in dataset.torch(pin_memory=True, device=device):
        seen += batch["action"][:, 0].tolist()
        addresses.add(batch["obs"].data_ptr())
    assert seen == list(range(11)) and len(addresses) <= 4
    assert list(client.sampler("queue", 2, rate_limiter_timeout=0).torch(pin_memory=True)) == []


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_loader(client, workers, method):
    if workers == 0 and method == "spawn":
        pytest.skip("no process is made")
    fill(client, 40)
    loader = torch.utils.data.DataLoader(
        client.sampler("queue", 4, max_samples=40, timeout=120).torch(),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=method if workers else None,
        timeout=120 if workers else 0,
    )
    batches = list(loader)
    assert sorted(actions(batches)) == list(range(40))
    assert isinstance(batches[0]["obs"], torch.Tensor)


def test_data_loader_with_fewer_samples_than_workers(client):
    fill(client, 1)
    loader = torch.utils.data.DataLoader(
        client.sampler("queue", 1, max_samples=1, timeout=120).torch(),
        batch_size=None,
        num_workers=2,
        timeout=120,
    )
    assert len(list(loader)) == 1
