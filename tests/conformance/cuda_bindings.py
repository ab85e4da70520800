"""NVIDIA's Python bindings of the driver and of the runtime."""
from cuda.bindings import driver, runtime

print("init", driver.cuInit(0)[0].value, driver.cuDeviceGetCount()[1])
print("runtime", runtime.cudaGetDeviceCount()[1], runtime.cudaMalloc(100)[0].value, runtime.cudaDeviceSynchronize()[0].value)
result, context = driver.cuDevicePrimaryCtxRetain(0)
print("context", result.value, driver.cuCtxSetCurrent(context)[0].value)
result, memory = driver.cuMemAlloc(100)
print("memory", result.value, driver.cuMemsetD8(memory, 1, 100)[0].value)
