// Looks up the texture and surface references of a module by name.
#pragma once

#include <string_view>

#include "host/simgpu/api/module/library.h"
#include "host/simgpu/api/texture/texture_reference.h"
#include "ring/base/mutex.h"

namespace simgpu {

// A module's variable, the references that were created for the module's variables, and the table of reference handles.
template <class Reference, class Table>
struct NamedReferences {
  const Global* variable;
  std::map<const Global*, std::shared_ptr<Reference>>& known;
  Table Driver::*handles;
};
template <class Reference, class Table>
NamedReferences<Reference, Table> named_references(const Global* variable,
                                                   std::map<const Global*, std::shared_ptr<Reference>>& known,
                                                   Table Driver::*handles) {
  return {variable, known, handles};
}

// Returns the reference of a module's variable. A reference has one handle, which becomes invalid with the module.
// `named` returns NamedReferences.
template <class Handle, class Named>
CUresult find_reference(CUmodule handle, Handle* out, const char* name, Named named) {
  if (handle == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_context_of(&Driver::modules, handle, [&](Driver& driver, Context&) {
    const std::shared_ptr<LoadedModule> module = driver.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
    const ring::MutexLock lock(module->mutex);
    const auto found = named(*module, std::string_view(name));
    if (found.variable == nullptr) return CUDA_ERROR_NOT_FOUND;
    auto& reference = found.known[found.variable];
    if (reference == nullptr) {
      using Reference = typename std::remove_reference_t<decltype(reference)>::element_type;
      reference = std::make_shared<Reference>();
      const ring::MutexLock uncontended(reference->mutex);
      reference->context = module->context;
      reference->shown.belong_to(module, *found.variable);
      reference->handle = (driver.*found.handles).insert(reference);
    }
    *out = reference->handle;
    return CUDA_SUCCESS;
  });
}

}  // namespace simgpu
