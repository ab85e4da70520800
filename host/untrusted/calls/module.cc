// Modules. CUSTOM, as libraries, because an image is as long as it says itself, JIT options come with buffers, and the
// reply to a lookup brings what the guest needs to check and pack launches.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/image.h"
#include "host/untrusted/calls/lookup.h"

namespace host::calls {

CUresult cuModuleLoadDataEx(Request& r) {
  LoadRequest load(r);
  if (!load.ok()) return load.refused();
  const auto making = r.session.making();
  CUmodule module = nullptr;
  const CUresult result =
      r.session.driver.cuModuleLoadDataEx(&module, load.image(), load.option_count(), load.options(), load.values());
  return loaded(r, load, Handle::Module, module, result);
}

CUresult cuModuleLoadData(Request& r) { return calls::cuModuleLoadDataEx(r); }

CUresult cuModuleUnload(Request& r) {
  return close<CUmodule>(r, Handle::Module, [&](CUmodule m) { return r.session.driver.cuModuleUnload(m); });
}

CUresult cuModuleGetFunction(Request& r) {
  const auto record = r.in.read<api::LookupRecord>();
  const std::string_view name = read_name(r, record.name_bytes);
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* module = static_cast<CUmodule>(r.session.objects.find(record.from, Handle::Module));
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUfunction function = nullptr;
  const CUresult result = r.session.driver.cuModuleGetFunction(&function, module, name.data());
  return result != CUDA_SUCCESS ? result : describe_function(r, function, record.id, record.from, name);
}

CUresult cuModuleGetGlobal_v2(Request& r) {
  return find_global<CUmodule>(r, Handle::Module, r.session.driver.cuModuleGetGlobal_v2);
}

}  // namespace host::calls
