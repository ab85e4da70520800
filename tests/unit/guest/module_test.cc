// The region through the guest's kernel module. The module's node is a plain file in this test, and the test answers
// the ioctls. The test covers refusals and their messages, mappings, and slots that are claimed, waited for and
// released.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "guest/region/cache_probe.h"
#include "guest/region/module.h"
#include "guest/region/region.h"
#include "guest/session/slot/claim.h"
#include "ring/layout/module_c.h"
#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/other_side.h"
#include "tests/unit/guest/places.h"

namespace {

using guest_places::fill, guest_places::Folder;
using testing::internal::CaptureStderr, testing::internal::GetCapturedStderr;

constexpr std::uint64_t region_bytes = 64 << 20;
constexpr std::uint32_t slots = 2;

std::uint32_t word_of(ring::SlotState state, std::uint32_t epoch = 1) { return ring::SlotWord{epoch, state}.word(); }

// A module with one device. The node's bytes are the region.
class FakeModule {
 public:
  explicit FakeModule(const std::string& node = "ivgpu0") : node_(folder_ / node) {
    const int fd = open(node_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(region_bytes)), 0);
    void* at = mmap(nullptr, ring::header_area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    base_ = static_cast<std::byte*>(at);
    fill(header(), region_bytes, slots);
    header().guest_vectors = info.device_vectors;
  }
  ~FakeModule() { munmap(base_, ring::header_area_bytes); }
  FakeModule(const FakeModule&) = delete;
  FakeModule& operator=(const FakeModule&) = delete;

  std::unique_ptr<guest::Region> open_region() {
    return guest::open_module(folder_.path().c_str(), why, [this](int, unsigned long request, std::uintptr_t argument) {
      errno = answer(request, argument);
      return errno == 0 ? 0 : -1;
    });
  }
  ring::RegionHeader& header() { return other_side::region(base_); }
  ring::RegionView view() const { return ring::RegionView(base_); }
  ring::Shared<std::uint32_t> state(std::uint32_t slot) {
    return other_side::shared(other_side::entry(base_, slot).state);
  }
  const Folder& folder() const { return folder_; }
  const std::string& node() const { return node_; }

  IvgpuModuleInfo info = {.interface = IVGPU_MODULE_INTERFACE,
                          .layout = ring::layout_version,
                          .region_bytes = region_bytes,
                          .first_slot = ring::first_slot_offset,
                          .slot_bytes = ring::slot_bytes_for(region_bytes, slots),
                          .slot_count = slots,
                          .peer = 70,
                          .device_vectors = 1,
                          .vectors = 1,
                          .flags = IVGPU_MODULE_WAKES,
                          .slot = IVGPU_NO_SLOT,
                          .word = 0,
                          .reserved = 0,
                          .release = "0.9.7"};
  int info_error = 0, wait_error = 0, claim_error = 0;
  bool answers = true;  // whether the broker answers a doorbell
  std::atomic<unsigned> claims{0};
  unsigned releases = 0;
  std::vector<std::uintptr_t> rings;
  IvgpuModuleWait last_wait{};
  std::string name, why;

 private:
  int answer(unsigned long request, std::uintptr_t argument) {
    switch (request) {
      case IVGPU_IOC_INFO: std::memcpy(reinterpret_cast<void*>(argument), &info, sizeof info); return info_error;
      case IVGPU_IOC_CLAIM: return claim(*reinterpret_cast<IvgpuModuleClaim*>(argument));
      case IVGPU_IOC_RELEASE: ++releases; return 0;
      case IVGPU_IOC_RING: return ring(argument);
      case IVGPU_IOC_WAIT: last_wait = *reinterpret_cast<IvgpuModuleWait*>(argument); return wait_error;
      default: return ENOTTY;
    }
  }
  int ring(std::uintptr_t which) {
    if (info_error != 0) return info_error;  // the device has gone
    if (which > (info.interface < 2 ? IVGPU_RING_WORKER : IVGPU_RING_GPUS)) return EINVAL;
    rings.push_back(which);
    if (which == IVGPU_RING_GPUS) other_side::shared(header().gpu_questions).fetch_add(1);
    if (which != IVGPU_RING_WORKER && answers) other_side::shared(header().heartbeat).fetch_add(1);
    return 0;
  }
  int claim(IvgpuModuleClaim& claim) {
    ++claims;
    if (claim_error != 0) return claim_error;
    if (claim.timeout_ms != 0 || claim.reserved != 0) return EINVAL;
    name = claim.name;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const std::uint32_t word = state(slot).load();
      if (ring::SlotWord::of(word).state != ring::SlotState::Ready) continue;
      claim.slot = slot;
      state(slot).store(claim.word = ring::SlotWord::of(word).with(ring::SlotState::Claimed).word());
      return 0;
    }
    return ETIMEDOUT;
  }

