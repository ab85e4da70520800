// The guest's libnvidia-ml.so.1, tested through its exported functions, with a simulated region and broker. The library
// must answer as an H200's library did for tests/probes/nvml_answers.cc. Further tests cover cases that only a guest
// has.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ring/shared/observed.h"
#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/unit/guest/nvml_vm.h"

namespace {

using guest_nvml::FakeRegion, guest_nvml::number_for, guest_nvml::put, guest_nvml::Vm;
using testing::internal::CaptureStderr, testing::internal::GetCapturedStderr;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t short_ns = 50 * ms, long_ns = std::chrono::nanoseconds(test_deadline).count();

class Nvml : public testing::Test {
 protected:
  Nvml() { be_patient({.first_ns = long_ns, .later_ns = long_ns}); }
  ~Nvml() override {
    guest::nvml::library().replace([] { return nullptr; }, {});
  }

  // Replaces the library by a new one.
  void be_patient(guest::nvml::Patience patience) {
    guest::nvml::library().replace(
        [this]() -> std::unique_ptr<guest::Region> {
          if (vm_.ends_region) return nullptr;
          return std::make_unique<FakeRegion>(vm_);
        },
        patience);
  }
  nvmlDevice_t device(unsigned index = 0) {
    nvmlDevice_t found = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &found), NVML_SUCCESS);
    return found;
  }
  nvmlDevice_t start() {
    EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
    return device();
  }
  // Starts a library that waits only briefly for an answer from now on. On a busy machine an answer may arrive too
  // late; then this function starts again. After an unanswered call, the next calls fail at once, as if the broker
  // stayed silent.
  nvmlDevice_t start_impatient() {
    nvmlDevice_t found = nullptr;
    EXPECT_TRUE(before_deadline([&] {
      be_patient({.first_ns = long_ns, .later_ns = short_ns, .pause_ns = 10 * long_ns});
      return nvmlInit_v2() == NVML_SUCCESS && nvmlDeviceGetHandleByIndex_v2(0, &found) == NVML_SUCCESS;
    }));
    return found;
  }
  void lose(std::uint32_t gpu) {
    vm_.change([&](Vm& vm) { vm.gpus[gpu].state = IVGPU_GPU_UNKNOWN; });
    let_pass();
  }
  // Waits until a snapshot is too old for reuse.
  static void let_pass() { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }

  Vm vm_;
};

std::string text_of(const std::function<nvmlReturn_t(char*, unsigned)>& get, unsigned room = 96) {
  std::string text(room + 1, '#');
  const nvmlReturn_t result = get(text.data(), room);
  EXPECT_EQ(text[room], '#') << "it wrote past the room";
  return result == NVML_SUCCESS ? text.c_str() : "error " + std::to_string(result);
}

// ---- initialising --------------------------------------------------------------------------------------------------

// Returns the result of each function in the tables for this device. Other tests check the values.
std::vector<std::pair<std::string, nvmlReturn_t>> ask_all_getters(nvmlDevice_t device) {
  unsigned a = 0, b = 0;
  unsigned long long wide = 0;
  return {
#define NUMBER(fact, function) {#function, function(device, &a)},
#define OF_KIND(fact, function, kind) {#function, function(device, kind, &a)},
#define PAIR(first, second, function) {#function, function(device, &a, &b)},
#define WIDE(fact, function) {#function, function(device, &wide)},
#define ERRORS(fact, function, kind, counter) {#function, function(device, kind, counter, &wide)},
#define APART(fact)
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
  };
}
std::vector<std::pair<std::string, nvmlReturn_t>> ask_all_unsupported(nvmlDevice_t device) {
  return {
#define DEVICE(function) {#function, function(device)},
#define SETTER(function)
#define OTHER(function) {#function, function()},
#include "guest/nvml/not_supported.def"
#undef DEVICE
#undef SETTER
#undef OTHER
  };
}
std::vector<std::pair<std::string, nvmlReturn_t>> ask_all_setters(nvmlDevice_t device) {
  return {
#define DEVICE(function)
#define SETTER(function) {#function, function(device)},
#define OTHER(function)
#include "guest/nvml/not_supported.def"
#undef DEVICE
#undef SETTER
#undef OTHER
  };
}

// A cancelled thread still waits for the broker's answer, and leaves no lock locked.
TEST_F(Nvml, CallsAreNoCancellationPoints) {
  static nvmlReturn_t result = NVML_ERROR_UNKNOWN;
  pthread_t thread;
  const auto run = [](void*) -> void* {
    pthread_cancel(pthread_self());
    result = nvmlInit_v2();
    pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, run, nullptr), 0);
  void* ended = nullptr;
  ASSERT_EQ(pthread_join(thread, &ended), 0);
  EXPECT_EQ(ended, PTHREAD_CANCELED);
  EXPECT_EQ(result, NVML_SUCCESS);
  EXPECT_NE(start(), nullptr);
}

