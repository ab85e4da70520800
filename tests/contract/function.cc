// Cases for functions: their attributes and occupancy.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(function_attributes, InContext) {
  const CUmodule module = load_module();
  CUfunction function = nullptr;
  int value = 0;
  const char* name = nullptr;
  CU(cuModuleGetFunction)(&function, module, "bounded");
  show("max threads of a bounded kernel",
       CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  show("they are", value);
  CU(cuModuleGetFunction)(&function, module, "empty");
  show("cuFuncGetAttribute 16", CU(cuFuncGetAttribute)(&value, odd<CUfunction_attribute>(16), function));
  show("cuFuncGetAttribute null", CU(cuFuncGetAttribute)(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  show("cuFuncGetAttribute no function", CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr));
  show("dynamic shared by default",
       CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
  show("it is", value);
  const auto set = CU(cuFuncSetAttribute);
  show("setting it to 1 MiB", set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
  show("setting it to -1", set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
  show("setting it to 64 KiB", set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
  show("setting the registers", set(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 8));
  show("setting the carveout to 101", set(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
  show("setting the carveout to 50", set(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
  show("cuFuncSetCacheConfig 99", CU(cuFuncSetCacheConfig)(function, odd<CUfunc_cache>(99)));
  show("cuFuncGetName", CU(cuFuncGetName)(&name, function));
}

GROUP(occupancy, InContext) {
  const CUfunction function = function_of(load_module(), "empty");
  int blocks = 0;
  show("occupancy, block of 0", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 0, 0));
  show("occupancy, block of 2000", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 2000, 0));
  show("blocks", blocks);
  show("occupancy, 1 MiB", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 32, 1 << 20));
  show("blocks", blocks);
  show("occupancy null", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(nullptr, function, 32, 0));
}

GROUP(function_state, InContext) {
  const CUmodule module = load_module();
  const CUfunction function = function_of(module, "store"), bounded = function_of(module, "bounded");
  CUfunctionLoadingState state{};
  std::size_t offset = 0, size = 0;
  int value = 0;
  show("cuFuncLoad", CU(cuFuncLoad)(function));
  show("cuFuncLoad again", CU(cuFuncLoad)(function));
  show("cuFuncLoad no function", CU(cuFuncLoad)(nullptr));
  show("cuFuncIsLoaded", CU(cuFuncIsLoaded)(&state, function));
  show("it is", state);
  show("cuFuncIsLoaded null", CU(cuFuncIsLoaded)(nullptr, function));
  show("cuFuncIsLoaded no function", CU(cuFuncIsLoaded)(&state, nullptr));
  show("cuFuncGetParamInfo 1", CU(cuFuncGetParamInfo)(function, 1, &offset, &size));
  show("its offset", static_cast<long long>(offset));
  show("its size", static_cast<long long>(size));
  show("cuFuncGetParamInfo no offset", CU(cuFuncGetParamInfo)(function, 0, nullptr, &size));
  show("cuFuncGetParamInfo no size", CU(cuFuncGetParamInfo)(function, 0, &offset, nullptr));
  show("cuFuncGetParamInfo no function", CU(cuFuncGetParamInfo)(nullptr, 0, &offset, &size));
  show("cuFuncGetParamInfo of none", CU(cuFuncGetParamInfo)(bounded, 0, &offset, &size));
  show("cuFuncSetCacheConfig", CU(cuFuncSetCacheConfig)(function, CU_FUNC_CACHE_PREFER_L1));
  show("cuFuncSetCacheConfig no function", CU(cuFuncSetCacheConfig)(nullptr, CU_FUNC_CACHE_PREFER_L1));
  constexpr auto shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  show("cuFuncSetAttribute no function", CU(cuFuncSetAttribute)(nullptr, shared, 0));
  show("cuFuncSetAttribute unknown", CU(cuFuncSetAttribute)(function, odd<CUfunction_attribute>(99), 0));
  show("setting the carveout to -1",
       CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1));
  show("setting the carveout to -2",
       CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -2));
  for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i)
    show("attribute " + std::to_string(i), CU(cuFuncGetAttribute)(&value, odd<CUfunction_attribute>(i), function));
}

GROUP(occupancy_questions, InContext) {
  const CUfunction function = function_of(load_module(), "empty");
  const auto plain = CU(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  const auto with_flags = CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  const auto room = CU(cuOccupancyAvailableDynamicSMemPerBlock);
  int blocks = 0;
  std::size_t bytes = 0;
  show("block of 32", plain(&blocks, function, 32, 0));
  show_flag("some fit", blocks > 0);
  show("block of -1", plain(&blocks, function, -1, 0));
  show("no function", plain(&blocks, nullptr, 32, 0));
  show("with flags 0", with_flags(&blocks, function, 32, 0, 0));
  show("with flags 1", with_flags(&blocks, function, 32, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
  show("with flags 2", with_flags(&blocks, function, 32, 0, 2));
  show("with flags, null", with_flags(nullptr, function, 32, 0, 0));
  show("with flags, no function", with_flags(&blocks, nullptr, 32, 0, 0));
  show("shared memory for one block of 32", room(&bytes, function, 1, 32));
  show_flag("there is some", bytes > 0);
  show("shared memory for no blocks", room(&bytes, function, 0, 32));
  show("shared memory for blocks of 0", room(&bytes, function, 1, 0));
  show("shared memory for 1000 blocks", room(&bytes, function, 1000, 32));
  show_guarded("shared memory, null", [&] { return room(nullptr, function, 1, 32); });
  show("shared memory, no function", room(&bytes, nullptr, 1, 32));
}

GROUP(best_block, InContext) {
  const CUfunction function = function_of(load_module(), "empty");
  const auto best = CU(cuOccupancyMaxPotentialBlockSize);
  const auto with_flags = CU(cuOccupancyMaxPotentialBlockSizeWithFlags);
  int grid = 0, block = 0;
  show("cuOccupancyMaxPotentialBlockSize", best(&grid, &block, function, nullptr, 0, 0));
  show_flag("whole warps, or as many as allowed", block == 100 || (block > 0 && block % 32 == 0));
  show("at most 100", best(&grid, &block, function, nullptr, 0, 100));
  show_flag("whole warps, or as many as allowed", block == 100 || (block > 0 && block % 32 == 0));
  show("at most -1", best(&grid, &block, function, nullptr, 0, -1));
  show("too much shared memory", best(&grid, &block, function, nullptr, 1 << 20, 0));
  show("with the caller's function", best(
                                         &grid, &block, function, [](int) { return std::size_t{1024}; }, 0, 0));
  show("no grid", best(nullptr, &block, function, nullptr, 0, 0));
  show("no block", best(&grid, nullptr, function, nullptr, 0, 0));
  show("no function", best(&grid, &block, nullptr, nullptr, 0, 0));
  show("with flags 0", with_flags(&grid, &block, function, nullptr, 0, 0, 0));
  show("with flags 1", with_flags(&grid, &block, function, nullptr, 0, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
  show("with flags 2", with_flags(&grid, &block, function, nullptr, 0, 0, 2));
}

GROUP(occupancy_clusters, InContext) {
  const auto ask = CU(cuOccupancyMaxActiveClusters);
  const CUfunction f = function_of(load_module(), "empty");
  CUlaunchAttribute attribute;
  CUlaunchConfig config;
  std::memset(&attribute, 0, sizeof attribute);
  std::memset(&config, 0, sizeof config);
  int clusters = -1;
  config.gridDimX = config.gridDimY = config.gridDimZ = 8;
  config.blockDimX = 128, config.blockDimY = config.blockDimZ = 1;
  show("of single blocks", ask(&clusters, f, &config));
  show_flag("some fit", clusters > 0);
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {1, 1, 1};
  config.attrs = &attribute, config.numAttrs = 1;
  show("of one block each", ask(&clusters, f, &config));
  attribute.value.clusterDim = {2, 1, 1};
  show("of two blocks each", ask(&clusters, f, &config));
  attribute.value.clusterDim = {64, 1, 1};
  show("of 64 blocks each", ask(&clusters, f, &config));
  attribute.value.clusterDim = {0, 0, 0};
  show("of no blocks", ask(&clusters, f, &config));
  config.numAttrs = 0, config.blockDimX = 0;
  show("a block of 0", ask(&clusters, f, &config));
  config.blockDimX = 128;
  show("null clusters", ask(nullptr, f, &config));
  show("null configuration", ask(&clusters, f, nullptr));
  show("no function", ask(&clusters, nullptr, &config));
  config.numAttrs = 1, config.attrs = nullptr;
  show("attributes null", ask(&clusters, f, &config));
}

}  // namespace
}  // namespace contract
