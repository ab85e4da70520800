"""Measures PyTorch's replay of a captured training step of a small transformer, for docs/measurements/graphs.md.
Run several processes natively and several through `ivgpu run`. Each prints its median in microseconds, with a wait
after each replay and with one after 20."""
import statistics
import time

import torch

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
model = torch.nn.Sequential(layer, torch.nn.Linear(128, 16)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(8, 32, 128, device="cuda"), torch.randn(8, 32, 16, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()


def took(replays):
    begin = time.perf_counter()
    for _ in range(replays):
        graph.replay()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / replays * 1e6


for name, replays, times in (("replay_and_wait", 1, 1000), ("replay_of_20_and_wait", 20, 100)):
    took(replays)
    print(name, f"{statistics.median(took(replays) for _ in range(times)):.3f}")
assert loss.isfinite().item()
