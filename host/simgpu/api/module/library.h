// Modules, libraries, kernels and functions: how code gets into a context and how its handles are resolved.
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

// The attributes that a program has set for a kernel of a library, for all contexts.
using KernelSettings = std::map<CUfunction_attribute, int>;

// Code that belongs to no context; each gets a part of its own when it first uses it.
struct LoadedLibrary {
  explicit LoadedLibrary(OwnedImage image_) : image(std::move(image_)) {}

  OwnedImage image;
  CUlibrary handle = nullptr;
  std::vector<std::string> names;  // of the kernels; constant once loaded

  std::mutex mutex;  // for the members below
  std::map<std::string, CUkernel, std::less<>> kernels;
  std::map<std::string, KernelSettings, std::less<>> settings;
  std::map<const Context*, std::shared_ptr<LoadedModule>> parts;
  // Loaded to see whether it can be, before there was a context; the first one on its device takes it.
  std::shared_ptr<Module> first;
  Device* first_device = nullptr;
};

// Into a device; the log goes where the options say, and into the simulated GPU's where a program would be left to guess.
std::shared_ptr<Module> load_on(Driver& driver, Device& device, const void* image, const JitOptions& options,
                                CUresult* error);

// A loaded module made usable in a context.
std::shared_ptr<LoadedModule> place_in(Driver& driver, const std::shared_ptr<Context>& context,
                                       std::shared_ptr<Module> module);

// A library's part in the current context. Null with the error.
std::shared_ptr<LoadedModule> part_of(Driver& driver, const std::shared_ptr<LoadedLibrary>& library, CUresult* error);

// The function that a CUfunction names, which may be a CUkernel: then its function in the current context. Null
// function with the error.
FunctionReference resolve(Driver& driver, CUfunction handle, CUresult* error);

// The handle of a function, made at the first question.
CUfunction handle_of(Driver& driver, const std::shared_ptr<LoadedModule>& module, LoadedFunction& function);

// The answer of cuModuleGetGlobal and its kin; a variable that is not there (null) has no address and no size.
CUresult answer_global(const Global* global, CUdeviceptr* dptr, std::size_t* bytes);

// Takes back the handles of a module and its functions, and the entries of its managed variables.
void drop_module(Driver& driver, LoadedModule& module);

// The end of a context: no library has a part in it any more.
void forget_context(Driver& driver, const Context& context);

// A function with the attributes that it has until a program sets them.
void describe(LoadedFunction& function, const Function& code);
// An attribute that cuFuncSetAttribute may set, with a value that has been checked.
void set_attribute(LoadedFunction& function, CUfunction_attribute attribute, int value);

}  // namespace simgpu
