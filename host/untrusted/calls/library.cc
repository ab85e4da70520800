// Libraries and kernels. These calls are CUSTOM for the same reasons as those of modules.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/image.h"
#include "host/untrusted/calls/lookup.h"

namespace host::calls {

CUresult cuLibraryLoadData(asked::cuLibraryLoadData& a) {
  return load_image<CUlibrary>(a, [&](LoadRequest& load, CUlibrary* library) {
    return a.call(library, load.image(), load.options(), load.values(), load.option_count(), nullptr, nullptr, 0u);
  });
}

CUresult cuLibraryGetKernel(asked::cuLibraryGetKernel& a) { return find_by_name<CUkernel, CUlibrary>(a); }

CUresult cuLibraryEnumerateKernels(asked::cuLibraryEnumerateKernels& a) {
  return find_in_list<CUkernel, CUlibrary>(a, a.driver().cuLibraryGetKernelCount, a.driver().cuKernelGetName);
}

CUresult cuLibraryGetGlobal(asked::cuLibraryGetGlobal& a) { return find_global<CUlibrary>(a); }
CUresult cuLibraryGetManaged(asked::cuLibraryGetManaged& a) { return find_global<CUlibrary, Globals::Managed>(a); }

CUresult cuKernelGetFunction(asked::cuKernelGetFunction& a) {
  CUfunction function = nullptr;
  const CUresult result = a.call(&function, a.handle<CUkernel>(&api::DeriveRecord::from));
  return result != CUDA_SUCCESS ? result : answer_found(a, function, {});
}

CUresult cuLibraryGetModule(asked::cuLibraryGetModule& a) {
  CUmodule module = nullptr;
  const CUresult result = a.call(&module, a.handle<CUlibrary>(&api::DeriveRecord::from));
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t id = a.put_once(module);
  return id == 0 ? a.request.broken() : a.answer(result, {{.id = id}});
}

}  // namespace host::calls