  Folder folder_;
  std::string node_;
  std::byte* base_;
};

// ---- which device --------------------------------------------------------------------------------------------------

TEST(Module, WithoutANodeTheRegionMayBeElsewhere) {
  std::string why = "something";
  const Folder empty;
  EXPECT_EQ(guest::open_module(empty.path().c_str(), why), nullptr);
  EXPECT_EQ(why, "");
  EXPECT_EQ(guest::open_module("/no/such/folder", why), nullptr);
  EXPECT_EQ(why, "");
}

TEST(Module, OtherNamesAreNoNodes) {
  for (const char* name : {"ivgpu", "ivgpux", "ivgpu0.old", "ivgpu1234", "xivgpu0"}) {
    FakeModule module(name);
    EXPECT_EQ(module.open_region(), nullptr) << name;
    EXPECT_EQ(module.why, "") << name;
  }
}

TEST(Module, IsFoundAndReportsItsKind) {
  FakeModule module;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr) << module.why;
  EXPECT_EQ(region->size(), region_bytes);
  EXPECT_EQ(region->peer(), 70u);
  EXPECT_FALSE(region->same_kernel());
  EXPECT_NE(region->module(), nullptr);
  EXPECT_EQ(region->broker(), guest::Region::Broker::Unknown);
  region->ring(ring::peer_broker);
  region->ring(ring::peer_of_slot(1));
  EXPECT_EQ(module.rings, (std::vector<std::uintptr_t>{IVGPU_RING_BROKER, IVGPU_RING_WORKER}));
}

TEST(Module, TheFirstDeviceThatCanBeUsed) {
  FakeModule module("ivgpu10");
  std::filesystem::create_directory(module.folder() / "ivgpu2");  // a folder cannot be opened for writing
  ASSERT_NE(module.open_region(), nullptr) << module.why;
}

// There is no message about a device that disappears during the open.
TEST(Module, ADeviceThatHasGoneIsNoDevice) {
  FakeModule module;
  module.info_error = ENODEV;
  EXPECT_EQ(module.open_region(), nullptr);
  EXPECT_EQ(module.why, "");
}

// ---- refusals ------------------------------------------------------------------------------------------------------

TEST(Module, AnInterfaceFromBeforeTheFirst) {
  FakeModule module;
  module.info.interface = 0;
  EXPECT_EQ(module.open_region(), nullptr);
  EXPECT_EQ(module.why,
            module.node() +
                " is of the kernel module's release 0.9.7, and release 0.1.0 needs interface 1 and not 0: load the "
                "kernel module of this release (docs/guest-module.md)");
}

// The library checks for each missing capability, and refuses only what needs the capability.
TEST(Module, TheFirstInterfaceServesAllButQuestionsAboutGpus) {
  FakeModule module;
  module.info.interface = 1;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr) << module.why;
  EXPECT_FALSE(region->ask_about_gpus(module.view()));
  EXPECT_EQ(module.header().gpu_questions, 0u);
  EXPECT_EQ(module.rings, std::vector<std::uintptr_t>{});
}

TEST(Module, ALaterInterfaceOnlyAdds) {
  FakeModule module;
  module.info.interface = IVGPU_MODULE_INTERFACE + 5;
  EXPECT_NE(module.open_region(), nullptr) << module.why;
}

TEST(Module, AnotherLayout) {
  FakeModule module;
  module.info.layout = ring::layout_version + 1;
  std::memset(module.info.release, '\x1b', sizeof module.info.release);  // control characters without a NUL
  EXPECT_EQ(module.open_region(), nullptr);
  EXPECT_EQ(module.why.find(module.node() + " is of the kernel module's release " + std::string(31, '?') +
                            ", and release 0.1.0 needs layout "),
            0u)
      << module.why;
}

