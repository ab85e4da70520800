"""NCCL inside a captured step, with one process as the whole group: reduced gradients, and a gather beside them."""
import os

import torch
import torch.distributed as distributed
from show import near

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29556", RANK="0", WORLD_SIZE="1")
distributed.init_process_group("nccl", device_id=torch.device("cuda", 0))
torch.manual_seed(1)
STEPS, RATE = 100, 0.05
start = torch.randn(16, 4, device="cuda") / 4
inputs, targets = torch.randn(STEPS, 32, 16, device="cuda"), torch.randn(STEPS, 32, 4, device="cuda")


def step(weights, x, y, gathered):
    off = x @ weights - y
    slope = x.T @ off * (2 / off.numel())
    distributed.all_reduce(slope)
    distributed.all_gather_into_tensor(gathered, off.sum(0))
    weights -= RATE * slope
    return (off**2).mean()


def train(call, weights, x, y):
    losses = []
    for i in range(STEPS):
        x.copy_(inputs[i]), y.copy_(targets[i])
        losses.append(call().clone())
    return torch.stack(losses).cpu()


gathered = torch.empty(4, device="cuda")
x, y = torch.empty_like(inputs[0]), torch.empty_like(targets[0])
eager = start.clone()
expected = train(lambda: step(eager, x, y, gathered), eager, x, y)
last = gathered.clone()

weights = start.clone()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step(weights, x, y, gathered)
gathered.zero_()


def replay():
    graph.replay()
    return loss


losses = train(replay, weights, x, y)
near("losses", losses.numpy(), expected.numpy(), 1e-5)
near("weights", weights.cpu().numpy(), eager.cpu().numpy(), 1e-5)
near("gathered", gathered.cpu().numpy(), last.cpu().numpy(), 1e-4)
torch.cuda.synchronize()
del graph
distributed.destroy_process_group()
