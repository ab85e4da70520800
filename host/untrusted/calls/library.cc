// Libraries and kernels. These calls are CUSTOM for the same reasons as those of modules.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/image.h"
#include "host/untrusted/calls/lookup.h"

namespace host::calls {

CUresult cuLibraryLoadData(call_of::cuLibraryLoadData& a) {
  return load_image<CUlibrary>(a, [&](LoadRequest& load, CUlibrary* library) {
    return a.call(library, load.image(), load.options(), load.values(), load.option_count(), nullptr, nullptr, 0u);
  });
}

CUresult cuLibraryGetKernel(call_of::cuLibraryGetKernel& a) { return find_by_name<CUkernel, CUlibrary>(a); }

CUresult cuLibraryEnumerateKernels(call_of::cuLibraryEnumerateKernels& a) {
  return find_in_list<CUkernel, CUlibrary>(a, a.driver().cuLibraryGetKernelCount, a.driver().cuKernelGetName);
}

CUresult cuLibraryGetGlobal(call_of::cuLibraryGetGlobal& a) { return find_global<CUlibrary>(a); }
CUresult cuLibraryGetManaged(call_of::cuLibraryGetManaged& a) { return find_global<CUlibrary, Globals::Managed>(a); }

CUresult cuKernelGetFunction(call_of::cuKernelGetFunction& a) {
  CUfunction function = nullptr;
  const CUresult result = a.call(&function, a.handle<CUkernel>(&api::DeriveRecord::from));
  return result != CUDA_SUCCESS ? result : answer_found(a, function, {});
}

CUresult cuLibraryGetModule(call_of::cuLibraryGetModule& a) {
  CUmodule module = nullptr;
  const CUresult result = a.call(&module, a.handle<CUlibrary>(&api::DeriveRecord::from));
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t id = a.put_once(module);
  return id == 0 ? a.request.broken() : a.answer(result, {{.id = id}});
}

}  // namespace host::calls
