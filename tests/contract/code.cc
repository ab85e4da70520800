// Cases for modules: images that can be loaded, and lookups of names.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(module_load, InContext) {
  CUmodule module = nullptr;
  char log[256] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  constexpr char broken[] = ".version 7.0\n.target sm_70\n.address_size 64\n.entry f() { no such thing; }\n";
  show("cuModuleLoadData null", CU(cuModuleLoadData)(nullptr, ptx));
  show("cuModuleLoadData no image", CU(cuModuleLoadData)(&module, nullptr));
  show("cuModuleLoadData empty", CU(cuModuleLoadData)(&module, ""));
  show("cuModuleLoadData garbage", CU(cuModuleLoadData)(&module, "garbage, not code"));
  show("cuModuleLoadData only a comment", CU(cuModuleLoadData)(&module, "// nothing\n"));
  show("cuModuleLoadData only a version", CU(cuModuleLoadData)(&module, ".version 7.0\n"));
  show("cuModuleLoadData PTX 99.0", CU(cuModuleLoadData)(&module, ".version 99.0\n.target sm_70\n.address_size 64\n"));
  show("cuModuleLoadData no kernels", CU(cuModuleLoadData)(&module, ".version 7.0\n.target sm_70\n.address_size 64\n"));
  show("cuModuleLoadDataEx broken", CU(cuModuleLoadDataEx)(&module, broken, 2, options, values));
  show("it logged", log[0] != 'u' && log[0] != '\0' ? 1 : 0);
  show("the log's size is its length", reinterpret_cast<std::size_t>(values[1]) == std::strlen(log) ? 1 : 0);
  show("cuModuleLoad absent", CU(cuModuleLoad)(&module, "/nonexistent"));
  show("cuModuleLoad", CU(cuModuleLoad)(&module, file_of(ptx).c_str()));
  show("cuModuleLoad empty", CU(cuModuleLoad)(&module, file_of("").c_str()));
}

GROUP(module_lookup, InContext) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr a = 0;
  std::size_t size = 0, offset = 0;
  unsigned count = 0;
  show("cuModuleLoadData", CU(cuModuleLoadData)(&module, ptx));
  show("cuModuleGetFunction unknown", CU(cuModuleGetFunction)(&function, module, "nothing"));
  show("cuModuleGetFunction null", CU(cuModuleGetFunction)(nullptr, module, "store"));
  show("cuModuleGetFunction no name", CU(cuModuleGetFunction)(&function, module, nullptr));
  show("cuModuleGetFunction no module", CU(cuModuleGetFunction)(&function, nullptr, "store"));
  show("cuModuleGetFunctionCount", CU(cuModuleGetFunctionCount)(&count, module));
  show("functions", count);
  show("cuModuleGetGlobal", CU(cuModuleGetGlobal_v2)(&a, &size, module, "answer"));
  show("its size", static_cast<long long>(size));
  show("cuModuleGetGlobal constant", CU(cuModuleGetGlobal_v2)(&a, &size, module, "fixed"));
  show("cuModuleGetGlobal unknown", CU(cuModuleGetGlobal_v2)(&a, &size, module, "question"));
  show("cuModuleGetGlobal size only", CU(cuModuleGetGlobal_v2)(nullptr, &size, module, "answer"));
  show("cuModuleGetGlobal nulls", CU(cuModuleGetGlobal_v2)(nullptr, nullptr, module, "answer"));
  show("cuModuleGetFunction", CU(cuModuleGetFunction)(&function, module, "store"));
  show("cuFuncGetParamInfo 0", CU(cuFuncGetParamInfo)(function, 0, &offset, &size));
  show("cuFuncGetParamInfo 2", CU(cuFuncGetParamInfo)(function, 2, &offset, &size));
  show("cuModuleUnload null", CU(cuModuleUnload)(nullptr));
}

