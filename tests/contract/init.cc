// Cases for cuInit, the driver's version, calls that work before cuInit, and error names.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(init, Loaded) {
  int value = 0;
  CUcontext context = nullptr;
  show("cuDriverGetVersion before cuInit", CU(cuDriverGetVersion)(&value));
  show("cuDeviceGetCount before cuInit", CU(cuDeviceGetCount)(&value));
  show("cuCtxGetCurrent before cuInit", CU(cuCtxGetCurrent)(&context));
  show("cuCtxSynchronize before cuInit", CU(cuCtxSynchronize)());
  show("cuInit with flags", CU(cuInit)(1));
  show("cuInit", CU(cuInit)(0));
  show("cuInit again", CU(cuInit)(0));
  show("cuDriverGetVersion null", CU(cuDriverGetVersion)(nullptr));
  show("cuInit with flags after cuInit", CU(cuInit)(1));
}

GROUP(error_names, Loaded) {
  const char* text = nullptr;
  show("cuGetErrorName before cuInit", CU(cuGetErrorName)(CUDA_ERROR_INVALID_VALUE, &text));
  show_flag("the name is the enum's", text != nullptr && std::strcmp(text, "CUDA_ERROR_INVALID_VALUE") == 0);
  show("cuGetErrorString before cuInit", CU(cuGetErrorString)(CUDA_ERROR_INVALID_VALUE, &text));
  show_flag("it says invalid argument", text != nullptr && std::strcmp(text, "invalid argument") == 0);
  show("cuGetErrorName unknown", CU(cuGetErrorName)(odd<CUresult>(12345), &text));
  show("cuGetErrorName unknown, pointer", text == nullptr ? 0 : 1);
  show("cuGetErrorString unknown", CU(cuGetErrorString)(odd<CUresult>(12345), &text));
  show_flag("cuGetErrorString unknown, pointer", text != nullptr);
  show("cuGetErrorName negative", CU(cuGetErrorName)(odd<CUresult>(-1), &text));
  show_guarded("cuGetErrorName null", [&] { return CU(cuGetErrorName)(CUDA_SUCCESS, nullptr); });
  show_guarded("cuGetErrorString null", [&] { return CU(cuGetErrorString)(CUDA_SUCCESS, nullptr); });
  show("cuGetErrorString success", CU(cuGetErrorString)(CUDA_SUCCESS, &text));
  show_flag("it says no error", text != nullptr && std::strcmp(text, "no error") == 0);
}

// Shows how many numbers below 1000 have an error name, and how many have an error text.
GROUP(error_numbers, Loaded) {
  int names = 0, texts = 0;
  for (int i = 0; i < 1000; ++i) {
    const char* text = nullptr;
    names += CU(cuGetErrorName)(odd<CUresult>(i), &text) == CUDA_SUCCESS;
    texts += CU(cuGetErrorString)(odd<CUresult>(i), &text) == CUDA_SUCCESS;
  }
  show("names", names);
  show("texts", texts);
}

GROUP(profiler, InContext) {
  show("cuProfilerStart", CU(cuProfilerStart)());
  show("cuProfilerStart again", CU(cuProfilerStart)());
  show("cuProfilerStop", CU(cuProfilerStop)());
  show("cuProfilerStop again", CU(cuProfilerStop)());
}

GROUP(profiler_without_context, Initialized) {
  show("cuProfilerStart", CU(cuProfilerStart)());
  show("cuProfilerStop", CU(cuProfilerStop)());
}

}  // namespace
}  // namespace contract
