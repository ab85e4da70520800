// cuGetProcAddress over the project's own table, compared with recorded results of NVIDIA's driver.
#include "ring/abi/proc_address.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ring/api/entry_points.h"

namespace {

// Makes an entry for every served symbol. The entry's "address" is the address of the symbol's line in the table.
std::vector<cuabi::ProcEntry> all_served() {
  std::vector<cuabi::ProcEntry> entries;
  for (const api::EntryPoint& symbol : api::entry_points) {
    const cuabi::ProcName name = cuabi::split_symbol(symbol.name);
    entries.push_back({name.base, name.variant, symbol.since, const_cast<api::EntryPoint*>(&symbol)});
  }
  cuabi::sort_entries(entries);
  return entries;
}

struct Answer {
  CUresult result;
  std::string_view symbol;
  int status;
};

constexpr int untouched = 3;  // within the enumeration's range, but no enumerator

Answer ask(std::span<const cuabi::ProcEntry> entries, const char* name, int version, cuuint64_t flags = 0) {
  void* function = nullptr;
  auto status = static_cast<CUdriverProcAddressQueryResult>(untouched);
  const CUresult result = cuabi::proc_address(entries, 13000, name, &function, version, flags, &status);
  return {result, function == nullptr ? "" : static_cast<api::EntryPoint*>(function)->name, static_cast<int>(status)};
}

TEST(ProcAddress, every_entry_point_of_the_list_is_found_at_the_version_it_came_with) {
  const std::vector<cuabi::ProcEntry> entries = all_served();
  std::ifstream list(IVGPU_TEST_DATA "/entry_points.tsv");
  std::string line;
  int rows = 0;
  while (std::getline(list, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream columns(line);
    std::string name, variant, symbol;
    int since = 0;
    columns >> name >> since >> variant >> symbol;
    const Answer answer = ask(entries, name.c_str(), since, variant == "legacy" ? 0 : 2);
    EXPECT_EQ(answer.result, CUDA_SUCCESS) << line;
    EXPECT_EQ(answer.symbol, symbol) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 634);
}

TEST(ProcAddress, the_newest_form_that_is_not_too_new) {
  const std::vector<cuabi::ProcEntry> entries = all_served();
  EXPECT_EQ(ask(entries, "cuCtxGetDevice", 12090).symbol, "cuCtxGetDevice");
  EXPECT_EQ(ask(entries, "cuCtxGetDevice", 13000).symbol, "cuCtxGetDevice_v2");
  EXPECT_EQ(ask(entries, "cuCtxCreate", 11040).symbol, "cuCtxCreate_v3");
  EXPECT_EQ(ask(entries, "cuGetProcAddress", 11999).symbol, "cuGetProcAddress");
  EXPECT_EQ(ask(entries, "cuGetProcAddress", 12000).symbol, "cuGetProcAddress_v2");
  EXPECT_EQ(ask(entries, "cuMemAlloc", 13000).symbol, "cuMemAlloc_v2");
  EXPECT_EQ(ask(entries, "cuMemAlloc", 3010).symbol, "cuMemAlloc");
}

TEST(ProcAddress, stream_variants) {
  const std::vector<cuabi::ProcEntry> entries = all_served();
  EXPECT_EQ(ask(entries, "cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_DEFAULT).symbol, "cuLaunchKernel");
  EXPECT_EQ(ask(entries, "cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM).symbol, "cuLaunchKernel");
  EXPECT_EQ(ask(entries, "cuLaunchKernel", 13000, 2).symbol, "cuLaunchKernel_ptsz");
  EXPECT_EQ(ask(entries, "cuMemcpyHtoD", 13000, 2).symbol, "cuMemcpyHtoD_v2_ptds");
  EXPECT_EQ(ask(entries, "cuMemAlloc", 13000, 2).symbol, "cuMemAlloc_v2") << "no such variant: the plain form";
  const Answer early = ask(entries, "cuLaunchKernel", 5000, 2);
  EXPECT_EQ(early.symbol, "") << "before there were variants: the plain form has another default stream";
  EXPECT_EQ(early.status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST(ProcAddress, what_is_not_there) {
  const std::vector<cuabi::ProcEntry> entries = all_served();
  for (const char* name : {"", "cuNoSuchCall", "cuMemAlloc_v2", "cuLaunchKernel_ptsz"}) {
    const Answer answer = ask(entries, name, 13000);
    EXPECT_EQ(answer.result, CUDA_SUCCESS) << name;
    EXPECT_EQ(answer.symbol, "") << name;
    EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) << name;
  }
  const Answer too_old = ask(entries, "cuStreamGetId", 11080);
  EXPECT_EQ(too_old.result, CUDA_SUCCESS);
  EXPECT_EQ(too_old.symbol, "");
  EXPECT_EQ(too_old.status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  const Answer too_new = ask(entries, "cuInit", 13010);
  EXPECT_EQ(too_new.result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(too_new.status, untouched);
}

TEST(ProcAddress, what_is_not_served_has_no_older_substitute) {
  std::vector<cuabi::ProcEntry> entries = all_served();
  for (cuabi::ProcEntry& entry : entries)
    if (static_cast<api::EntryPoint*>(entry.function)->name == "cuCtxGetDevice_v2") entry.function = nullptr;
  const Answer answer = ask(entries, "cuCtxGetDevice", 13000);
  EXPECT_EQ(answer.result, CUDA_SUCCESS);
  EXPECT_EQ(answer.symbol, "");
  EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(ask(entries, "cuCtxGetDevice", 12000).symbol, "cuCtxGetDevice");
}

TEST(ProcAddress, bad_arguments) {
  const std::vector<cuabi::ProcEntry> entries = all_served();
  void* function = nullptr;
  EXPECT_EQ(cuabi::proc_address(entries, 13000, nullptr, &function, 12000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuabi::proc_address(entries, 13000, "cuInit", nullptr, 12000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuabi::proc_address(entries, 13000, "cuInit", &function, 12000, 3, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuabi::proc_address(entries, 13000, "cuInit", &function, 12000, 0, nullptr), CUDA_SUCCESS) << "no status";
  EXPECT_NE(function, nullptr);
}

}  // namespace
