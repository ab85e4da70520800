"""CuPy's memory: its pool, the driver's pool (cudaMallocAsync), pinned and managed memory, limits and running out."""
import cupy
import numpy

pool = cupy.get_default_memory_pool()
block = cupy.zeros(10 << 20, dtype=cupy.uint8)
print("in use", pool.used_bytes() >> 20, "held", pool.total_bytes() >> 20)
del block
print("free", pool.n_free_blocks())
pool.free_all_blocks()
print("given back", pool.total_bytes())
pool.set_limit(size=64 << 20)
try:
    cupy.zeros(100 << 20, dtype=cupy.uint8)
except cupy.cuda.memory.OutOfMemoryError as error:
    print("limit", type(error).__name__)
pool.set_limit(size=0)

pinned = cupy.cuda.alloc_pinned_memory(1 << 20)
host = numpy.frombuffer(pinned, numpy.float32, 1 << 18)
host[...] = numpy.arange(1 << 18)
device = cupy.empty(1 << 18, dtype=cupy.float32)
stream = cupy.cuda.Stream(non_blocking=True)
device.set(host, stream=stream)
stream.synchronize()
print("pinned", float(device[-1]))


def use(name, allocator):
    with cupy.cuda.using_allocator(allocator):
        parts = [cupy.full(1 << 20, i, dtype=cupy.float32) for i in range(8)]
        print(name, float(sum(parts).sum()))
        del parts
        cupy.cuda.Device().synchronize()


use("async", cupy.cuda.MemoryAsyncPool().malloc)
use("async, the default pool", cupy.cuda.malloc_async)
use("managed", cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
