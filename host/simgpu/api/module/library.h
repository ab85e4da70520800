// Modules, libraries, kernels and functions: loading code into contexts and resolving handles.
#pragma once

#include "host/simgpu/api/objects.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/module/jit_report.h"
#include "host/simgpu/api/module/owned_image.h"

namespace simgpu {

// Kernel attributes that a program set on a library, for all contexts.
using KernelSettings = std::map<CUfunction_attribute, int>;

// Code without a context. Each context loads its own part at first use.
struct LoadedLibrary {
  explicit LoadedLibrary(OwnedImage image_) : image(std::move(image_)) {}

  OwnedImage image;
  CUlibrary handle = nullptr;
  std::vector<std::string> names;  // kernel names; constant once loaded

  std::mutex mutex;  // for the members below
  std::map<std::string, CUkernel, std::less<>> kernels;
  std::map<std::string, KernelSettings, std::less<>> settings;
  std::map<const Context*, std::shared_ptr<LoadedModule>> parts;
  // Loaded before any context existed, to find errors. The first context on its device takes it over.
  std::shared_ptr<Module> first;
  Device* first_device = nullptr;
};

// Loads onto a device. The log goes to the options' buffers, and to the simulated GPU's log if there are none.
std::shared_ptr<Module> load_on(Driver& driver, Device& device, const void* image, const JitOptions& options,
                                CUresult* error);

// Makes a loaded module usable in a context.
std::shared_ptr<LoadedModule> place_in(Driver& driver, const std::shared_ptr<Context>& context,
                                       std::shared_ptr<Module> module);

// The library's part in the current context. Returns null and sets `error` on failure.
std::shared_ptr<LoadedModule> part_of(Driver& driver, const std::shared_ptr<LoadedLibrary>& library, CUresult* error);

// The function of a CUfunction. A CUkernel resolves to its function in the current context. On failure the function is
// null and `error` is set.
FunctionReference resolve(Driver& driver, CUfunction handle, CUresult* error);

// The function's handle, created at first use.
CUfunction handle_of(Driver& driver, const std::shared_ptr<LoadedModule>& module, LoadedFunction& function);

// Answers cuModuleGetGlobal and similar calls; null, a missing variable, gives no address and no size.
CUresult answer_global(const Global* global, CUdeviceptr* dptr, std::size_t* bytes);

// Removes the handles of a module and its functions, and the entries of its managed variables.
void drop_module(Driver& driver, LoadedModule& module);

// Drops all library parts of an ended context.
void forget_context(Driver& driver, const Context& context);

// Sets a function's default attributes.
void describe(LoadedFunction& function, const Function& code);
// Sets a settable attribute to a checked value.
void set_attribute(LoadedFunction& function, CUfunction_attribute attribute, int value);

}  // namespace simgpu