TEST(Module, ANodeOfSomebodyElse) {
  FakeModule module;
  module.info_error = ENOTTY;
  EXPECT_EQ(module.open_region(), nullptr);
  EXPECT_EQ(module.why.find(module.node() + " is of no kernel module of ivgpu's, or of one that is older than"), 0u)
      << module.why;
}

TEST(Module, ARegionThatDoesNotFit) {
  FakeModule module;
  module.header().region_bytes /= 2;
  CaptureStderr();
  EXPECT_EQ(module.open_region(), nullptr);
  GetCapturedStderr();
  EXPECT_EQ(module.why.find(module.node() + " holds no region that this library can use: "), 0u) << module.why;
}

TEST(Module, WithoutPermission) {
  FakeModule module;
  std::filesystem::permissions(module.node(), std::filesystem::perms::none);
  std::filesystem::permissions(module.folder().path(), std::filesystem::perms::all);
  // Root may open any file, so the child changes to another user.
  const auto open_as_nobody = [&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 3;
    const bool none = module.open_region() == nullptr;
    const bool said =
        module.why.find("cannot open " + module.node() + ": Permission denied (mode 0000, user ") == 0 &&
        module.why.find("; add the user to the group video (as root: adduser USER video)") != std::string::npos;
    if (!said) std::fprintf(stderr, "said: %s\n", module.why.c_str());
    return none && said ? 0 : 1;
  };
  EXPECT_EQ(run_in_child(open_as_nobody), 0);
}

// ---- questions without a slot --------------------------------------------------------------------------------------

// The library's mapping is read-only, so the module counts instead.
TEST(Module, CountsQuestionsAboutGpusForTheProgram) {
  FakeModule module;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr) << module.why;
  const auto checked = guest::check_region(*region);
  ASSERT_TRUE(checked);
  EXPECT_TRUE(region->ask_about_gpus(checked->view));
  EXPECT_TRUE(region->ask_about_gpus(checked->view));
  EXPECT_EQ(module.header().gpu_questions, 2u);
  EXPECT_EQ(module.header().wanted, 0u);
  EXPECT_EQ(module.rings, (std::vector<std::uintptr_t>{IVGPU_RING_GPUS, IVGPU_RING_GPUS}));
  checked->unmap();
}

TEST(Module, NobodyAsksAboutGpusOfADeviceThatHasGone) {
  FakeModule module;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr) << module.why;
  module.info_error = ENODEV;
  EXPECT_FALSE(region->ask_about_gpus(module.view()));
  EXPECT_EQ(region->broker(), guest::Region::Broker::Gone);
}

// ---- mappings ------------------------------------------------------------------------------------------------------

TEST(Module, TheHeaderIsForReadingAndASlotForBoth) {
  FakeModule module;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr);
  const auto checked = guest::check_region(*region);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->guest_vectors, 1u);
  // The death is a SIGSEGV, or a sanitizer's report of the SIGSEGV.
  EXPECT_DEATH((other_side::region(checked->view.base()).wanted = 1, _exit(0)), "");
  std::byte* slot = region->map(checked->start_of(1), 4096, nullptr);
  ASSERT_NE(slot, nullptr);
  *slot = std::byte{7};
  EXPECT_EQ(region->map(0, 4096, slot), nullptr);  // never over an existing mapping
  munmap(slot, 4096);
  checked->unmap();
}

TEST(Module, TheHeaderAreaIsForReadingToItsLastByte) {
  FakeModule module;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr);
  constexpr std::uint32_t last = ring::max_devices - 1;
  module.view().vm_gpu(last)[&ring::VmGpu::state].store(IVGPU_GPU_THERE);
  std::byte* front = region->map(0, ring::header_area_bytes, nullptr);
  ASSERT_NE(front, nullptr);
  EXPECT_EQ(ring::RegionView(front).vm_gpu(last)[&ring::VmGpu::state].load(), std::uint32_t{IVGPU_GPU_THERE});
  EXPECT_DEATH((front[ring::header_area_bytes - 1] = std::byte{1}, _exit(0)), "");
  munmap(front, ring::header_area_bytes);
  std::byte* gpus = region->map(ring::vm_gpus_offset, ring::header_area_bytes - ring::vm_gpus_offset, nullptr);
  ASSERT_NE(gpus, nullptr);
  EXPECT_DEATH((*gpus = std::byte{1}, _exit(0)), "");
  munmap(gpus, ring::header_area_bytes - ring::vm_gpus_offset);
}

