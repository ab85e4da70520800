// Libraries and kernels.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/image.h"
#include "host/untrusted/calls/lookup.h"

namespace host::calls {

CUresult cuLibraryLoadData(Request& r) {
  LoadRequest load(r);
  if (!load.ok()) return load.refused();
  CUlibrary library = nullptr;
  const CUresult result = r.session.driver.cuLibraryLoadData(&library, load.image(), load.options(), load.values(),
                                                             load.option_count(), nullptr, nullptr, 0);
  return loaded(r, load, Handle::Library, library, result);
}

CUresult cuLibraryUnload(Request& r) {
  return close<CUlibrary>(r, Handle::Library, [&](CUlibrary l) { return r.session.driver.cuLibraryUnload(l); });
}

CUresult cuLibraryGetKernel(Request& r) {
  const auto record = r.in.read<api::LookupRecord>();
  const std::string_view name = read_name(r, record.name_bytes);
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* library = static_cast<CUlibrary>(r.session.objects.find(record.from, Handle::Library));
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUkernel kernel = nullptr;
  const CUresult result = r.session.driver.cuLibraryGetKernel(&kernel, library, name.data());
  return result != CUDA_SUCCESS ? result : describe_kernel(r, kernel, record.id, record.from, name);
}

CUresult cuKernelGetFunction(Request& r) {
  const auto record = r.in.read<api::DeriveRecord>();
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* kernel = static_cast<CUkernel>(r.session.objects.find(record.from, Handle::Kernel));
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUfunction function = nullptr;
  const CUresult result = r.session.driver.cuKernelGetFunction(&function, kernel);
  return result != CUDA_SUCCESS ? result : describe_function(r, function, record.id, record.from, "");
}

CUresult cuLibraryGetModule(Request& r) {
  const auto record = r.in.read<api::DeriveRecord>();
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* library = static_cast<CUlibrary>(r.session.objects.find(record.from, Handle::Library));
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmodule module = nullptr;
  const CUresult result = r.session.driver.cuLibraryGetModule(&module, library);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t id = r.session.objects.put_once(record.id, Handle::Module, module, r.place(record.from));
  if (id == 0) return r.broken();
  r.out.slot(id);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(Request& r) {
  return find_global<CUlibrary>(r, Handle::Library, r.session.driver.cuLibraryGetGlobal);
}

}  // namespace host::calls