TEST_F(Nvml, NothingButItsVersionAndTheTextsOfErrorsIsThereBeforeItIsInitialised) {
  const nvmlDevice_t device = start();
  ASSERT_EQ(nvmlShutdown(), NVML_SUCCESS);
  for (const nvmlDevice_t asked : {device, nvmlDevice_t{nullptr}}) {
    for (const auto& [name, result] : ask_all_getters(asked)) EXPECT_EQ(result, NVML_ERROR_UNINITIALIZED) << name;
    for (const auto& [name, result] : ask_all_unsupported(asked)) EXPECT_EQ(result, NVML_ERROR_UNINITIALIZED) << name;
    for (const auto& [name, result] : ask_all_setters(asked)) EXPECT_EQ(result, NVML_ERROR_UNINITIALIZED) << name;
  }
  EXPECT_EQ(nvmlDeviceGetCount_v2(nullptr), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, nullptr), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlSystemGetDriverVersion(nullptr, 0), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlSystemGetCudaDriverVersion(nullptr), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlSystemGetProcessName(1, nullptr, 0), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(text_of(nvmlSystemGetNVMLVersion, 80), "13.580.159.04");
  EXPECT_EQ(vm_.open, 0) << "it keeps a region that nobody has opened";
  EXPECT_STREQ(nvmlErrorString(NVML_ERROR_GPU_IS_LOST), "GPU is lost");
  EXPECT_STREQ(nvmlErrorString(16), "GPU requires reset");
  EXPECT_STREQ(nvmlErrorString(5000), "Unknown Error");
}