TEST(Module, AForkedChildLetsGoOfTheDescriptor) {
  FakeModule module;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr);
  region->forget();
  EXPECT_EQ(region->map(0, 4096, nullptr), nullptr);
}

// ---- slots ---------------------------------------------------------------------------------------------------------

class ModuleClaim : public testing::Test {
 protected:
  static constexpr std::uint64_t ms = 1'000'000;

  bool take(std::uint64_t patience_ns) { return claim_.take(guest::monotonic_nanoseconds() + patience_ns); }

  FakeModule module_;
  const std::unique_ptr<guest::Region> region_ = module_.open_region();
  const std::optional<guest::CheckedRegion> checked_ = guest::check_region(*region_);
  guest::Heartbeat heartbeat_{*region_, *checked_};
  guest::SlotClaim claim_{*region_, *checked_, heartbeat_};
};

TEST_F(ModuleClaim, TheKernelClaimsAndFrees) {
  module_.state(1).store(word_of(ring::SlotState::Ready));
  ASSERT_TRUE(take(0));
  EXPECT_EQ(claim_.slot(), 1u);
  EXPECT_TRUE(claim_.is_ours());
  EXPECT_EQ(module_.name, std::string(program_invocation_short_name).substr(0, 23));
  EXPECT_EQ(module_.header().wanted, 0u);
  claim_.give_back();
  claim_.give_back();
  EXPECT_EQ(module_.releases, 1u);
  EXPECT_FALSE(claim_.held());
}

TEST_F(ModuleClaim, ASlotThatChangedIsNotOurs) {
  module_.state(0).store(word_of(ring::SlotState::Ready));
  ASSERT_TRUE(take(0));
  module_.state(0).store(word_of(ring::SlotState::Dead));
  EXPECT_FALSE(claim_.is_ours());
}

