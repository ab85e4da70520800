// Loads code, and resolves a program's handle to the function that runs in the current context.
#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/log.h"
#include "host/simgpu/api/module/library.h"
#include "host/simgpu/api/texture/texture_reference.h"
#include "ring/base/mutex.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>

namespace simgpu {
namespace {

// Returns a prefix such as "libcublasLt.so.13: " if the image lies in a shared library, else an empty text.
std::string library_of(const void* image) {
  Dl_info found{};
  if (dladdr(image, &found) == 0 || found.dli_fname == nullptr) return {};
  const std::string_view path(found.dli_fname);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.find(".so") == std::string_view::npos ? std::string() : std::string(name) + ": ";
}

void report_load(const void* image, const JitReport& report, const Module::Loaded& loaded,
                 JitReport::Milliseconds took) {
  const bool failed = loaded.module == nullptr;
  report.write(failed ? std::string() : loaded.log, failed ? loaded.log : std::string(), took);
  // The error code of a damaged image needs no explanation. A limit of the simulation does, so its text is logged.
  if (failed && loaded.code != CUDA_ERROR_INVALID_IMAGE) log_error(library_of(image) + loaded.log);
}

// Adds managed variables to the memory map, so that every call that takes an address treats them as managed memory.
void enter_managed_variables(Driver& driver, const LoadedModule& module) {
  for (const Global* global : module.module->globals()) {
    if (!global->managed || global->size == 0) continue;
    driver.memory.insert({.start = global->address,
                          .size = global->size,
                          .kind = MemoryKind::Managed,
                          .device = &module.context->device,
                          .context = module.context.get(),
                          .id = driver.next_id() | std::uint64_t{1} << 50,  // ids of other memory never have bit 50
                          .is_variable = true});
  }
}

void forget_managed_variables(Driver& driver, const LoadedModule& module) {
  for (const Global* global : module.module->globals()) {
    if (!global->managed || global->size == 0) continue;
    driver.memory.take(global->address, [](const Allocation& a) { return a.is_variable; });
    driver.managed_advice.forget(global->address, global->size);
  }
}

}  // namespace

std::shared_ptr<Module> load_on(Driver&, Device& device, const void* image, const JitOptions& options,
                                CUresult* error) {
  const JitReport report(options);
  const auto start = std::chrono::steady_clock::now();
  Module::Loaded loaded = Module::load(image, device.space);
  report_load(image, report, loaded, std::chrono::steady_clock::now() - start);
  *error = loaded.code;
  return std::shared_ptr<Module>(std::move(loaded.module));
}

std::shared_ptr<LoadedModule> place_in(Driver& driver, const std::shared_ptr<Context>& context,
                                       std::shared_ptr<Module> module) {
  auto placed = std::make_shared<LoadedModule>();
  placed->context = context;
  placed->module = std::move(module);
  for (const Function* code : placed->module->functions()) {
    auto function = std::make_unique<LoadedFunction>();
    describe(*function, *code);
    placed->functions.emplace(code->name, std::move(function));
  }
  enter_managed_variables(driver, *placed);
  return placed;
}

std::shared_ptr<LoadedModule> part_of(Driver& driver, const std::shared_ptr<LoadedLibrary>& library, CUresult* error) {
  const std::shared_ptr<Context> context = driver.current_shared();
  *error = CUDA_SUCCESS;
  if (context == nullptr)
    *error = CUDA_ERROR_INVALID_CONTEXT;
  else if (!context->active.load(std::memory_order_acquire))
    *error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (*error != CUDA_SUCCESS) return nullptr;

  const ring::MutexLock lock(library->mutex);
  std::shared_ptr<LoadedModule>& part = library->parts[context.get()];
  if (part != nullptr) return part;
  std::shared_ptr<Module> module;
  if (library->first != nullptr && library->first_device == &context->device) {
    module = std::exchange(library->first, nullptr);
  } else {
    module = load_on(driver, context->device, library->image.get(), {}, error);
  }
  if (module == nullptr) {
    library->parts.erase(context.get());
    return nullptr;
  }
  part = place_in(driver, context, std::move(module));
  part->library = library;
  for (const auto& [name, settings] : library->settings) {
    const auto function = part->functions.find(name);
    if (function == part->functions.end()) continue;
    for (const auto& [attribute, value] : settings) set_attribute(*function->second, attribute, value);
  }
  return part;
}

FunctionReference resolve(Driver& driver, CUfunction handle, CUresult* error) {
  *error = CUDA_ERROR_INVALID_HANDLE;
  // The runtime accepts any host pointer as a kernel and passes unknown pointers on. An unknown handle is therefore an
  // ordinary error of the program here, and the process is not aborted.
  if (!is_kind(handle, HandleKind::Kernel) && !is_kind(handle, HandleKind::Function)) return {};
  if (!is_kind(handle, HandleKind::Kernel)) {
    const std::shared_ptr<FunctionReference> found = driver.functions.find(handle);
    if (found == nullptr) return {};
    *error = CUDA_SUCCESS;
    return *found;
  }
  const std::shared_ptr<Kernel> kernel = driver.kernels.find(reinterpret_cast<CUkernel>(handle));
  const std::shared_ptr<LoadedLibrary> library = kernel == nullptr ? nullptr : kernel->library.lock();
  if (library == nullptr) return {};
  const std::shared_ptr<LoadedModule> part = part_of(driver, library, error);
  if (part == nullptr) return {};
  return {part, part->functions.at(kernel->name).get()};
}

CUfunction handle_of(Driver& driver, const std::shared_ptr<LoadedModule>& module, LoadedFunction& function) {
  const ring::MutexLock lock(module->mutex);
  if (function.handle == nullptr)
    function.handle =
        driver.functions.insert(std::make_shared<FunctionReference>(FunctionReference{module, &function}));
  return function.handle;
}

CUresult answer_global(const Global* global, CUdeviceptr* dptr, std::size_t* bytes) {
  if (dptr != nullptr) *dptr = global == nullptr ? 0 : global->address;
  if (bytes != nullptr) *bytes = global == nullptr ? 0 : global->size;
  return global == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

void drop_module(Driver& driver, LoadedModule& module) {
  forget_managed_variables(driver, module);
  const ring::MutexLock lock(module.mutex);
  for (const auto& [name, function] : module.functions)
    if (function->handle != nullptr) driver.functions.remove(std::exchange(function->handle, nullptr));
  for (const auto& [variable, reference] : module.texture_references)
    driver.texture_references.remove(reference->handle);
  for (const auto& [variable, reference] : module.surface_references)
    driver.surface_references.remove(reference->handle);
  if (module.handle != nullptr) driver.modules.remove(std::exchange(module.handle, nullptr));
}

void forget_context(Driver& driver, const Context& context) {
  for (const auto& library : driver.libraries.all()) {
    std::shared_ptr<LoadedModule> part;
    {
      const ring::MutexLock lock(library->mutex);
      const auto found = library->parts.find(&context);
      if (found == library->parts.end()) continue;
      part = std::move(found->second);
      library->parts.erase(found);
    }
    drop_module(driver, *part);
  }
}

}  // namespace simgpu
