// Libraries and kernels. These calls are handwritten for the same reasons as the calls of modules.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/image.h"
#include "host/untrusted/calls/lookup.h"

namespace host::calls {

CUresult cuLibraryLoadData(call_of::cuLibraryLoadData& a) {
  return load_image<CUlibrary>(a, [&](LoadRequest& load, CUlibrary* library) {
    return a.call(library, load.image(), load.options(), load.values(), load.option_count(), nullptr, nullptr, 0u);
  });
}

CUresult cuLibraryEnumerateKernels(call_of::cuLibraryEnumerateKernels& a) {
  return find_in_list<CUkernel, CUlibrary>(a, a.driver().cuLibraryGetKernelCount, a.driver().cuKernelGetName);
}

CUresult cuLibraryGetGlobal(call_of::cuLibraryGetGlobal& a) { return find_global<CUlibrary>(a); }
CUresult cuLibraryGetManaged(call_of::cuLibraryGetManaged& a) { return find_global<CUlibrary, Globals::Managed>(a); }

}  // namespace host::calls
