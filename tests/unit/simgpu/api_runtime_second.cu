// The second source file of api_runtime.cu when it is built as relocatable device code: a function that the device
// linker adds.
__device__ int from_second_part(int value) { return value + 1000; }
