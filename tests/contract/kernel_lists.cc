// Cases for the list of a library's kernels, the list of a module's functions, and related queries.
#include <algorithm>

#include "tests/contract/suite.h"

namespace contract {
namespace {

CUlibrary library_of_the_ptx() {
  CUlibrary library = nullptr;
  CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  return library;
}

constexpr unsigned most = 16;
const std::set<std::string> kernel_names{"bounded", "empty", "exact", "stop", "store"};  // kernels of the suite's PTX

template <class Handle>
bool all_differ(std::vector<Handle> list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) == list.end();
}

GROUP(kernels_of_a_library, InContext) {
  const CUlibrary library = library_of_the_ptx();
  std::vector<CUkernel> kernels(most, nullptr);
  unsigned count = 0;
  CU(cuLibraryGetKernelCount)(&count, library);
  show("all", CU(cuLibraryEnumerateKernels)(kernels.data(), count, library));
  kernels.resize(std::min(count, most));
  show_flag("none is null", std::find(kernels.begin(), kernels.end(), nullptr) == kernels.end());
  show_flag("no two are one", all_differ(kernels));
  std::set<std::string> names;
  for (const CUkernel kernel : kernels) {
    const char* name = "";
    CU(cuKernelGetName)(&name, kernel);
    names.insert(name);
  }
  show_flag("they have the kernels' names", names == kernel_names);
  CUkernel store = nullptr;
  CU(cuLibraryGetKernel)(&store, library, "store");
  show_flag("the looked up one is among them", std::find(kernels.begin(), kernels.end(), store) != kernels.end());
  CUfunction function = nullptr;
  show("a listed one has a function", CU(cuKernelGetFunction)(&function, kernels.front()));
  CUlibrary owner = nullptr;
  show("cuKernelGetLibrary of it", CU(cuKernelGetLibrary)(&owner, kernels.front()));
  show_flag("it is this library", owner == library);
}

GROUP(kernels_of_a_library_by_parts, InContext) {
  const CUlibrary library = library_of_the_ptx();
  CUkernel few[most], more[most];
  std::fill(few, few + most, nullptr);
  std::fill(more, more + most, nullptr);
  show("two", CU(cuLibraryEnumerateKernels)(few, 2, library));
  show_flag("two are written", few[0] != nullptr && few[1] != nullptr && few[2] == nullptr);
  show("more than there are", CU(cuLibraryEnumerateKernels)(more, most, library));
  show_flag("the same ones first", few[0] == more[0] && few[1] == more[1]);
  show_flag("the rest is untouched", more[most - 1] == nullptr);
  show("none", CU(cuLibraryEnumerateKernels)(few, 0, library));
  show("no library", CU(cuLibraryEnumerateKernels)(few, 1, nullptr));
  show("null and none", CU(cuLibraryEnumerateKernels)(nullptr, 0, library));
  show_guarded("null", [&] { return CU(cuLibraryEnumerateKernels)(nullptr, 1, library); });
}

GROUP(kernels_without_a_context, Initialized) {
  const CUlibrary library = library_of_the_ptx();
  CUkernel kernels[most];
  show("all", CU(cuLibraryEnumerateKernels)(kernels, most, library));
}

GROUP(functions_of_a_module, InContext) {
  const CUmodule module = load_module();
  std::vector<CUfunction> functions(most, nullptr);
  unsigned count = 0;
  CU(cuModuleGetFunctionCount)(&count, module);
  show("all", CU(cuModuleEnumerateFunctions)(functions.data(), count, module));
  functions.resize(std::min(count, most));
  show_flag("none is null", std::find(functions.begin(), functions.end(), nullptr) == functions.end());
  show_flag("no two are one", all_differ(functions));
  std::set<std::string> names;
  for (const CUfunction function : functions) {
    const char* name = "";
    CU(cuFuncGetName)(&name, function);
    names.insert(name);
  }
  show_flag("they have the kernels' names", names == kernel_names);
  const CUfunction store = function_of(module, "store"), empty = function_of(module, "empty");
  show_flag("the looked up one is among them", std::find(functions.begin(), functions.end(), store) != functions.end());
  const auto found = std::find(functions.begin(), functions.end(), empty);
  const CUfunction listed = found == functions.end() ? nullptr : *found;
  show("a listed one is launched", CU(cuLaunchKernel)(listed, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CUmodule owner = nullptr;
  show("cuFuncGetModule of one", CU(cuFuncGetModule)(&owner, functions.front()));
  show_flag("it is this module", owner == module);
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
}

GROUP(functions_of_a_module_by_parts, InContext) {
  const CUmodule module = load_module();
  CUfunction few[most], more[most];
  std::fill(few, few + most, nullptr);
  std::fill(more, more + most, nullptr);
  show("two", CU(cuModuleEnumerateFunctions)(few, 2, module));
  show_flag("two are written", few[0] != nullptr && few[1] != nullptr && few[2] == nullptr);
  show("more than there are", CU(cuModuleEnumerateFunctions)(more, most, module));
  show_flag("the same ones first", few[0] == more[0] && few[1] == more[1]);
  show_flag("the rest is untouched", more[most - 1] == nullptr);
  show("none", CU(cuModuleEnumerateFunctions)(few, 0, module));
  show("null and none", CU(cuModuleEnumerateFunctions)(nullptr, 0, module));
  show("no module", CU(cuModuleEnumerateFunctions)(few, 1, nullptr));
  show_guarded("null", [&] { return CU(cuModuleEnumerateFunctions)(nullptr, 1, module); });
}

GROUP(functions_of_a_librarys_module, InContext) {
  const CUlibrary library = library_of_the_ptx();
  CUmodule module = nullptr;
  CUkernel kernel = nullptr;
  CUfunction functions[most], function = nullptr;
  std::fill(functions, functions + most, nullptr);
  CU(cuLibraryGetModule)(&module, library);
  show("all", CU(cuModuleEnumerateFunctions)(functions, most, module));
  CU(cuLibraryGetKernel)(&kernel, library, "store");
  CU(cuKernelGetFunction)(&function, kernel);
  show_flag("a kernel's function is among them", std::find(functions, functions + most, function) != functions + most);
}

GROUP(unified_functions, InContext) {
  const CUlibrary library = library_of_the_ptx();
  void* function = nullptr;
  show("a kernel", CU(cuLibraryGetUnifiedFunction)(&function, library, "empty"));
  show("unknown", CU(cuLibraryGetUnifiedFunction)(&function, library, "nothing"));
  show("null", CU(cuLibraryGetUnifiedFunction)(nullptr, library, "empty"));
  show("no library", CU(cuLibraryGetUnifiedFunction)(&function, nullptr, "empty"));
  show_guarded("no name", [&] { return CU(cuLibraryGetUnifiedFunction)(&function, library, nullptr); });
}

GROUP(potential_cluster, InContext) {
  const auto ask = CU(cuOccupancyMaxPotentialClusterSize);
  const CUfunction f = function_of(load_module(), "empty");
  CUlaunchAttribute attribute;
  CUlaunchConfig config;
  std::memset(&attribute, 0, sizeof attribute);
  std::memset(&config, 0, sizeof config);
  int size = -1;
  config.gridDimX = config.gridDimY = config.gridDimZ = 8;
  config.blockDimX = 128, config.blockDimY = config.blockDimZ = 1;
  show("of blocks of 128", ask(&size, f, &config));
  show_flag("some blocks", size > 0);
  config.blockDimX = 0;
  show("a block of 0", ask(&size, f, &config));
  config.blockDimX = 1025;
  show("a block of 1025", ask(&size, f, &config));
  config.blockDimX = 128, config.sharedMemBytes = 1 << 20;
  show("a MiB of shared memory", ask(&size, f, &config));
  config.sharedMemBytes = 0, config.gridDimX = 0;
  show("a grid of 0", ask(&size, f, &config));
  config.gridDimX = 8, config.numAttrs = 1, config.attrs = &attribute;
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {2, 1, 1};
  show("clusters of two", ask(&size, f, &config));
  attribute.id = odd<CUlaunchAttributeID>(99);
  show("attribute 99", ask(&size, f, &config));
  config.attrs = nullptr;
  show("attributes null", ask(&size, f, &config));
  config.numAttrs = 0;
  show("null size", ask(nullptr, f, &config));
  show("null configuration", ask(&size, f, nullptr));
  show("no function", ask(&size, nullptr, &config));
}

}  // namespace
}  // namespace contract
