"""PyTorch's DataLoader: worker processes, a thread that pins, copies that do not wait."""
import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        return torch.full((3, 64, 64), float(i)), i * i


def run(**options):
    loader = torch.utils.data.DataLoader(Squares(), batch_size=16, pin_memory=True, **options)
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    squares = 0
    for images, labels in loader:
        assert images.is_pinned()
        images = images.to("cuda", non_blocking=True)
        total += images.double().mean(dim=(1, 2, 3)).sum()
        squares += int(labels.to("cuda", non_blocking=True).sum())
    print(options, float(total), squares)


if __name__ == "__main__":
    run()
    run(num_workers=2)
    run(num_workers=2, persistent_workers=True, prefetch_factor=4)
    run(num_workers=2, multiprocessing_context="spawn")
