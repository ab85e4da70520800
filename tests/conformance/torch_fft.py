"""PyTorch with cuFFT: one to three dimensions, real and complex, lengths of every kind, windows in time."""
import torch
from show import near, rounded

ones = torch.ones(1024, device="cuda")
print("fft", float(torch.fft.fft(ones).real[0]))
print("back", bool(torch.allclose(torch.fft.irfft(torch.fft.rfft(ones)), ones)))
made = torch.Generator().manual_seed(1)
for sizes in ((1000,), (127,), (4096,), (60, 64), (16, 15, 14)):
    values = torch.randn(3, *sizes, generator=made, dtype=torch.float64)
    places = tuple(range(1, 1 + len(sizes)))
    near(f"rfftn of {sizes}", torch.fft.rfftn(values.cuda(), dim=places), torch.fft.rfftn(values, dim=places), 1e-12)
    near(f"fftn of {sizes}", torch.fft.fftn(values.cuda(), dim=places), torch.fft.fftn(values, dim=places), 1e-12)
    near(f"and back {sizes}", torch.fft.ifftn(torch.fft.fftn(values.cuda(), dim=places), dim=places).real, values, 1e-12)
sound = torch.sin(torch.arange(8000, device="cuda") * 0.05)
rounded("spectrogram", torch.stft(sound, 400, window=torch.hann_window(400, device="cuda"), return_complex=True).abs())
rounded("half", torch.fft.rfft(torch.ones(64, 256, device="cuda", dtype=torch.float16)).real)
