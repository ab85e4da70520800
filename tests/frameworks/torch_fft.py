"""cuFFT."""
import torch

ones = torch.ones(1024, device="cuda")
print("fft", float(torch.fft.fft(ones).real[0]))
print("back", bool(torch.allclose(torch.fft.irfft(torch.fft.rfft(ones)), ones)))
