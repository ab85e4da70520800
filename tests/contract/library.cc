// Cases for libraries and kernels.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(libraries, Initialized) {
  CUlibrary lib = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0, offset = 0;
  unsigned count = 0;
  int value = 0;
  const char* name = nullptr;
  CUlibraryOption option = odd<CUlibraryOption>(99);
  show("cuLibraryLoadData null", CU(cuLibraryLoadData)(nullptr, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryLoadData no code", CU(cuLibraryLoadData)(&lib, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryLoadData unknown option", CU(cuLibraryLoadData)(&lib, ptx, nullptr, nullptr, 0, &option, nullptr, 1));
  show("cuLibraryLoadData", CU(cuLibraryLoadData)(&lib, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryGetKernel", CU(cuLibraryGetKernel)(&kernel, lib, "store"));
  show("cuLibraryGetKernel unknown", CU(cuLibraryGetKernel)(&kernel, lib, "nothing"));
  show("cuLibraryGetKernel null", CU(cuLibraryGetKernel)(nullptr, lib, "store"));
  show("cuLibraryGetKernel no library", CU(cuLibraryGetKernel)(&kernel, nullptr, "store"));
  show("cuLibraryGetKernel no name", CU(cuLibraryGetKernel)(&kernel, lib, nullptr));
  show("cuLibraryGetKernel for later", CU(cuLibraryGetKernel)(&kernel, lib, "store"));
  show("cuLibraryGetKernelCount", CU(cuLibraryGetKernelCount)(&count, lib));
  show("kernels", count);
  show("cuLibraryGetGlobal without context", CU(cuLibraryGetGlobal)(&address, &size, lib, "answer"));
  show("cuLibraryGetManaged not managed", CU(cuLibraryGetManaged)(&address, &size, lib, "answer"));
  show("cuKernelGetFunction without context", CU(cuKernelGetFunction)(&function, kernel));
  show("cuKernelGetName", CU(cuKernelGetName)(&name, kernel));
  show("cuKernelGetParamInfo 1", CU(cuKernelGetParamInfo)(kernel, 1, &offset, &size));
  show("offset of parameter 1", static_cast<long long>(offset));
  show("size of parameter 1", static_cast<long long>(size));
  show("cuKernelGetParamInfo 2", CU(cuKernelGetParamInfo)(kernel, 2, &offset, &size));
  show("cuKernelGetParamInfo no offset", CU(cuKernelGetParamInfo)(kernel, 0, nullptr, &size));
  show("cuKernelGetParamInfo no size", CU(cuKernelGetParamInfo)(kernel, 0, &offset, nullptr));
  show("cuKernelGetAttribute without context",
       CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device));
  show("cuKernelGetAttribute unknown", CU(cuKernelGetAttribute)(&value, odd<CUfunction_attribute>(16), kernel, device));
  show("cuKernelGetAttribute device 99",
       CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 99));
  show("cuLibraryUnload", CU(cuLibraryUnload)(lib));
  show("cuLibraryUnload null", CU(cuLibraryUnload)(nullptr));
  show("cuLibraryLoadFromFile absent",
       CU(cuLibraryLoadFromFile)(&lib, "/nonexistent", nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryLoadFromFile",
       CU(cuLibraryLoadFromFile)(&lib, file_of(ptx).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
}

CUlibrary load_library() {
  CUlibrary library = nullptr;
  CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  return library;
}

GROUP(libraries_in_a_context, InContext) {
  CUlibrary library = load_library(), found = nullptr;
  CUkernel kernel = nullptr, again = nullptr;
  CUfunction function = nullptr, same = nullptr;
  CUmodule module = nullptr, one = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0, offset = 0;
  unsigned count = 0;
  const char* name = nullptr;
  show("cuLibraryGetKernel", CU(cuLibraryGetKernel)(&kernel, library, "store"));
  CU(cuLibraryGetKernel)(&again, library, "store");
  show_flag("the same handle", kernel == again);
  show("cuKernelGetFunction", CU(cuKernelGetFunction)(&function, kernel));
  CU(cuKernelGetFunction)(&same, kernel);
  show_flag("the same handle", function == same);
  show("cuKernelGetFunction null", CU(cuKernelGetFunction)(nullptr, kernel));
  show("cuKernelGetFunction no kernel", CU(cuKernelGetFunction)(&function, nullptr));
  show("cuKernelGetLibrary", CU(cuKernelGetLibrary)(&found, kernel));
  show_flag("it is that one", found == library);
  show("cuKernelGetLibrary null", CU(cuKernelGetLibrary)(nullptr, kernel));
  show("cuKernelGetLibrary no kernel", CU(cuKernelGetLibrary)(&found, nullptr));
  show("cuKernelGetName null", CU(cuKernelGetName)(nullptr, kernel));
  show("cuKernelGetName no kernel", CU(cuKernelGetName)(&name, nullptr));
  show("cuLibraryGetModule", CU(cuLibraryGetModule)(&module, library));
  CU(cuLibraryGetModule)(&one, library);
  show_flag("the same handle", module == one);
  show("cuLibraryGetModule null", CU(cuLibraryGetModule)(nullptr, library));
  show("cuLibraryGetModule no library", CU(cuLibraryGetModule)(&module, nullptr));
  show("cuModuleGetFunction of that module", CU(cuModuleGetFunction)(&same, module, "store"));
  show_flag("the kernel's function", same == function);
  show("cuFuncGetModule", CU(cuFuncGetModule)(&one, function));
  show_flag("the library's module", one == module);
  show("cuModuleUnload of that module", CU(cuModuleUnload)(module));
  show("cuLibraryGetGlobal", CU(cuLibraryGetGlobal)(&address, &size, library, "answer"));
  show("its size", static_cast<long long>(size));
  show("cuLibraryGetGlobal unknown", CU(cuLibraryGetGlobal)(&address, &size, library, "question"));
  show("cuLibraryGetGlobal no library", CU(cuLibraryGetGlobal)(&address, &size, nullptr, "answer"));
  show("cuLibraryGetGlobal no name", CU(cuLibraryGetGlobal)(&address, &size, library, nullptr));
  show("cuLibraryGetGlobal nulls", CU(cuLibraryGetGlobal)(nullptr, nullptr, library, "answer"));
  show("cuLibraryGetGlobal size only", CU(cuLibraryGetGlobal)(nullptr, &size, library, "answer"));
  show("cuLibraryGetKernelCount null", CU(cuLibraryGetKernelCount)(nullptr, library));
  show("cuLibraryGetKernelCount no library", CU(cuLibraryGetKernelCount)(&count, nullptr));
  show("cuKernelGetParamInfo 1", CU(cuKernelGetParamInfo)(kernel, 1, &offset, &size));
  show("its offset", static_cast<long long>(offset));
  show("cuKernelGetParamInfo 2", CU(cuKernelGetParamInfo)(kernel, 2, &offset, &size));
  show("cuKernelGetParamInfo no kernel", CU(cuKernelGetParamInfo)(nullptr, 0, &offset, &size));
  show("cuLibraryUnload", CU(cuLibraryUnload)(library));
}

GROUP(kernel_attributes, InContext) {
  const CUlibrary library = load_library();
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  int value = 0;
  CU(cuLibraryGetKernel)(&kernel, library, "empty");
  CU(cuKernelGetFunction)(&function, kernel);
  constexpr auto shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  constexpr auto threads = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
  const auto launch = [&](CUfunction f, unsigned bytes) {
    return CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, bytes, nullptr, nullptr, nullptr);
  };
  show("launch of a kernel", launch(reinterpret_cast<CUfunction>(kernel), 0));
  show("launch with 64 KiB", launch(function, 64 << 10));
  show("cuKernelSetAttribute", CU(cuKernelSetAttribute)(shared, 64 << 10, kernel, device));
  show("launch of the function with 64 KiB", launch(function, 64 << 10));
  show("launch of the kernel with 64 KiB", launch(reinterpret_cast<CUfunction>(kernel), 64 << 10));
  show("cuFuncGetAttribute", CU(cuFuncGetAttribute)(&value, shared, function));
  show("it is", value);
  show("cuKernelGetAttribute", CU(cuKernelGetAttribute)(&value, shared, kernel, device));
  show("it is", value);
  show("cuKernelGetAttribute null", CU(cuKernelGetAttribute)(nullptr, threads, kernel, device));
  show("cuKernelGetAttribute no kernel", CU(cuKernelGetAttribute)(&value, threads, nullptr, device));
  show("cuKernelGetAttribute device -1", CU(cuKernelGetAttribute)(&value, threads, kernel, -1));
  show("cuKernelSetAttribute too large", CU(cuKernelSetAttribute)(shared, 1 << 20, kernel, device));
  show("cuKernelSetAttribute threads", CU(cuKernelSetAttribute)(threads, 32, kernel, device));
  show("cuKernelSetAttribute no kernel", CU(cuKernelSetAttribute)(shared, 0, nullptr, device));
  show("cuKernelSetAttribute device 99", CU(cuKernelSetAttribute)(shared, 0, kernel, 99));
  show("cuKernelSetAttribute unknown", CU(cuKernelSetAttribute)(odd<CUfunction_attribute>(99), 0, kernel, device));
  show("cuKernelSetCacheConfig", CU(cuKernelSetCacheConfig)(kernel, CU_FUNC_CACHE_PREFER_L1, device));
  show("cuKernelSetCacheConfig 99", CU(cuKernelSetCacheConfig)(kernel, odd<CUfunc_cache>(99), device));
  show("cuKernelSetCacheConfig no kernel", CU(cuKernelSetCacheConfig)(nullptr, CU_FUNC_CACHE_PREFER_L1, device));
  show("cuKernelSetCacheConfig device 99", CU(cuKernelSetCacheConfig)(kernel, CU_FUNC_CACHE_PREFER_L1, 99));
  show("after those", CU(cuCtxSynchronize)());
}

// A library survives the reset of a context, but objects derived from the library in that context do not.
GROUP(library_after_a_reset, InContext) {
  const CUlibrary library = load_library();
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUcontext context = nullptr;
  CU(cuLibraryGetKernel)(&kernel, library, "empty");
  CU(cuKernelGetFunction)(&function, kernel);
  CU(cuDevicePrimaryCtxReset_v2)(device);
  show("cuKernelGetFunction in no context", CU(cuKernelGetFunction)(&function, kernel));
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  show("cuKernelGetFunction", CU(cuKernelGetFunction)(&function, kernel));
  show("launch", CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuLibraryUnload", CU(cuLibraryUnload)(library));
}

GROUP(library_options, InContext) {
  CUlibrary library = nullptr;
  char log[256] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
  void* none[] = {nullptr};
  const auto load = CU(cuLibraryLoadData);
  show("with a log", load(&library, ptx, options, values, 2, nullptr, nullptr, 0));
  show("garbage", load(&library, "garbage", nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("empty", load(&library, "", nullptr, nullptr, 0, nullptr, nullptr, 0));
  show_guarded("options null", [&] { return load(&library, ptx, nullptr, nullptr, 1, nullptr, nullptr, 0); });
  show("preserved", load(&library, ptx, nullptr, nullptr, 0, &preserved, none, 1));
  show_guarded("library options null", [&] { return load(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 1); });
}

}  // namespace
}  // namespace contract