GROUP(module_handles, InContext) {
  const CUmodule module = load_module(), other = load_module();
  CUfunction function = nullptr, again = nullptr, elsewhere = nullptr;
  CUmodule of = nullptr;
  CUdeviceptr a = 0, b = 0;
  std::size_t size = 0;
  unsigned count = 0;
  const char* name = nullptr;
  show_flag("two loads, two handles", module != other);
  show("cuModuleGetFunction", CU(cuModuleGetFunction)(&function, module, "store"));
  show("cuModuleGetFunction again", CU(cuModuleGetFunction)(&again, module, "store"));
  show_flag("the same handle", function == again);
  CU(cuModuleGetFunction)(&elsewhere, other, "store");
  show_flag("another module's is another", function != elsewhere);
  show("cuFuncGetModule", CU(cuFuncGetModule)(&of, function));
  show_flag("it is that one", of == module);
  show("cuFuncGetModule null", CU(cuFuncGetModule)(nullptr, function));
  show("cuFuncGetModule no function", CU(cuFuncGetModule)(&of, nullptr));
  show("cuFuncGetName null", CU(cuFuncGetName)(nullptr, function));
  show("cuFuncGetName no function", CU(cuFuncGetName)(&name, nullptr));
  CU(cuModuleGetGlobal_v2)(&a, &size, module, "answer");
  CU(cuModuleGetGlobal_v2)(&b, &size, module, "answer");
  show_flag("a global has one address", a == b);
  show("cuModuleGetGlobal no module", CU(cuModuleGetGlobal_v2)(&a, &size, nullptr, "answer"));
  show("cuModuleGetGlobal no name", CU(cuModuleGetGlobal_v2)(&a, &size, module, nullptr));
  show("cuModuleGetGlobal address only", CU(cuModuleGetGlobal_v2)(&a, nullptr, module, "answer"));
  show("cuMemFree of a global", CU(cuMemFree_v2)(b));
  show("cuModuleGetFunctionCount null", CU(cuModuleGetFunctionCount)(nullptr, module));
  show("cuModuleGetFunctionCount no module", CU(cuModuleGetFunctionCount)(&count, nullptr));
  show("cuModuleGetFunction empty name", CU(cuModuleGetFunction)(&again, module, ""));
  show("cuModuleUnload", CU(cuModuleUnload)(other));
}

GROUP(module_globals, InContext) {
  const CUmodule module = load_module();
  CUdeviceptr a = 0, start = 0;
  std::size_t size = 0;
  unsigned value = 0, type = 0;
  CU(cuModuleGetGlobal_v2)(&a, &size, module, "answer");
  show("DtoH of a global", CU(cuMemcpyDtoH_v2)(&value, a, 4));
  show("it holds", value);
  show("HtoD to a global", CU(cuMemcpyHtoD_v2)(a, &size, 4));
  show("cuMemsetD32 of a global", CU(cuMemsetD32_v2)(a, 1, 1));
  show("type of a global", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  show("cuMemGetAddressRange of a global", CU(cuMemGetAddressRange_v2)(&start, &size, a));
  CU(cuModuleGetGlobal_v2)(&a, &size, module, "fixed");
  show("DtoH of a constant", CU(cuMemcpyDtoH_v2)(&value, a, 4));
  show("it holds", value);
  show("HtoD to a constant", CU(cuMemcpyHtoD_v2)(a, &size, 4));
  show("cuModuleUnload", CU(cuModuleUnload)(module));
}

GROUP(module_options, InContext) {
  CUmodule module = nullptr;
  char info[256] = "untouched";
  CUjit_option one[] = {CU_JIT_TARGET};
  void* wanted[] = {reinterpret_cast<void*>(CU_TARGET_COMPUTE_75)};
  CUjit_option logs[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {info, reinterpret_cast<void*>(sizeof info)};
  CUjit_option level[] = {CU_JIT_OPTIMIZATION_LEVEL};
  void* four[] = {reinterpret_cast<void*>(4)};
  CUmoduleLoadingMode mode{};
  const auto load = CU(cuModuleLoadDataEx);
  show("no options", load(&module, ptx, 0, nullptr, nullptr));
  show("with a log", load(&module, ptx, 2, logs, values));
  show("level 4", load(&module, ptx, 1, level, four));
  show("module null", load(nullptr, ptx, 0, nullptr, nullptr));
  show("image null", load(&module, nullptr, 0, nullptr, nullptr));
  show("target 75", load(&module, ptx, 1, one, wanted));
  show("cuModuleLoadFatBinary", CU(cuModuleLoadFatBinary)(&module, ptx));
  show("cuModuleLoadFatBinary null", CU(cuModuleLoadFatBinary)(nullptr, ptx));
  show("cuModuleLoadFatBinary no image", CU(cuModuleLoadFatBinary)(&module, nullptr));
  show("cuModuleGetLoadingMode", CU(cuModuleGetLoadingMode)(&mode));
  show("it is", mode);
  show_guarded("options null", [&] { return load(&module, ptx, 1, nullptr, nullptr); });
  show_guarded("values null", [&] { return load(&module, ptx, 1, level, nullptr); });
  show_guarded("cuModuleGetLoadingMode null", [&] { return CU(cuModuleGetLoadingMode)(nullptr); });
}

}  // namespace
}  // namespace contract
