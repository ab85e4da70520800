"""PyTorch, eager: a transformer's block, forward, backward and some steps of AdamW; then without gradients."""
import torch
from show import rounded

torch.manual_seed(1)
model = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True, norm_first=True), 2, enable_nested_tensor=False
).cuda()
words = torch.randint(0, 500, (8, 64), generator=torch.Generator().manual_seed(2)).cuda()
table = torch.nn.Embedding(500, 128).cuda()
head = torch.nn.Linear(128, 500).cuda()
parameters = [*model.parameters(), *table.parameters(), *head.parameters()]
steps = torch.optim.AdamW(parameters, lr=1e-3)
mask = torch.nn.Transformer.generate_square_subsequent_mask(64, device="cuda")
losses = []
for _ in range(10):
    steps.zero_grad(set_to_none=True)
    said = head(model(table(words), mask=mask, is_causal=True))
    loss = torch.nn.functional.cross_entropy(said.flatten(0, 1), words.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    steps.step()
    losses.append(loss.detach())
losses = torch.stack(losses)
assert losses[-1] < losses[0]
print("losses", [f"{value:.2f}" for value in losses.tolist()])
model.eval()
with torch.no_grad():
    said = head(model(table(words), mask=mask, is_causal=True))
rounded("said", said.log_softmax(-1))
