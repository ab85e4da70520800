#include "tests/loopback/in_process.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "guest/calls/calls.h"
#include "guest/process/process.h"
#include "host/session/device_page.h"
#include "ring/api/call.h"
#include "tests/other_side.h"

// guest/calls/entry_point.cc returns exported functions. These tests do not link that file.
CUresult guest::calls::cuGetProcAddress(const char*, void**, int, cuuint64_t) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult guest::calls::cuGetProcAddress_v2(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult guest::calls::cuGetExportTable(const void**, const CUuuid*) { return CUDA_ERROR_NOT_SUPPORTED; }

namespace {
thread_local loopback::TimedSleeps* sleeps_of_this_thread = nullptr;
}

extern "C" int nanosleep(const timespec* time, timespec* left) {
  if (loopback::TimedSleeps* sleeps = sleeps_of_this_thread; sleeps != nullptr) {
    const auto ns =
        static_cast<std::uint64_t>(time->tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time->tv_nsec);
    if (ns > sleeps->longest_ns) sleeps->longest_ns = ns;
    ++sleeps->count;
  }
  const int error = clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

namespace loopback {

CountedSleeps::CountedSleeps(TimedSleeps& sleeps) { sleeps_of_this_thread = &sleeps; }
CountedSleeps::~CountedSleeps() { sleeps_of_this_thread = nullptr; }

class InProcess::Region final : public guest::Region {
 public:
  Region(InProcess& owner, bool same_kernel) : owner_(owner), same_kernel_(same_kernel), module_(owner.module()) {}
  std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) override {
    return address == nullptr && offset <= size() && bytes <= size() - offset ? owner_.base_ + offset : nullptr;
  }
  void ring(std::uint32_t peer) override {
    if (peer == ring::peer_of_slot(0)) owner_.ring_worker();
    if (peer == ring::peer_broker) owner_.ask_broker();
  }
  std::uint64_t size() const override { return owner_.bytes_; }
  std::uint32_t peer() const override { return ring::first_guest_peer; }
  bool same_kernel() const override { return same_kernel_; }
  Broker broker() override { return module_ != nullptr && module_->unplugged() ? Broker::Gone : Broker::Unknown; }
  const char* gone_in_words() const override { return "the ivshmem device was taken away"; }
  guest::Module* module() override { return module_; }
  bool same_address_space() const override { return true; }
  void forget() override {}

 private:
  InProcess& owner_;
  bool same_kernel_;
  FakeModule* const module_;
};

void InProcess::ask_broker() {
  ++asked_;
  if (answering_) header()[&ring::RegionHeader::heartbeat].fetch_add(1);
}

void InProcess::ring_worker() {
  const std::uint64_t one = 1;
  ++signalled_;
  if (answering_for_worker_) slot_.header()[&ring::SlotHeader::heartbeat].fetch_add(1);
  if (hearing_) [[maybe_unused]]
    const auto n = write(doorbell_, &one, sizeof one);
}

// A single ring replaces all rings that the worker missed.
void InProcess::answer(bool yes) {
  answering_ = yes, hearing_ = yes;
  if (yes) ring_worker();
}

void InProcess::fill(const host::Driver& driver, const InProcessOptions& options) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  const CUresult init = driver.cuInit(0);
  if (init != CUDA_SUCCESS || driver.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      driver.cuCtxSetCurrent(context) != CUDA_SUCCESS)
    ADD_FAILURE() << "the driver does not start";
  ring::SlotHeader& s = other_side::header(slot_);
  s.version = ring::layout_version;
  s.channels = options.serve.channels;
  s.arena_offset = ring::arena_offset;
  s.arena_bytes = slot_.arena_bytes();
  s.spin_us = options.guest_spin_us;
  s.driver_calls = api::known_ids.driver;
  s.session_calls = api::known_ids.session;

  host::fill_device_page(driver, init, other_side::device_page(slot_));
  s.magic = ring::slot_magic;
  entry()[&ring::SlotEntry::state].store(ring::SlotWord{1, ring::SlotState::Ready}.word(), std::memory_order_release);
  ring::RegionHeader& region = other_side::region(base_);
  region.version = ring::layout_version;
  region.slot_count = 1;
  region.region_bytes = bytes_;
  region.first_slot = ring::first_slot_offset;
  region.slot_bytes = slot_.bytes();
  region.guest_vectors = options.guest_vectors;
  std::strcpy(region.release, "9.9.9");
  region.magic = ring::region_magic;
}

InProcess::InProcess(const host::Driver& driver, const InProcessOptions& options)
    : bytes_(ring::first_slot_offset + ring::arena_offset + options.arena_bytes) {
  if (guest::session() != nullptr) {
    ADD_FAILURE() << "a process has one session: run these tests with ctest, one process each";
    return;
  }
  setenv("IVGPU_HOST_PATIENCE", std::to_string(options.host_patience).c_str(), 1);
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  doorbell_ = eventfd(0, EFD_CLOEXEC);
  if (at == MAP_FAILED || doorbell_ < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control_) != 0) {
    ADD_FAILURE() << "no memory or descriptors: " << std::strerror(errno);
    return;
  }
  base_ = static_cast<std::byte*>(at);
  slot_ = ring::SlotView(base_ + ring::first_slot_offset, bytes_ - ring::first_slot_offset);
  fill(driver, options);
  if (options.before_open != nullptr) options.before_open(slot_);
  host::ServeOptions serve = options.serve;
  if (options.module) {
    module_ = std::make_unique<FakeModule>(entry(), slot_);
    serve.interrupt_fd = module_->interrupt_fd();
  }
  worker_ = std::thread([this, &driver, serve] {
    served_ = host::serve(slot_, driver, serve, doorbell_, control_[1]);
    mark_dead();
    ended_ = true;
  });
  session_ = guest::Session::open(std::make_unique<Region>(*this, options.same_kernel), false);
  if (session_ == nullptr || guest::initialize_with(session_.get()) != CUDA_SUCCESS || use_device() != CUDA_SUCCESS)
    ADD_FAILURE() << "the session was not opened";
}

InProcess::~InProcess() {
  if (worker_.joinable()) end_worker();
  // The process has had its only session. Threads that end later still use the session and sleep in its module, so
  // session and module leak. A session that was never adopted is destroyed.
  if (guest::session() != session_.get()) return;
  static_cast<void>(session_.release());
  static_cast<void>(module_.release());
}

host::Served InProcess::end_worker() {
  close(control_[0]);
  worker_.join();
  return served_;
}

void InProcess::mark_dead() {
  std::uint32_t claimed = ring::SlotWord{1, ring::SlotState::Claimed}.word();
  entry()[&ring::SlotEntry::state].compare_exchange(claimed, ring::SlotWord{1, ring::SlotState::Dead}.word());
}

CUresult use_device() {
  CUcontext context = nullptr;
  const CUresult result = cu::cuDevicePrimaryCtxRetain(&context, 0);
  return result == CUDA_SUCCESS ? cu::cuCtxSetCurrent(context) : result;
}

}  // namespace loopback
