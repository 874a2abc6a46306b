# SPDX-License-Identifier: Apache-2.0
"""Makes tests/rl/golden/nn_*.txt: updates of small networks by PyTorch, for test_torch.c.

    pip install torch==2.7.1 numpy
    python tests/rl/make_nn_golden.py

Each file has the initial parameters, the inputs, and the parameters and losses after some of 100
steps. Parameters are in the layout of rp_net: a dense weight is in x out, a convolution is
height x width x channels x out, and images have their channels last."""

import pathlib

import torch
from torch import nn

assert torch.__version__.split("+")[0] == "2.7.1", torch.__version__
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
FOLDER = pathlib.Path(__file__).parent / "golden"
STEPS, SHOWN = 100, (1, 2, 10, 100)


class Dueling(nn.Module):
    def __init__(self, width, actions):
        super().__init__()
        self.half = width // 2
        self.value, self.advantage = nn.Linear(self.half, 1), nn.Linear(self.half, actions)

    def forward(self, x):
        a = self.advantage(x[:, self.half:])
        return self.value(x[:, :self.half]) + (a - a.mean(1, keepdim=True))


class Lstm(nn.Module):
    """One layer over `steps` steps; rows are step by step. The second bias stays 0."""

    def __init__(self, width, units, steps):
        super().__init__()
        self.cell, self.steps = nn.LSTM(width, units), steps
        nn.init.zeros_(self.cell.bias_hh_l0).requires_grad_(False)

    def forward(self, x):
        out, _ = self.cell(x.reshape(self.steps, -1, x.shape[1]))
        return out.reshape(x.shape[0], -1)


class Flat(nn.Module):
    """Flattens channels last, as rp_net does."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


def tensors(layer):
    """Yields the parameters of a layer in the order and layout of rp_net."""
    if isinstance(layer, nn.Linear):
        yield from (layer.weight.T, layer.bias)
    elif isinstance(layer, nn.Conv2d):
        yield from (layer.weight.permute(2, 3, 1, 0), layer.bias)
    elif isinstance(layer, nn.LayerNorm):
        yield from (layer.weight, layer.bias)
    elif isinstance(layer, Dueling):
        yield from tensors(layer.value)
        yield from tensors(layer.advantage)
    elif isinstance(layer, Lstm):
        cell = layer.cell
        yield from (cell.weight_ih_l0.T, cell.weight_hh_l0.T, cell.bias_ih_l0)


def flat(net):
    return torch.cat([t.detach().reshape(-1) for layer in net for t in tensors(layer)])


def huber(net, x, taken, target, weights):
    q = net(x).gather(1, taken[:, None])[:, 0]
    return (nn.functional.huber_loss(q, target, reduction="none") * weights).mean()


def write(out, name, values):
    values = [format(v, ".9g") for v in values.reshape(-1).tolist()]
    out.write(f"{name} {len(values)}\n")
    for i in range(0, len(values), 10):
        out.write(" ".join(values[i:i + 10]) + "\n")


def make(name, net, shape, actions, optimizer, rows=8, max_norm=None):
    x, target = torch.randn(rows, *shape), torch.randn(rows) * 2
    taken, weights = torch.randint(actions, (rows,)), torch.rand(rows)
    step = optimizer([p for p in net.parameters() if p.requires_grad])
    with open(FOLDER / f"nn_{name}.txt", "w") as out:
        last = x if x.dim() == 2 else x.permute(0, 2, 3, 1)
        for what, values in (("params", flat(net)), ("input", last), ("taken", taken.float()),
                             ("target", target), ("weights", weights)):
            write(out, what, values)
        for i in range(1, STEPS + 1):
            step.zero_grad()
            loss = huber(net, x, taken, target, weights)
            loss.backward()
            if max_norm:
                nn.utils.clip_grad_norm_(net.parameters(), max_norm)
            step.step()
            if i in SHOWN:
                write(out, f"loss{i}", loss.detach())
                write(out, f"after{i}", flat(net))


def main():
    torch.manual_seed(1)
    adam = lambda p: torch.optim.Adam(p, lr=1e-3)
    mlp = lambda act: nn.Sequential(nn.Linear(4, 12), act(), nn.Linear(12, 10), act(),
                                    nn.Linear(10, 3))
    make("relu_adam", mlp(nn.ReLU), (4,), 3, adam)
    make("tanh_sgd", mlp(nn.Tanh), (4,), 3,
         lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9))
    make("elu_rmsprop", mlp(nn.ELU), (4,), 3,
         lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.95, eps=1e-2, centered=True), max_norm=0.1)
    make("norm_dueling", nn.Sequential(nn.Linear(4, 12), nn.LayerNorm(12), nn.ReLU(), Dueling(12, 3)),
         (4,), 3, adam)
    make("conv", nn.Sequential(nn.Conv2d(2, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 3, 2), nn.ReLU(), Flat(),
                               nn.Linear(27, 3)), (2, 9, 9), 3, adam, rows=4)
    make("lstm", nn.Sequential(nn.Linear(4, 6), nn.Tanh(), Lstm(6, 5, 4), nn.Linear(5, 3)), (4,), 3, adam)


if __name__ == "__main__":
    main()
