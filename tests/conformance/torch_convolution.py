"""PyTorch, eager: some steps of training a small network of convolutions, in both orders of memory."""
import torch
from show import near, rounded

torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.allow_tf32 = False


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1, groups=4), torch.nn.GroupNorm(4, 32), torch.nn.GELU(),
        torch.nn.ConvTranspose2d(32, 16, 2, stride=2), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(),
        torch.nn.Linear(256, 10),
    ).cuda()


images = torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(2))
kinds = (torch.arange(16) % 10).cuda()
near("one convolution", torch.nn.functional.conv2d(images.cuda(), torch.ones(4, 3, 5, 5).cuda()),
     torch.nn.functional.conv2d(images, torch.ones(4, 3, 5, 5)), 1e-4)
for order in (torch.contiguous_format, torch.channels_last):
    model = network().to(memory_format=order)
    data = images.cuda().to(memory_format=order)
    steps = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=True)
    losses = []
    for _ in range(12):
        steps.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), kinds)
        loss.backward()
        steps.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    print(order, [f"{value:.2f}" for value in losses[:6]])
lines = torch.randn(4, 8, 100, generator=torch.Generator().manual_seed(4)).cuda()
rounded("one dimension", torch.nn.Conv1d(8, 6, 5).cuda()(lines))
rounded("three dimensions", torch.nn.functional.conv3d(torch.ones(2, 3, 8, 8, 8).cuda(), torch.ones(4, 3, 3, 3, 3).cuda()))
