// Modules, libraries, kernels and functions: loads code into contexts and resolves handles.
#pragma once

#include "host/simgpu/api/objects.h"
#include "ring/base/mutex.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/module/jit_report.h"
#include "host/simgpu/api/module/owned_image.h"

namespace simgpu {

// Kernel attributes that a program set through a library, for all contexts.
using KernelSettings = std::map<CUfunction_attribute, int>;

// Code without a context. Each context loads its own part of the library at first use.
struct LoadedLibrary {
  explicit LoadedLibrary(OwnedImage image_) : image(std::move(image_)) {}

  OwnedImage image;
  CUlibrary handle = nullptr;
  std::vector<std::string> names;  // names of kernels; constant once loaded

  ring::Mutex mutex;
  std::map<std::string, CUkernel, std::less<>> kernels GUARDED_BY(mutex);
  std::map<std::string, KernelSettings, std::less<>> settings GUARDED_BY(mutex);
  std::map<const Context*, std::shared_ptr<LoadedModule>> parts GUARDED_BY(mutex);
  // A module that was loaded before any context existed, to find errors. The first context on its device takes the
  // module over.
  std::shared_ptr<Module> first GUARDED_BY(mutex);
  Device* first_device GUARDED_BY(mutex) = nullptr;
};

// Loads code onto a device. The log goes to the buffers of the options or, without buffers, to the simulated GPU's log.
std::shared_ptr<Module> load_on(Driver& driver, Device& device, const void* image, const JitOptions& options,
                                CUresult* error);

// Makes a loaded module usable in a context.
std::shared_ptr<LoadedModule> place_in(Driver& driver, const std::shared_ptr<Context>& context,
                                       std::shared_ptr<Module> module);

// Returns the library's part in the current context. On failure, returns null and sets `error`.
std::shared_ptr<LoadedModule> part_of(Driver& driver, const std::shared_ptr<LoadedLibrary>& library, CUresult* error);

// Returns the function of a CUfunction handle. A CUkernel resolves to its function in the current context. On failure,
// the function is null and `error` is set.
FunctionReference resolve(Driver& driver, CUfunction handle, CUresult* error);

// Returns the function's handle, which is created at first use.
CUfunction handle_of(Driver& driver, const std::shared_ptr<LoadedModule>& module, LoadedFunction& function);

// Writes the results of cuModuleGetGlobal and similar calls. If `global` is null, the variable does not exist: the call
// fails and writes neither address nor size.
CUresult answer_global(const Global* global, CUdeviceptr* dptr, std::size_t* bytes);

// Removes the handles of a module and of its functions, and the module's managed variables from the memory map.
void drop_module(Driver& driver, LoadedModule& module);

// Drops the parts of all libraries in an ended context.
void forget_context(Driver& driver, const Context& context);

// Sets a function's attributes to their defaults.
void describe(LoadedFunction& function, const Function& code);
// Sets an attribute to a value that has been checked.
void set_attribute(LoadedFunction& function, CUfunction_attribute attribute, int value);

}  // namespace simgpu