TEST_F(Nvml, CountsItsInitialisations) {
  EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(nvmlInitWithFlags(1), NVML_SUCCESS);
  EXPECT_EQ(nvmlInit(), NVML_SUCCESS);
  EXPECT_EQ(vm_.opened, 1);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(vm_.open, 1);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(vm_.open, 0);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

TEST_F(Nvml, AVmWithoutGpusIsNoError) {
  vm_.change([](Vm& vm) { vm.gpus.clear(); });
  EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  unsigned count = 7;
  EXPECT_EQ(nvmlDeviceGetCount(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex(0, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetIndex(guest::nvml::handle_of(0), &count), NVML_ERROR_INVALID_ARGUMENT);
}

// ---- answers of an H200 --------------------------------------------------------------------------------------------

TEST_F(Nvml, VersionsAreTheHostsDrivers) {
  start();
  EXPECT_EQ(text_of(nvmlSystemGetDriverVersion, 80), "580.159.04");
  EXPECT_EQ(text_of(nvmlSystemGetDriverVersion, 4), "error 7");
  EXPECT_EQ(nvmlSystemGetDriverVersion(nullptr, 80), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(text_of(nvmlSystemGetNVMLVersion, 80), "13.580.159.04");
  EXPECT_EQ(text_of(nvmlSystemGetNVMLVersion, 13), "error 7");
  int version = 0, version_v2 = 0;
  EXPECT_EQ(nvmlSystemGetCudaDriverVersion(&version), NVML_SUCCESS);
  EXPECT_EQ(nvmlSystemGetCudaDriverVersion_v2(&version_v2), NVML_SUCCESS);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(version_v2, 13000);
}

TEST_F(Nvml, FindsDevicesByIndexUuidAndPciAddress) {
  const nvmlDevice_t first = start();
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(99, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-00000000-0000-0000-0000-000000000000", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("nonsense", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(nullptr, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("ffff:ff:1f.0", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:00:06.1", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("nonsense", &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(nullptr, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(found, nullptr);
  for (const char* name : {"00000000:00:06.0", "0000:00:06.0", "00:06.0"}) {
    found = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId(name, &found), NVML_SUCCESS) << name;
    EXPECT_EQ(found, first) << name;
  }
  found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(guest_nvml::uuid, &found), NVML_SUCCESS);
  EXPECT_EQ(found, first);
}

TEST_F(Nvml, GivesTextOnlyWhereItFits) {
  const nvmlDevice_t d = start();
  const auto uuid = [&](char* to, unsigned room) { return nvmlDeviceGetUUID(d, to, room); };
  const auto name = [&](char* to, unsigned room) { return nvmlDeviceGetName(d, to, room); };
  EXPECT_EQ(text_of(uuid, 96), guest_nvml::uuid);
  EXPECT_EQ(text_of(uuid, 41), guest_nvml::uuid);
  EXPECT_EQ(text_of(uuid, 40), "error 7");
  EXPECT_EQ(text_of(name, 12), "NVIDIA H200");
  EXPECT_EQ(text_of(name, 8), "error 7");
  EXPECT_EQ(nvmlDeviceGetName(d, nullptr, 96), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(text_of([&](char* to, unsigned room) { return nvmlDeviceGetVbiosVersion(d, to, room); }), "96.00.A5.00.1A");
  vm_.change([](Vm& vm) { put(vm.gpus[0].vbios, ""); });
  let_pass();
  EXPECT_EQ(text_of([&](char* to, unsigned room) { return nvmlDeviceGetVbiosVersion(d, to, room); }), "error 3");
}

TEST_F(Nvml, ReportsPciAddresses) {
  const nvmlDevice_t d = start();
  nvmlPciInfo_t pci{};
  ASSERT_EQ(nvmlDeviceGetPciInfo_v3(d, &pci), NVML_SUCCESS);
  EXPECT_STREQ(pci.busIdLegacy, "0000:00:06.0");
  EXPECT_STREQ(pci.busId, "00000000:00:06.0");
  EXPECT_EQ(pci.domain, 0u);
  EXPECT_EQ(pci.bus, 0u);
  EXPECT_EQ(pci.device, 6u);
  EXPECT_EQ(pci.pciDeviceId, number_for(ring::Fact::pci_id));
  EXPECT_EQ(pci.pciSubSystemId, number_for(ring::Fact::pci_subsystem));
  EXPECT_EQ(nvmlDeviceGetPciInfo_v3(d, nullptr), NVML_ERROR_INVALID_ARGUMENT);

  unsigned extended[16] = {64 | 1u << 24};
  ASSERT_EQ(nvmlDeviceGetPciInfoExt(d, extended), NVML_SUCCESS);
  EXPECT_EQ(extended[3], 6u);
  EXPECT_STREQ(reinterpret_cast<const char*>(extended + 8), "00000000:00:06.0");
  extended[0] = 64;
  EXPECT_EQ(nvmlDeviceGetPciInfoExt(d, extended), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

// The structs have the sizes of programs that were built long ago.
TEST_F(Nvml, OldFormsOfThePciAddressStayWithinTheirStructs) {
  const nvmlDevice_t d = start();
  nvmlPciInfo_t first, second;
  std::memset(&first, '#', sizeof first), std::memset(&second, '#', sizeof second);
  EXPECT_EQ(nvmlDeviceGetPciInfo(d, &first), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetPciInfo_v2(d, &second), NVML_SUCCESS);
  EXPECT_STREQ(first.busIdLegacy, "0000:00:06.0");
  EXPECT_EQ(first.pciDeviceId, number_for(ring::Fact::pci_id));
  EXPECT_EQ(first.pciSubSystemId, 0x23232323u);
  EXPECT_EQ(second.pciSubSystemId, number_for(ring::Fact::pci_subsystem));
  EXPECT_EQ(second.busId[0], '#');
}

TEST_F(Nvml, EveryFactIsReportedByItsFunction) {
  const nvmlDevice_t d = start();
  unsigned a = 0, b = 0;
  unsigned long long wide = 0;
#define NUMBER(fact, function)                       \
  EXPECT_EQ(function(d, &a), NVML_SUCCESS) << #fact; \
  EXPECT_EQ(a, number_for(ring::Fact::fact)) << #fact;
#define OF_KIND(fact, function, kind)                      \
  EXPECT_EQ(function(d, kind, &a), NVML_SUCCESS) << #fact; \
  EXPECT_EQ(a, number_for(ring::Fact::fact)) << #fact;
#define PAIR(first, second, function)                     \
  EXPECT_EQ(function(d, &a, &b), NVML_SUCCESS) << #first; \
  EXPECT_EQ(a, number_for(ring::Fact::first)) << #first;  \
  EXPECT_EQ(b, number_for(ring::Fact::second)) << #second;
#define WIDE(fact, function)                            \
  EXPECT_EQ(function(d, &wide), NVML_SUCCESS) << #fact; \
  EXPECT_EQ(wide, number_for(ring::Fact::fact)) << #fact;
#define ERRORS(fact, function, kind, counter)                          \
  EXPECT_EQ(function(d, kind, counter, &wide), NVML_SUCCESS) << #fact; \
  EXPECT_EQ(wide, number_for(ring::Fact::fact)) << #fact;
#define APART(fact)
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
}

TEST_F(Nvml, UnreportedValuesAreNotSupported) {
  const nvmlDevice_t d = start();
  vm_.change([](Vm& vm) { vm.gpus[0].known = 0; });
  let_pass();
  for (const auto& [name, result] : ask_all_getters(d)) EXPECT_EQ(result, NVML_ERROR_NOT_SUPPORTED) << name;
  // If only one fact of a pair is known, the pair counts as unknown.
  vm_.change([](Vm& vm) { vm.gpus[0].known = ring::bit_of(ring::Fact::ecc_mode); });
  let_pass();
  unsigned a = 7, b = 7;
  EXPECT_EQ(nvmlDeviceGetEccMode(d, &a, &b), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(a, 7u);
  nvmlUtilization_t use{};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(d, &use), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(Nvml, RefusesArgumentsThatMakeNoSense) {
  const nvmlDevice_t d = start();
  for (const auto& [name, result] : ask_all_getters(nullptr)) EXPECT_EQ(result, NVML_ERROR_INVALID_ARGUMENT) << name;
#define NUMBER(fact, function) EXPECT_EQ(function(d, nullptr), NVML_ERROR_INVALID_ARGUMENT) << #function;
#define OF_KIND(fact, function, kind) EXPECT_EQ(function(d, kind, nullptr), NVML_ERROR_INVALID_ARGUMENT) << #function;
#define PAIR(first, second, function)                                         \
  EXPECT_EQ(function(d, nullptr, &n), NVML_ERROR_INVALID_ARGUMENT) << #first; \
  EXPECT_EQ(function(d, &n, nullptr), NVML_ERROR_INVALID_ARGUMENT) << #second;
#define WIDE(fact, function) EXPECT_EQ(function(d, nullptr), NVML_ERROR_INVALID_ARGUMENT) << #function;
#define ERRORS(fact, function, kind, counter) \
  EXPECT_EQ(function(d, kind, counter, nullptr), NVML_ERROR_INVALID_ARGUMENT) << #fact;
#define APART(fact)
  unsigned n = 0;
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
  unsigned long long wide = 0;
  EXPECT_EQ(nvmlDeviceGetTemperature(d, 1, &n), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetTemperatureThreshold(d, 4, &n), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetTemperatureThreshold(d, 8, &n), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetClockInfo(d, 9, &n), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetTotalEccErrors(d, 2, 0, &wide), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetTotalEccErrors(d, 0, 2, &wide), NVML_ERROR_INVALID_ARGUMENT);
  // The pointer is no handle.
  EXPECT_EQ(nvmlDeviceGetIndex(reinterpret_cast<nvmlDevice_t>(&n), &n), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, WhatAGuestsGpuHasNotIsRefusedByTheNameThatProgramsExpect) {
  const nvmlDevice_t d = start();
  for (const auto& [name, result] : ask_all_unsupported(d)) EXPECT_EQ(result, NVML_ERROR_NOT_SUPPORTED) << name;
  for (const auto& [name, result] : ask_all_setters(d)) EXPECT_EQ(result, NVML_ERROR_NO_PERMISSION) << name;
  EXPECT_EQ(nvmlDeviceGetNvLinkState(nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceSetMigMode(nullptr), NVML_ERROR_INVALID_ARGUMENT);
  const void* table = nullptr;
  EXPECT_EQ(nvmlInternalGetExportTable(nullptr, "of any name"), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlInternalGetExportTable(&table, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(nvmlInternalGetExportTable(&table, "of any name"), NVML_SUCCESS);
  const std::size_t entries = *static_cast<const std::size_t*>(table) / sizeof(void*) - 1;
  ASSERT_EQ(entries, 255u);
  for (std::size_t i = 1; i <= entries; ++i)
    EXPECT_EQ(static_cast<nvmlReturn_t (*const*)()>(table)[i](), NVML_ERROR_FUNCTION_NOT_FOUND) << i;
}

TEST_F(Nvml, ASetOfEventsIsThereAndNothingHappens) {
  void* set = nullptr;
  EXPECT_EQ(nvmlEventSetCreate(&set), NVML_ERROR_UNINITIALIZED);
  const nvmlDevice_t d = start();
  EXPECT_EQ(nvmlEventSetCreate(nullptr), NVML_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(nvmlEventSetCreate(&set), NVML_SUCCESS);
  void* other = nullptr;
  ASSERT_EQ(nvmlEventSetCreate(&other), NVML_SUCCESS);
  EXPECT_NE(set, other);
  unsigned long long types = 7;
  EXPECT_EQ(nvmlDeviceGetSupportedEventTypes(d, &types), NVML_SUCCESS);
  EXPECT_EQ(types, 0u);
  EXPECT_EQ(nvmlDeviceRegisterEvents(d, 0, set), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceRegisterEvents(d, 8, set), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceRegisterEvents(d, 0, &types), NVML_ERROR_INVALID_ARGUMENT);
  char data[64];
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(nvmlEventSetWait_v2(set, data, 30), NVML_ERROR_TIMEOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(30));
  EXPECT_EQ(nvmlEventSetWait(set, nullptr, 0), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlEventSetFree(set), NVML_SUCCESS);
  EXPECT_EQ(nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlEventSetWait(set, data, 0), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlEventSetFree(other), NVML_SUCCESS);
}

TEST_F(Nvml, ReportsCallsOutsideTheTable) {
  const nvmlDevice_t d = start();
  unsigned n = 7;
  unsigned long long wide = 0;
  EXPECT_EQ(nvmlDeviceGetMinorNumber(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
  n = 7;
  EXPECT_EQ(nvmlDeviceGetMultiGpuBoard(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
  n = 9;
  EXPECT_EQ(nvmlDeviceGetMaxMigDeviceCount(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
  n = 9;
  EXPECT_EQ(nvmlDeviceIsMigDeviceHandle(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(nvmlDeviceGetVirtualizationMode(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(nvmlDeviceGetPowerState(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, number_for(ring::Fact::performance_state));
  EXPECT_EQ(nvmlDeviceGetCurrentClocksEventReasons(d, &wide), NVML_SUCCESS);
  EXPECT_EQ(wide, number_for(ring::Fact::throttle_reasons));
  EXPECT_EQ(nvmlDeviceGetClock(d, 1, 0, &n), NVML_SUCCESS);
  EXPECT_EQ(n, number_for(ring::Fact::sm_clock));
  EXPECT_EQ(nvmlDeviceGetClock(d, 2, 1, &n), NVML_SUCCESS);
  EXPECT_EQ(n, number_for(ring::Fact::applications_memory_clock));
  EXPECT_EQ(nvmlDeviceGetClock(d, 1, 3, &n), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetClock(d, 1, 4, &n), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetP2PStatus(d, d, 0, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 6u);
  EXPECT_EQ(nvmlDeviceGetP2PStatus(d, nullptr, 0, &n), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetP2PStatus(d, d, 5, &n), NVML_ERROR_INVALID_ARGUMENT);
  nvmlUtilization_t use{7, 7};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(d, &use), NVML_SUCCESS);
  EXPECT_EQ(use.gpu, number_for(ring::Fact::utilization));
  EXPECT_EQ(use.memory, 0u);
}

TEST_F(Nvml, TemperaturesAndFieldsNameWhatIsAsked) {
  const nvmlDevice_t d = start();
  nvmlTemperature_t temperature{.version = 12 | 1u << 24, .sensorType = 0, .temperature = 0};
  EXPECT_EQ(nvmlDeviceGetTemperatureV(d, &temperature), NVML_SUCCESS);
  EXPECT_EQ(temperature.temperature, static_cast<int>(number_for(ring::Fact::temperature)));
  temperature.sensorType = 1;
  EXPECT_EQ(nvmlDeviceGetTemperatureV(d, &temperature), NVML_ERROR_INVALID_ARGUMENT);
  temperature.version = 12;
  EXPECT_EQ(nvmlDeviceGetTemperatureV(d, &temperature), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);

  nvmlFieldValue_t values[4]{};
  values[0].fieldId = 82, values[1].fieldId = 999, values[2].fieldId = 192, values[3].fieldId = 4711;
  EXPECT_EQ(nvmlDeviceGetFieldValues(d, 3, values), NVML_SUCCESS);
  EXPECT_EQ(values[0].nvmlReturn, NVML_SUCCESS);
  EXPECT_EQ(values[0].value.uiVal, number_for(ring::Fact::memory_temperature));
  EXPECT_EQ(values[0].valueType, 1);
  EXPECT_GT(values[0].timestamp, 1'700'000'000'000'000);
  EXPECT_EQ(values[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(values[2].value.uiVal, number_for(ring::Fact::power_limit));
  EXPECT_EQ(values[3].timestamp, 0) << "one more than was asked for";
  EXPECT_EQ(nvmlDeviceGetFieldValues(d, 1, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetFieldValues(d, -1, values), NVML_ERROR_INVALID_ARGUMENT);
}

// ---- memory and processes ------------------------------------------------------------------------------------------

TEST_F(Nvml, CountsReservedMemoryAsUsedInTheFirstFormOnly) {
  const nvmlDevice_t d = start();
  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 150754820096u);
  EXPECT_EQ(memory.free, 149452619776u);
  EXPECT_EQ(memory.used, 1302200320u);
  nvmlMemory_v2_t second{.version = 0x02000028, .total = 0, .reserved = 0, .free = 0, .used = 0};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(d, &second), NVML_SUCCESS);
  EXPECT_EQ(second.reserved, 644939776u);
  EXPECT_EQ(second.used, 657260544u);
  for (const unsigned version : {0x01000028u, 0u}) {
    second.version = version;
    EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(d, &second), NVML_ERROR_FUNCTION_NOT_FOUND);
  }
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(nullptr, &memory), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, MemoryIsAskedAnewAndTheRestIsOfOneMoment) {
  const nvmlDevice_t d = start();
  vm_.change([](Vm& vm) {
    // The values are those of a VM with a quota.
    vm.gpus[0].memory_total = 1000, vm.gpus[0].memory_reserved = 0, vm.gpus[0].memory_free = 400;
  });
  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 1000u);
  EXPECT_EQ(memory.used, 600u);
  vm_.change([](Vm& vm) { vm.gpus[0].memory_free = 300; });
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.used, 700u);

  let_pass();
  const unsigned before = vm_.questions();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) ask_all_getters(d);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  EXPECT_GE(vm_.questions() - before, 1u);
  EXPECT_LE(vm_.questions() - before, 1 + static_cast<unsigned>(took.count()) / 20);
}

ring::SlotOwner owner(std::uint32_t pid) {
  ring::SlotOwner owner = guest::this_process(ring::first_guest_peer);
  owner.pid = pid;
  return owner;
}

TEST_F(Nvml, ListsTheProcessesThatThisOneMayKnow) {
  const nvmlDevice_t d = start();
  nvmlProcessInfo_t all[16]{};
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &count, nullptr), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);

  ring::SlotOwner elsewhere = owner(33), earlier = owner(44);
  ++elsewhere.pid_space, ++earlier.boot;
  vm_.claim(0, 648019968, owner(11));
  vm_.claim(1, 22, elsewhere);
  vm_.claim(2, 33, earlier);
  vm_.claim(3, 44, owner(55));
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  count = 1;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v2(d, &count, all), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  count = 16;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &count, all), NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(all[0].pid, 11u);
  EXPECT_EQ(all[0].usedGpuMemory, 648019968u);
  EXPECT_EQ(all[0].gpuInstanceId, ~0u);
  EXPECT_EQ(all[0].computeInstanceId, ~0u);
  EXPECT_EQ(all[1].pid, 55u);
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, nullptr, all), NVML_ERROR_INVALID_ARGUMENT);
  count = 16;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &count, nullptr), NVML_ERROR_INVALID_ARGUMENT);

  nvmlProcessInfo_v1_t old[2]{};
  count = 2;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(d, &count, old), NVML_SUCCESS);
  EXPECT_EQ(old[1].pid, 55u);
  EXPECT_EQ(old[1].usedGpuMemory, 44u);
}

TEST_F(Nvml, ListsNobodyWhoHoldsNothingOrHasGone) {
  const nvmlDevice_t d = start();
  vm_.claim(0, 0, owner(11));
  vm_.claim(1, 22, owner(0));
  vm_.claim(2, 22, owner(33));
  vm_.view().entry(2)[&ring::SlotEntry::state].store(ring::SlotWord{1, ring::SlotState::Released}.word());
  unsigned count = 16;
  nvmlProcessInfo_t all[16]{};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &count, all), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
}

TEST_F(Nvml, NoProcessDrawsOrIsOfMps) {
  const nvmlDevice_t d = start();
  vm_.claim(0, 22, owner(11));
  for (const auto list : {nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3,
                          nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses_v3}) {
    unsigned count = 16;
    EXPECT_EQ(list(d, &count, nullptr), NVML_SUCCESS);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(list(d, nullptr, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  }
  for (const auto list : {nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetMPSComputeRunningProcesses}) {
    unsigned count = 16;
    EXPECT_EQ(list(d, &count, nullptr), NVML_SUCCESS);
    EXPECT_EQ(count, 0u);
  }
}

// The module has a boot id of its own, and its pids are of the initial pid namespace.
TEST_F(Nvml, ByTheKernelModuleTheOwnersBootIsTheModules) {
  vm_.by_module = true;
  const nvmlDevice_t d = start();
  ring::SlotOwner signed_by_module = owner(11), elsewhere = owner(22);
  ++signed_by_module.boot, ++elsewhere.pid_space;
  vm_.claim(0, 1, signed_by_module);
  vm_.claim(1, 1, elsewhere);
  unsigned count = 16;
  nvmlProcessInfo_t all[16]{};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &count, all), NVML_SUCCESS);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(all[0].pid, 11u);
}

TEST_F(Nvml, NamesProcesses) {
  start();
  const auto name_of = [](unsigned pid) {
    return [pid](char* to, unsigned room) { return nvmlSystemGetProcessName(pid, to, room); };
  };
  const auto pid = static_cast<unsigned>(getpid());
  EXPECT_NE(text_of(name_of(pid), 4096).find("guest_nvml_test"), std::string::npos);
  EXPECT_EQ(text_of(name_of(pid), 4).size(), 3u);
  EXPECT_EQ(text_of(name_of(4'194'305)), "error 6");
  EXPECT_EQ(nvmlSystemGetProcessName(pid, nullptr, 16), NVML_ERROR_INVALID_ARGUMENT);
}

// ---- several GPUs, and lost ones -----------------------------------------------------------------------------------

TEST_F(Nvml, DistinguishesTwoGpus) {
  vm_.change([](Vm& vm) {
    vm.gpus.push_back(guest_nvml::gpu("GPU-2", "0000000A:81:00.0"));
    vm.gpus[1].fact[ring::number_of(ring::Fact::power_usage)] = 4;
    vm.gpus[1].memory_total = 5, vm.gpus[1].memory_free = 5;
  });
  const nvmlDevice_t first = start(), second = device(1);
  EXPECT_NE(first, second);
  unsigned n = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(nvmlDeviceGetIndex(second, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 1u);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(second, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 4u);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(first, &n), NVML_SUCCESS);
  EXPECT_EQ(n, number_for(ring::Fact::power_usage));
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(second, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 5u);
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("000a:81:00.0", &found), NVML_SUCCESS);
  EXPECT_EQ(found, second);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-2", &found), NVML_SUCCESS);
  EXPECT_EQ(found, second);
}

TEST_F(Nvml, OfALostGpuOnlyItsNamesAreLeft) {
  const nvmlDevice_t d = start();
  lose(0);
  for (const auto& [name, result] : ask_all_getters(d)) EXPECT_EQ(result, NVML_ERROR_GPU_IS_LOST) << name;
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_ERROR_GPU_IS_LOST);
  unsigned n = 7;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, nullptr), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(text_of([&](char* to, unsigned room) { return nvmlDeviceGetName(d, to, room); }), "error 15");
  EXPECT_EQ(nvmlDeviceGetIndex(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(text_of([&](char* to, unsigned room) { return nvmlDeviceGetUUID(d, to, room); }), guest_nvml::uuid);
  nvmlPciInfo_t pci{};
  EXPECT_EQ(nvmlDeviceGetPciInfo_v3(d, &pci), NVML_SUCCESS);
  EXPECT_EQ(device(), d);
}

// ---- pages that no broker writes -----------------------------------------------------------------------------------

TEST_F(Nvml, CountsOfBillionsAreCut) {
  vm_.change([](Vm& vm) { vm.said.gpu_count = 4'000'000'000; });
  start();
  unsigned n = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
  EXPECT_EQ(n, ring::max_devices);
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(ring::max_devices, &found), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, TextWithoutAnEndIsCut) {
  vm_.change([](Vm& vm) {
    std::memset(vm.said.driver, 'x', sizeof vm.said.driver);
    std::memset(vm.gpus[0].uuid, 'x', sizeof vm.gpus[0].uuid);
    std::memset(vm.gpus[0].name, 'x', sizeof vm.gpus[0].name);
    std::memset(vm.gpus[0].bus_id, '9', sizeof vm.gpus[0].bus_id);
    std::memset(vm.gpus[0].vbios, 'x', sizeof vm.gpus[0].vbios);
  });
  const nvmlDevice_t d = start();
  EXPECT_EQ(text_of([&](char* to, unsigned room) { return nvmlDeviceGetUUID(d, to, room); }, 200),
            std::string(95, 'x'));
  EXPECT_EQ(text_of([&](char* to, unsigned room) { return nvmlDeviceGetName(d, to, room); }, 200),
            std::string(63, 'x'));
  EXPECT_EQ(text_of([&](char* to, unsigned room) { return nvmlDeviceGetVbiosVersion(d, to, room); }, 200),
            std::string(23, 'x'));
  EXPECT_EQ(text_of(nvmlSystemGetDriverVersion, 200), std::string(75, 'x'));
  EXPECT_EQ(text_of(nvmlSystemGetNVMLVersion, 200), "13." + std::string(75, 'x'));
  nvmlPciInfo_t pci{};
  EXPECT_EQ(nvmlDeviceGetPciInfo_v3(d, &pci), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(Nvml, MemoryThatDoesNotAddUpGivesNoNumbersBelowZero) {
  const nvmlDevice_t d = start();
  vm_.change(
      [](Vm& vm) { vm.gpus[0].memory_total = 5, vm.gpus[0].memory_reserved = ~0ULL, vm.gpus[0].memory_free = 9; });
  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.used, 0u);
  nvmlMemory_v2_t second{.version = 0x02000028, .total = 0, .reserved = 0, .free = 0, .used = 7};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(d, &second), NVML_SUCCESS);
  EXPECT_EQ(second.used, 0u);
}

TEST_F(Nvml, AnUnreportedVersionIsUnknown) {
  vm_.change([](Vm& vm) { put(vm.said.driver, ""), vm.said.cuda_version = 0; });
  start();
  int version = 0;
  EXPECT_EQ(nvmlSystemGetCudaDriverVersion(&version), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(text_of(nvmlSystemGetDriverVersion), "error 999");
  EXPECT_EQ(text_of(nvmlSystemGetNVMLVersion), "error 999");
}

// ---- no answer -----------------------------------------------------------------------------------------------------

TEST_F(Nvml, WithoutAnAnswerItIsNotInitialised) {
  be_patient({.first_ns = short_ns, .later_ns = long_ns});
  vm_.answers = false;
  CaptureStderr();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::nanoseconds(short_ns));
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_EQ(GetCapturedStderr(),
            "ivgpu: the broker does not tell of its GPUs: see whether ivgpud runs on the host and what it logs\n");
  EXPECT_EQ(vm_.open, 0);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  vm_.answers = true;
  be_patient({.first_ns = long_ns, .later_ns = short_ns});
  EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
}

TEST_F(Nvml, AnAnswerThatDoesNotComeIsATimeout) {
  const nvmlDevice_t d = start_impatient();
  vm_.answers = false;
  nvmlMemory_t memory{.total = 7, .free = 7, .used = 7};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(memory.total, 7u);
  const unsigned asked = vm_.questions();
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(vm_.questions(), asked) << "for a while calls fail without a question";
  let_pass();
  unsigned n = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(d, &n), NVML_ERROR_TIMEOUT);
  vm_.answers = true;
  be_patient({.first_ns = long_ns, .later_ns = long_ns});
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(start(), &memory), NVML_SUCCESS);
}

// A restarted broker may not know the open question.
TEST_F(Nvml, SignalsAnUnansweredQuestionAgainEachSecond) {
  const nvmlDevice_t d = start();
  const int before = vm_.rings;
  vm_.answers = false;
  const auto began = std::chrono::steady_clock::now();
  std::thread late([&] {
    EXPECT_TRUE(before_deadline([&] { return vm_.rings - before >= 2; }));
    vm_.answers = true;
  });
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  late.join();
  // A busy machine only lengthens the time between the doorbells.
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds(vm_.rings - before - 1));
}

TEST_F(Nvml, APageThatIsWrittenForEverIsATimeout) {
  const nvmlDevice_t d = start_impatient();
  vm_.stuck = true;
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_ERROR_TIMEOUT);
}

#ifdef IVGPU_OBSERVED
// Runs a function between two reads of this thread. It must be set before the broker's thread reads, and removed after
// that thread has ended.
class BetweenReads {
 public:
  BetweenReads() : previous_(std::exchange(ring::observer, on_read)) {}
  ~BetweenReads() { ring::observer = previous_; }

 protected:
  // Called before this thread copies a GPU.
  static inline thread_local std::function<void()> before_copy;

 private:
  static void on_read(const void*, std::size_t bytes) {
    if (bytes == sizeof(ring::VmGpu) && before_copy) before_copy();
  }
  const ring::Observer previous_;
};

class NvmlBeside : protected BetweenReads, public Nvml {};

// Half of the copy belongs to the previous answer, so the library copies again.
TEST_F(NvmlBeside, AnAnswerThatComesDuringTheCopyIsCopiedAgain) {
  const nvmlDevice_t d = start();
  const auto sequence = vm_.view().vm_page()[&ring::VmPage::sequence];
  int copies = 0;
  before_copy = [&] {
    if (++copies <= 3) sequence.store(sequence.load() + 2);
  };
  let_pass();
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  before_copy = nullptr;
  EXPECT_EQ(copies, 4) << "all in vain but the last";
}
#endif

// The counter wraps: the test asks the last question before, and the first question after.
TEST_F(Nvml, QuestionsMayGoRound) {
  const std::uint32_t before = ~0u - 1;
  vm_.view().header()[&ring::RegionHeader::gpu_questions].store(before);
  while (vm_.view().vm_page()[&ring::VmPage::answered].load() != before) std::this_thread::yield();
  const nvmlDevice_t d = start();
  nvmlMemory_t memory{};
  for (unsigned i = 0; i < 4; ++i) {
    vm_.change([&](Vm& vm) { vm.gpus[0].memory_free = i; });
    EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS) << i;
    EXPECT_EQ(memory.free, i) << "an earlier answer";
  }
  EXPECT_LT(vm_.questions(), 10u);
}

TEST_F(Nvml, WithoutARegionThereIsNoDriver) {
  vm_.ends_region = true;
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_EQ(text_of(nvmlSystemGetNVMLVersion), "error 999");
}

TEST_F(Nvml, AnOlderBrokerIsNamedOnce) {
  vm_.page().version = 1;
  CaptureStderr();
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_EQ(GetCapturedStderr(),
            "ivgpu: the broker is an older one and tells nothing of its GPUs: upgrade ivgpu-host on the host\n");
  EXPECT_EQ(vm_.questions(), 0u);
}

TEST_F(Nvml, AnOlderKernelModuleIsNamed) {
  vm_.front_maps = false;
  CaptureStderr();
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_NE(GetCapturedStderr().find("upgrade ivgpu-dkms"), std::string::npos);
  vm_.front_maps = true, vm_.asks = false;
  be_patient({});
  CaptureStderr();
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_NE(GetCapturedStderr().find("upgrade ivgpu-dkms"), std::string::npos);
}

TEST_F(Nvml, ABrokerThatWasRestartedIsFoundAgain) {
  const nvmlDevice_t d = start();
  nvmlMemory_t memory{};
  vm_.answers = false, vm_.gone = true;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(vm_.opened, 2) << "it looks for another region once";
  EXPECT_EQ(vm_.open, 0);
  vm_.answers = true, vm_.gone = false;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  EXPECT_EQ(vm_.open, 1);
  vm_.answers = false, vm_.gone = true, vm_.ends_region = true;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_ERROR_UNKNOWN);
}

// With the kernel module, the pages of a removed device read as zeros, including both counters.
TEST_F(Nvml, ZerosOfADeviceThatWasTakenAwayAreNoAnswer) {
  const nvmlDevice_t d = start();
  vm_.answers = false, vm_.counts = false;
  const auto header = vm_.view().header();
  const auto page = vm_.view().vm_page();
  header[&ring::RegionHeader::magic].store(0);
  header[&ring::RegionHeader::gpu_questions].store(0);
  page[&ring::VmPage::answered].store(0);
  page[&ring::VmPage::sequence].store(0);
  page[&ring::VmPage::gpu_count].store(0);
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(vm_.open, 0);
}

// ---- forks and threads ---------------------------------------------------------------------------------------------

// Makes calls in a forked child. The exit code 0 means success.
int ask_as_child(nvmlDevice_t device, Vm& vm) {
  if (vm.forgotten != 1 || vm.open != 0) return 1;
  nvmlMemory_t memory{};
  if (nvmlDeviceGetMemoryInfo(device, &memory) != NVML_SUCCESS) return 2;
  if (vm.opened != 2 || vm.open != 1) return 3;
  if (nvmlShutdown() != NVML_SUCCESS || vm.open != 0) return 4;
  return nvmlShutdown() == NVML_ERROR_UNINITIALIZED ? 0 : 5;
}

TEST_F(Nvml, AForkedChildOpensARegionOfItsOwn) {
  const nvmlDevice_t d = start();
  EXPECT_EQ(run_in_child([&] { return ask_as_child(d, vm_); }), 0);
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  EXPECT_EQ(vm_.opened, 1);
  EXPECT_EQ(vm_.forgotten, 0);
}

// A thread forks while another thread is inside a call.
TEST_F(Nvml, AForkWaitsForCallsOfOtherThreads) {
  const nvmlDevice_t d = start();
  std::atomic<bool> ends{false};
  std::thread other([&] {
    nvmlMemory_t memory{};
    while (!ends) EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
  });
  const auto ask = [d] {
    alarm(60);  // ends a child that waits for a mutex that none of its threads holds
    nvmlMemory_t memory{};
    return static_cast<int>(nvmlDeviceGetMemoryInfo(d, &memory));
  };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run_in_child(ask), 0);
  ends = true;
  other.join();
}

TEST_F(Nvml, AnyThreadMayCallAnything) {
  const nvmlDevice_t d = start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        nvmlMemory_t memory{};
        EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
        EXPECT_EQ(nvmlDeviceGetMemoryInfo(d, &memory), NVML_SUCCESS);
        ask_all_getters(d);
        EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(vm_.opened, 1);
}

}  // namespace
