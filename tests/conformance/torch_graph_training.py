"""Training by CUDA graphs: a whole step that is replayed 1,000 times beside its eager twin, and modules made graphs."""
import copy

import torch
from show import near

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
STEPS, BATCHES = 1000, 8
model = torch.nn.Sequential(
    torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 4)
).cuda()
inputs = torch.randn(BATCHES, 16, 32, generator=torch.Generator().manual_seed(2)).cuda()
targets = torch.randn(BATCHES, 16, 4, generator=torch.Generator().manual_seed(3)).cuda()


class Training:
    """A model with an optimizer, whose step works on tensors that stay where they are."""

    def __init__(self, model, make_optimizer):
        self.model = copy.deepcopy(model)
        self.optimizer = make_optimizer(self.model.parameters())
        self.input, self.target = inputs[0].clone(), targets[0].clone()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(self.model(self.input), self.target)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def warm_up(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)

    def run(self, step):
        losses = torch.zeros(STEPS, device="cuda")
        for i in range(STEPS):
            self.input.copy_(inputs[i % BATCHES])
            self.target.copy_(targets[i % BATCHES])
            losses[i] = step()
        return losses


def captured(training):
    training.optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = training.step()

    def replay():
        graph.replay()
        return loss

    return replay


for name, make_optimizer in (
    ("SGD", lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9)),
    ("AdamW", lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, capturable=True)),
):
    eager, graphed = Training(model, make_optimizer), Training(model, make_optimizer)
    eager.warm_up()
    graphed.warm_up()
    right = eager.run(eager.step)
    losses = graphed.run(captured(graphed))
    assert float(right[-BATCHES:].mean()) < float(right[:BATCHES].mean()), f"{name} does not learn"
    near(f"{name}, losses of {STEPS} replays", losses, right, 1e-3)
    for i, (got, expected) in enumerate(zip(graphed.model.parameters(), eager.model.parameters())):
        near(f"{name}, parameter {i}", got, expected, 1e-2)

# Random numbers go on from replay to replay as they do without a graph.
ones = torch.ones(1000, device="cuda")
torch.cuda.manual_seed(5)
masks = [torch.nn.functional.dropout(ones, 0.5) for _ in range(4)]
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    mask = torch.nn.functional.dropout(ones, 0.5)
torch.cuda.manual_seed(5)
for i, expected in enumerate(masks):
    graph.replay()
    near(f"dropout {i}", mask, expected, 0)

# Modules whose forward and backward are graphs, in a training loop that is none.
first = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh()).cuda()
second = torch.nn.Linear(64, 4).cuda()
twins = copy.deepcopy(first), copy.deepcopy(second)
first = torch.cuda.make_graphed_callables(first, (torch.randn(16, 32, device="cuda"),))
second = torch.cuda.make_graphed_callables(second, (torch.randn(16, 64, device="cuda", requires_grad=True),))


def train(first, second):
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
    losses = torch.zeros(100, device="cuda")
    for i in range(100):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(second(first(inputs[i % BATCHES])), targets[i % BATCHES])
        loss.backward()
        optimizer.step()
        losses[i] = loss.detach()
    return losses


near("graphed callables, losses", train(first, second), train(*twins), 1e-4)
