"""Numba: kernels in Python, with shared memory, atomics, a function of the device, streams and pinned arrays."""
import math

import numpy

# numba-cuda asks for a name that NumPy 2.5 has no more.
if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack
from numba import cuda, float32  # noqa: E402
from show import exact, near  # noqa: E402


@cuda.jit(device=True)
def curve(x):
    return math.sqrt(x) + 1


@cuda.jit
def apply(values, out):
    i = cuda.grid(1)
    if i < values.size:
        out[i] = curve(values[i])


@cuda.jit
def block_sums(values, sums):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    part[t] = values[cuda.grid(1)]
    cuda.syncthreads()
    width = 64
    while width > 0:
        if t < width:
            part[t] += part[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        cuda.atomic.add(sums, 0, part[0])


values = numpy.arange(128 * 64, dtype=numpy.float32)
out = cuda.device_array_like(values)
try:
    apply[64, 128](cuda.to_device(values), out)
except Exception as error:
    # Numba imports without the toolkit's compiler, and misses it only now.
    if "Support" not in type(error).__name__:
        raise
    raise SystemExit(f"not installed: {str(error).splitlines()[0]}")
near("curve", out.copy_to_host(), numpy.sqrt(values) + 1, 1e-6)
exact("curve", out.copy_to_host())
sums = cuda.to_device(numpy.zeros(1, numpy.float32))
block_sums[16, 128](cuda.to_device(values % 8), sums)
print("sum", float(sums.copy_to_host()[0]))
stream = cuda.stream()
pinned = cuda.pinned_array(1000, dtype=numpy.float64)
pinned[:] = 2
there = cuda.to_device(pinned, stream=stream)
back = there.copy_to_host(stream=stream)
stream.synchronize()
print("pinned", float(back.sum()))
