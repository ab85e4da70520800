// A VM for tests of libnvidia-ml.so.1 (guest/nvml/): a region in a memfd, shared with forked children, and a thread
// that acts as the broker. This file also declares the exported functions.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "guest/nvml/library.h"
#include "guest/region/module.h"
#include "guest/region/region.h"
#include "guest/region/slot_owner.h"
#include "ring/nvml/facts.h"
#include "ring/nvml/types.h"
#include "tests/other_side.h"
#include "tests/unit/guest/places.h"

extern "C" {
#define NUMBER(fact, function) nvmlReturn_t function(nvmlDevice_t, unsigned*);
#define OF_KIND(fact, function, kind) nvmlReturn_t function(nvmlDevice_t, unsigned, unsigned*);
#define PAIR(first, second, function) nvmlReturn_t function(nvmlDevice_t, unsigned*, unsigned*);
#define WIDE(fact, function) nvmlReturn_t function(nvmlDevice_t, unsigned long long*);
#define ERRORS(fact, function, kind, counter) \
  nvmlReturn_t function(nvmlDevice_t, unsigned, unsigned, unsigned long long*);
#define APART(fact)
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
#define DEVICE(function) nvmlReturn_t function(nvmlDevice_t);
#define SETTER(function) nvmlReturn_t function(nvmlDevice_t);
#define OTHER(function) nvmlReturn_t function();
#include "guest/nvml/not_supported.def"
#undef DEVICE
#undef SETTER
#undef OTHER
nvmlReturn_t nvmlInternalGetExportTable(const void**, const void*);

nvmlReturn_t nvmlInit();
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlInitWithFlags(unsigned);
nvmlReturn_t nvmlShutdown();
const char* nvmlErrorString(nvmlReturn_t);
nvmlReturn_t nvmlSystemGetDriverVersion(char*, unsigned);
nvmlReturn_t nvmlSystemGetNVMLVersion(char*, unsigned);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int*);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int*);
nvmlReturn_t nvmlSystemGetProcessName(unsigned, char*, unsigned);

nvmlReturn_t nvmlDeviceGetCount(unsigned*);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned*);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char*, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char*, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char*, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t, unsigned*);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t, unsigned*);
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t, unsigned*);
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t, unsigned*);
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t, unsigned*);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t, unsigned*);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t, char*, unsigned);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char*, unsigned);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t, char*, unsigned);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t, nvmlPciInfo_t*);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t, nvmlPciInfo_t*);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t, nvmlPciInfo_t*);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t, void*);

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t*);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, nvmlMemory_v2_t*);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t, unsigned*, nvmlProcessInfo_v1_t*);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t, unsigned*, nvmlProcessInfo_v1_t*);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t, unsigned*, nvmlProcessInfo_v1_t*);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);

nvmlReturn_t nvmlEventSetCreate(void**);
nvmlReturn_t nvmlEventSetFree(void*);
nvmlReturn_t nvmlEventSetWait(void*, void*, unsigned);
nvmlReturn_t nvmlEventSetWait_v2(void*, void*, unsigned);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t, unsigned long long*);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t, unsigned long long, void*);

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t*);
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t, nvmlTemperature_t*);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t, int, nvmlFieldValue_t*);
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t, nvmlDevice_t, unsigned, unsigned*);
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t, unsigned, unsigned, unsigned*);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t, unsigned long long*);
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t, unsigned*);
}