// The module counts each failed claim as a demand for a slot, so a waiting program claims only once.
TEST_F(ModuleClaim, WaitsAndClaimsOnceUntilASlotIsReady) {
  std::thread broker([this] {
    EXPECT_TRUE(before_deadline([this] { return module_.claims == 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(module_.claims, 1u);
    module_.state(0).store(word_of(ring::SlotState::Ready));
  });
  EXPECT_TRUE(take(60'000 * ms));
  broker.join();
  EXPECT_EQ(module_.claims, 2u);
}

TEST_F(ModuleClaim, PatienceEnds) {
  CaptureStderr();
  EXPECT_FALSE(take(50 * ms));
  EXPECT_NE(GetCapturedStderr().find("ivgpu: none of the 2 session slots of this VM became free within "),
            std::string::npos);
}

TEST_F(ModuleClaim, ReportsTheHoldersOfTheSlots) {
  for (std::uint32_t slot = 0; slot < slots; ++slot) module_.state(slot).store(word_of(ring::SlotState::Claimed));
  EXPECT_TRUE(before_deadline([this] {  // a busy machine may miss the interval between silence and the end
    CaptureStderr();
    EXPECT_FALSE(take(1200 * ms));
    const std::string said = GetCapturedStderr();
    return said.find("ivgpu: all 2 session slots of this VM are taken, by process (0), process (0); ") !=
           std::string::npos;
  }));
  EXPECT_EQ(module_.state(0).load(), word_of(ring::SlotState::Claimed));  // no slot is given back
}

// A slot is Ready, but its pages are in use. The module refuses the slot, and the library tries at most every 10 ms. A
// busy machine only lengthens that time.
TEST_F(ModuleClaim, AModuleThatGivesNoReadySlotIsNotAskedAllTheTime) {
  module_.state(0).store(word_of(ring::SlotState::Ready));
  module_.claim_error = ETIMEDOUT;
  const std::uint64_t start = guest::monotonic_nanoseconds();
  CaptureStderr();
  EXPECT_TRUE(before_deadline([this] { return !take(100 * ms) && module_.claims >= 10; }));
  GetCapturedStderr();
  EXPECT_GE(guest::monotonic_nanoseconds() - start, (module_.claims - 1) * 10 * ms);
}

TEST_F(ModuleClaim, ABrokerThatDoesNotAnswerIsNotWaitedFor) {
  module_.answers = false;
  CaptureStderr();
  EXPECT_FALSE(take(600'000 * ms));
  EXPECT_NE(GetCapturedStderr().find("ivgpu: the broker does not answer"), std::string::npos);
}

TEST_F(ModuleClaim, ADeviceThatGoesMeanwhileIsReported) {
  module_.info_error = module_.claim_error = ENODEV;
  CaptureStderr();
  EXPECT_FALSE(take(600'000 * ms));
  EXPECT_EQ(GetCapturedStderr(), "ivgpu: the ivshmem device was taken away\n");
}

// A slot number outside the region would lead to memory beyond the mapping.
TEST_F(ModuleClaim, ASlotThatIsNotThereIsNotBelieved) {
  const auto region = guest::open_module(
      module_.folder().path().c_str(), module_.why, [this](int, unsigned long request, std::uintptr_t argument) {
        if (request == IVGPU_IOC_INFO)
          std::memcpy(reinterpret_cast<void*>(argument), &module_.info, sizeof module_.info);
        if (request == IVGPU_IOC_CLAIM) reinterpret_cast<IvgpuModuleClaim*>(argument)->slot = slots;
        return 0;
      });
  ASSERT_NE(region, nullptr);
  guest::SlotClaim claim(*region, *checked_, heartbeat_);
  CaptureStderr();
  EXPECT_FALSE(claim.take(0));
  GetCapturedStderr();
  EXPECT_FALSE(claim.held());
}

// ---- sleeping ------------------------------------------------------------------------------------------------------

TEST(ModuleSleep, IsAskedForAsTheCallerWants) {
  FakeModule module;
  const auto region = module.open_region();
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->module()->sleep(64, 2, 5), guest::Module::Slept::Ended);
  EXPECT_EQ(module.last_wait.offset, 64u);
  EXPECT_EQ(module.last_wait.expected, 2u);
  EXPECT_EQ(module.last_wait.timeout_ns, 5u);
  for (const int error : {EAGAIN, ETIMEDOUT, EINTR}) {
    module.wait_error = error;
    EXPECT_EQ(region->module()->sleep(64, 2, 5), guest::Module::Slept::Ended) << error;
  }
  for (const int error : {ENOSPC, EINVAL, ENOTTY}) {
    module.wait_error = error;
    EXPECT_EQ(region->module()->sleep(64, 2, 5), guest::Module::Slept::Refused) << error;
  }
  module.wait_error = ENODEV;
  EXPECT_EQ(region->module()->sleep(64, 2, 5), guest::Module::Slept::Gone);
}

// The broker raises vector slot % guest_vectors. The module's vector v serves every slot k with k % device_vectors ==
// v.
TEST(ModuleSleep, OnlySlotsWhoseInterruptComes) {
  struct Case {
    std::uint32_t device, module, broker, slot;
    bool wakes;
  };
  for (const Case& c : {Case{1, 1, 1, 0, true}, Case{1, 1, 1, 5, true}, Case{4, 4, 4, 7, true}, Case{8, 3, 8, 2, true},
                        Case{1, 1, 0, 0, false}, Case{4, 4, 1, 0, true}, Case{4, 4, 1, 1, false},
                        Case{1, 1, 4, 1, false}, Case{8, 3, 8, 5, false}, Case{0, 0, 1, 0, false}}) {
    FakeModule module;
    module.info.device_vectors = c.device, module.info.vectors = c.module;
    const auto region = module.open_region();
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->module()->wakes(c.slot, c.broker), c.wakes)
        << c.device << " " << c.module << " " << c.broker << " " << c.slot;
  }
  FakeModule module;
  module.info.flags = 0;
  EXPECT_FALSE(module.open_region()->module()->wakes(0, 1));
}

}  // namespace
