// Tests the calls that the simulated GPU serves and the guest library refuses: host/simgpu/api/beyond.def lists exactly
// these calls, and a program's first use of each call is reported once.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "ring/api/entry_points.h"
#include "tests/child.h"

namespace {

const std::set<std::string_view> beyond{
#define BEYOND(fn) #fn,
#include "host/simgpu/api/beyond.def"
};

bool served_by_guest(const api::EntryPoint& e) { return e.line != api::Line::Refused && e.line != api::Line::Absent; }

void* exported(std::string_view symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return dlsym(library, std::string(symbol).c_str());
}

// The library exports every name, including functions that always refuse.
bool serves(std::string_view symbol) {
  static const auto ask = reinterpret_cast<bool (*)(const char*)>(exported("ivgpu_sim_serves"));
  return ask(std::string(symbol).c_str());
}

TEST(Beyond, ListsEveryRefusedCallThatTheSimulatedGpuServesAndNoOther) {
  for (const api::EntryPoint& e : api::entry_points) {
    // The guest library implements LOCAL calls itself and may refuse them, so the comparison skips these calls.
    if (served_by_guest(e) && e.line != api::Line::Local) {
      EXPECT_FALSE(beyond.contains(e.name)) << e.name << " is served by the guest library";
    }
    if (!served_by_guest(e)) {
      EXPECT_EQ(serves(e.name), beyond.contains(e.name)) << e.name;
    }
  }
  for (const std::string_view symbol : beyond) EXPECT_TRUE(serves(symbol)) << symbol;
}

// The converse: `ivgpu sim` serves every call that `ivgpu run` serves. If a call is refused, its variants are refused
// as well.
TEST(Beyond, TheGuestLibraryServesNothingThatTheSimulatedGpuDoesNot) {
  for (const api::EntryPoint& e : api::entry_points) {
    if (served_by_guest(e) && !beyond.contains(e.of)) {
      EXPECT_TRUE(serves(e.name)) << e.name;
    }
  }
}

// Returns the standard error of a child that calls `symbol` twice with zeros as arguments. Some calls crash; the
// messages before the crash still count.
std::string said_by(std::string_view symbol, const char* warn) {
  const auto call_twice = [&] {
    if (warn != nullptr) setenv("IVGPU_SIM_WARN", warn, 1);
    const auto call = reinterpret_cast<int (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                               std::uint64_t, std::uint64_t)>(exported(symbol));
    for (int i = 0; i < 2; ++i) call(0, 0, 0, 0, 0, 0);
    return 0;
  };
  return output_of_child(call_twice).errors;
}

// Some of these calls use other calls of the list. The program has made one call, so one call is reported.
TEST(Beyond, EachIsReportedOnceWhereThatIsWanted) {
  unsetenv("IVGPU_SIM_WARN");
  for (const std::string_view symbol : beyond) {
    const std::string line = "ivgpu simulated GPU: " + std::string(symbol) +
                             " is served here, but refused by `ivgpu run` and in a VM; `ivgpu coverage PROGRAM` shows "
                             "the state of each call that a program makes\n";
    const std::string said = said_by(symbol, "1");
    EXPECT_EQ(said.substr(0, line.size()), line) << symbol;
    EXPECT_EQ(said.find("is served here", line.size()), std::string::npos) << said;
    for (const char* warn : {static_cast<const char*>(nullptr), "0", "", "yes"})
      EXPECT_EQ(said_by(symbol, warn).find("is served here"), std::string::npos) << symbol;
  }
  for (const char* symbol : {"cuInit", "cuMemAlloc_v2", "cuCtxSynchronize"})
    EXPECT_EQ(said_by(symbol, "1").find("is served here"), std::string::npos) << symbol;
}

// No program fails because a name is missing. The calls are made in a child, because the setting for reports is read at
// the first call.
TEST(Beyond, EveryNameIsExportedAndWhatIsNotServedIsRefused) {
  std::size_t refused = 0;
  for (const api::EntryPoint& e : api::entry_points) {
    ASSERT_NE(exported(e.name), nullptr) << e.name;
    if (serves(e.name)) continue;
    ++refused;
    const auto is_refused = [&] {
      return reinterpret_cast<int (*)()>(exported(e.name))() == CUDA_ERROR_NOT_SUPPORTED ? 0 : 1;
    };
    EXPECT_EQ(run_in_child(is_refused), 0) << e.name;
  }
  EXPECT_GT(refused, 0U);
}

TEST(Beyond, ACallThatNeitherServesIsReportedOnce) {
  const std::string_view symbol = "cuIpcGetMemHandle";
  ASSERT_FALSE(serves(symbol));
  const std::string line = std::string("ivgpu simulated GPU: ") + std::string(symbol) +
                           " is served neither here nor by `ivgpu run` and in a VM; `ivgpu coverage PROGRAM` shows the "
                           "state of each call that a program makes\n";
  EXPECT_EQ(said_by(symbol, "1"), line);
  EXPECT_EQ(said_by(symbol, nullptr), "");
}

// If cuGetProcAddress does not find a name, the runtime reports "requires newer driver". The lookup itself is not
// reported.
TEST(Beyond, CuGetProcAddressGivesCallsThatNeitherServes) {
  const auto find = reinterpret_cast<decltype(&cuGetProcAddress)>(exported("cuGetProcAddress_v2"));
  for (const char* name : {"cuGraphAddMemAllocNode", "cuGraphAddBatchMemOpNode", "cuIpcGetMemHandle",
                           "cuIpcOpenEventHandle", "cuCtxEnablePeerAccess", "cuMemMapArrayAsync"}) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    EXPECT_EQ(find(name, &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status), CUDA_SUCCESS) << name;
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS) << name;
    ASSERT_NE(function, nullptr) << name;
    if (!beyond.contains(name)) {
      EXPECT_EQ(reinterpret_cast<int (*)()>(function)(), CUDA_ERROR_NOT_SUPPORTED) << name;
    }
  }
}

// Each call of the list reaches the function that serves it. With zeros as arguments and before cuInit, most calls
// return at once.
TEST(Beyond, EachIsServed) {
  for (const std::string_view symbol : beyond) {
    const auto is_answered = [&] {
      // No call has more parameters than there are zeros here.
      using Any = std::uint64_t;
      const auto call =
          reinterpret_cast<int (*)(Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any)>(exported(symbol));
      const int result = call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
      return result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_INVALID_VALUE ||
                     result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_SUCCESS
                 ? 0
                 : 1;
    };
    EXPECT_EQ(run_in_child(is_answered), 0) << symbol;
  }
}

}  // namespace