namespace guest_nvml {

constexpr std::uint64_t region_bytes = 128 << 20;  // a sparse file
constexpr std::uint32_t slots = 4;

template <std::size_t n>
void put(char (&to)[n], const std::string& text) {
  std::memset(to, 0, n);
  text.copy(to, n - 1);
}

// Returns a distinct number for each fact of a GPU.
constexpr unsigned number_for(ring::Fact fact) { return 1000 + static_cast<unsigned>(ring::number_of(fact)); }

// Returns a GPU whose facts are all known.
inline ring::VmGpu gpu(const std::string& uuid, const std::string& bus_id) {
  ring::VmGpu gpu{};
  put(gpu.uuid, uuid), put(gpu.name, "NVIDIA H200"), put(gpu.bus_id, bus_id), put(gpu.vbios, "96.00.A5.00.1A");
  gpu.memory_total = 150754820096, gpu.memory_reserved = 644939776, gpu.memory_free = 149452619776;
  for (std::size_t i = 0; i < ring::facts; ++i) {
    gpu.known |= std::uint64_t{1} << i;
    gpu.fact[i] = number_for(static_cast<ring::Fact>(i));
  }
  gpu.state = IVGPU_GPU_THERE;
  return gpu;
}

constexpr const char* uuid = "GPU-bd37ed7d-a6b0-eca8-eaaa-bee607c0fa4f";

class Vm {
 public:
  Vm() : fd_(memfd_create("region", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(region_bytes)), 0);
    base_ = map(0, ring::header_area_bytes);
    guest_places::fill(other_side::region(base_), region_bytes, slots);
    page().version = ring::vm_page_version;
    said.cuda_version = 13000;
    put(said.driver, "580.159.04");
    gpus = {gpu(uuid, "00000000:00:06.0")};
    broker_ = std::thread([this] { serve(); });
  }
  ~Vm() {
    ends_.store(true);
    broker_.join();
    munmap(base_, ring::header_area_bytes);
    close(fd_);
  }
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  std::byte* map(std::uint64_t offset, std::size_t bytes) const {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(offset));
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  // Changes the broker's answers from now on.
  template <class Change>
  void change(Change change) {
    const std::lock_guard lock(mutex_);
    change(*this);
  }
  // Returns the page itself, for values that no broker writes. Must be called before the first question.
  ring::VmPage& page() { return other_side::at<ring::VmPage>(base_, ring::vm_page_offset); }
  ring::RegionView view() const { return ring::RegionView(base_); }
  // Adds a process in a slot, with memory of the first GPU.
  void claim(std::uint32_t slot, std::uint64_t bytes, const ring::SlotOwner& owner) {
    ring::SlotEntry& entry = other_side::entry(base_, slot);
    entry.owner = owner;
    entry.state = ring::SlotWord{1, ring::SlotState::Claimed}.word();
    change([&](Vm& vm) { vm.gpus[0].used_by[slot] = bytes; });
  }
  unsigned questions() const { return view().header()[&ring::RegionHeader::gpu_questions].load(); }

  std::atomic<bool> answers{true}, stuck{false}, gone{false}, ends_region{false};
  std::atomic<bool> front_maps{true}, asks{true}, counts{true}, by_module{false};
  std::atomic<int> opened{0}, open{0}, forgotten{0}, rings{0};
  // The mutex guards this member.
  ring::VmPage said{};
  std::vector<ring::VmGpu> gpus;

 private:
  void serve() {
    for (; !ends_.load(); usleep(50)) {
      const std::uint32_t asked = view().header()[&ring::RegionHeader::gpu_questions].load(std::memory_order_acquire);
      if (asked != answered_ && answers) answer(asked);
    }
  }
  void answer(std::uint32_t asked) {
    const std::lock_guard lock(mutex_);
    const auto to = view().vm_page();
    to[&ring::VmPage::sequence].store(++sequence_, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::uint32_t i = 0; i < gpus.size() && i < ring::max_devices; ++i) view().vm_gpu(i).copy_in(gpus[i]);
    const auto count = said.gpu_count != 0 ? said.gpu_count : static_cast<std::uint32_t>(gpus.size());
    to[&ring::VmPage::gpu_count].store(count, std::memory_order_relaxed);
    to[&ring::VmPage::cuda_version].store(said.cuda_version, std::memory_order_relaxed);
    to[&ring::VmPage::driver].copy_in(said.driver);
    if (!stuck) to[&ring::VmPage::sequence].store(++sequence_, std::memory_order_release);
    to[&ring::VmPage::answered].store(answered_ = asked, std::memory_order_release);
  }

  int fd_;
  std::byte* base_ = nullptr;
  std::uint32_t answered_ = 0, sequence_ = 0;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::thread broker_;
};

class FakeModule final : public guest::Module {
  std::optional<Claim> claim(const char*) override { return std::nullopt; }
  void release() override {}
  bool wakes(std::uint32_t, std::uint32_t) const override { return false; }
  Slept sleep(std::uint64_t, std::uint32_t, std::uint64_t) override { return Slept::Refused; }
};

class FakeRegion final : public guest::Region {
 public:
  explicit FakeRegion(Vm& vm) : vm_(vm) { ++vm_.opened, ++vm_.open; }
  ~FakeRegion() override { --vm_.open; }
  std::byte* map(std::uint64_t offset, std::size_t bytes, void*) override {
    if (bytes == ring::header_area_bytes && !vm_.front_maps) return nullptr;
    return vm_.map(offset, bytes);
  }
  void ring(std::uint32_t) override { ++vm_.rings; }
  bool ask_about_gpus(const ring::RegionView& view) override {
    return vm_.asks && (!vm_.counts || Region::ask_about_gpus(view));
  }
  std::uint64_t size() const override { return region_bytes; }
  std::uint32_t peer() const override { return ring::first_guest_peer; }
  Broker broker() override { return vm_.gone ? Broker::Gone : Broker::Unknown; }
  bool same_kernel() const override { return true; }
  guest::Module* module() override { return vm_.by_module ? &module_ : nullptr; }
  void forget() override { ++vm_.forgotten; }

 private:
  Vm& vm_;
  FakeModule module_;
};

}  // namespace guest_nvml
