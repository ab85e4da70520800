// What the simulated GPU serves and the guest library refuses: that host/simgpu/api/beyond.def has all of it, that
// there is nothing of the other kind, and that a program is told of each such call once.
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

// The library exports every name; some of its functions only refuse.
bool serves(std::string_view symbol) {
  static const auto ask = reinterpret_cast<bool (*)(const char*)>(exported("ivgpu_sim_serves"));
  return ask(std::string(symbol).c_str());
}

TEST(Beyond, ListsEveryRefusedCallThatTheSimulatedGpuServesAndNoOther) {
  for (const api::EntryPoint& e : api::entry_points) {
    // What is local is the guest library's own code, which may refuse all the same.
    if (served_by_guest(e) && e.line != api::Line::Local) {
      EXPECT_FALSE(beyond.contains(e.name)) << e.name << " is served by the guest library";
    }
    if (!served_by_guest(e)) {
      EXPECT_EQ(serves(e.name), beyond.contains(e.name)) << e.name;
    }
  }
  for (const std::string_view symbol : beyond) EXPECT_TRUE(serves(symbol)) << symbol;
}

// The other way round: what `ivgpu run` serves, `ivgpu sim` serves, too. (A variant of what is refused is refused.)
TEST(Beyond, TheGuestLibraryServesNothingThatTheSimulatedGpuDoesNot) {
  for (const api::EntryPoint& e : api::entry_points) {
    if (served_by_guest(e) && !beyond.contains(e.of)) {
      EXPECT_TRUE(serves(e.name)) << e.name;
    }
  }
}

// Standard error of a child that calls `symbol` twice, with nothing. Some calls do not survive that; what was said
// before counts all the same.
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

// Some of these calls go on to others of them: a program has made one call, so it is told of one.
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

// No program dies of a name that is missing. (In a child, since whether calls are reported is found out at the first.)
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

// The runtime answers "requires newer driver" for each name that it does not get, and nothing is reported.
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

// ... and each goes on to what serves it: with nothing, before cuInit, most are answered at once.
TEST(Beyond, EachIsServed) {
  for (const std::string_view symbol : beyond) {
    const auto is_answered = [&] {
      // No call has more parameters than these zeros.
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
