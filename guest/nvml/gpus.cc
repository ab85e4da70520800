#include "guest/nvml/gpus.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <utility>

#include "guest/base/log.h"
#include "guest/base/timespec.h"
#include "guest/region/cache_probe.h"
#include "guest/region/slot_owner.h"

namespace guest::nvml {
namespace {

// The first version of the VM page that describes GPUs.
constexpr std::uint32_t first_page_version = 2;

// The broker needs about 100 us for an answer from its cache, and milliseconds if it must ask the host's NVML.
constexpr std::uint64_t shortest_sleep_ns = 20'000, longest_sleep_ns = 1'000'000;

// The guest signals its question again after this time, since a restarted broker may have missed the earlier doorbell.
constexpr std::uint64_t between_rings_ns = 1'000'000'000;

void timed_sleep(std::uint64_t& ns) {
  const timespec pause = timespec_of(ns);
  nanosleep(&pause, nullptr);
  ns = std::min(2 * ns, longest_sleep_ns);
}

// Compares modulo 2^32, since the counters wrap.
bool has_come_to(std::uint32_t answered, std::uint32_t question) {
  return static_cast<std::int32_t>(answered - question) >= 0;
}

template <std::size_t n>
void end_text(char (&text)[n]) {
  text[n - 1] = '\0';
}

}  // namespace

Gpus::Gpus(Find find, Patience patience) : find_(std::move(find)), patience_(patience) {}

void Gpus::close() {
  if (header_area_.base() != nullptr) munmap(header_area_.base(), ring::header_area_bytes);
  header_area_ = ring::RegionView();
  region_.reset();
}

void Gpus::forget() {
  if (region_ != nullptr) region_->forget();
  close();
}

Answer Gpus::connect(std::uint64_t patience_ns) {
  close();
  region_ = find_();
  Answer answer = region_ != nullptr ? map_header_area() : Answer::NoRegion;
  if (answer == Answer::Given) answer = ask(patience_ns);
  if (answer != Answer::Given) close();
  return answer;
}

Answer Gpus::map_header_area() {
  const auto checked = check_region(*region_);
  if (!checked) return Answer::NoRegion;
  slot_count_ = checked->slot_count;
  const std::uint32_t version = checked->view.vm_page()[&ring::VmPage::version].load(std::memory_order_relaxed);
  checked->unmap();
  if (version < first_page_version)
    return too_old("the broker is an older one and tells nothing of its GPUs: upgrade ivgpu-host on the host");
  header_area_ = ring::RegionView(region_->map(0, ring::header_area_bytes, nullptr));
  if (header_area_.base() == nullptr)
    return too_old(
        "what the broker tells of its GPUs cannot be mapped, so the guest's kernel module is an older one: upgrade "
        "ivgpu-dkms in this VM, then load the module anew");
  self_ = this_process(region_->peer());
  return Answer::Given;
}

Answer Gpus::too_old(const char* sentence) {
  log_once(Answer::TooOld, sentence);
  return Answer::TooOld;
}

void Gpus::log_once(Answer why, const char* sentence) {
  const unsigned bit = 1u << static_cast<unsigned>(why);
  if ((std::exchange(logged_, logged_ | bit) & bit) == 0) log(Level::Error, "%s", sentence);
}

Answer Gpus::look(std::uint64_t max_age_ns) {
  if (region_ == nullptr) return connect(patience_.later_ns);
  if (monotonic_nanoseconds() - snapshot_.taken_ns < max_age_ns) return Answer::Given;
  if (monotonic_nanoseconds() < late_until_ns_) return Answer::Late;
  const Answer answer = ask(patience_.later_ns);
  if (answer != Answer::Gone) return answer;
  log(Level::Info, "%s: looking for another region", region_->gone_in_words());
  return connect(patience_.later_ns);
}

Answer Gpus::ask(std::uint64_t patience_ns) {
  const std::uint64_t until = monotonic_nanoseconds() + patience_ns;
  snapshot_.taken_ns = 0;  // a failed copy may leave a mix of two answers
  const bool asked = region_->ask_about_gpus(header_area_);
  if (!asked && region_->broker() == Region::Broker::Gone) return Answer::Gone;
  if (!asked)
    return too_old(
        "the guest's kernel module is an older one and cannot ask about the GPUs: upgrade ivgpu-dkms in this VM, then "
        "load the module anew");
  // The number includes questions that other processes have counted since then.
  const std::uint32_t question =
      header_area_.header()[&ring::RegionHeader::gpu_questions].load(std::memory_order_relaxed);
  std::uint64_t next_ring = monotonic_nanoseconds() + between_rings_ns;
  for (std::uint64_t sleep_ns = shortest_sleep_ns;; timed_sleep(sleep_ns)) {
    const bool given = copy(question);
    if (!is_there()) return Answer::Gone;
    if (given) return Answer::Given;
    if (region_->broker() == Region::Broker::Gone) return Answer::Gone;
    const std::uint64_t now = monotonic_nanoseconds();
    if (now >= until) break;
    if (now < next_ring) continue;
    region_->ring(ring::peer_broker);
    next_ring = now + between_rings_ns;
  }
  late_until_ns_ = monotonic_nanoseconds() + patience_.pause_ns;
  log_once(Answer::Late, "the broker does not tell of its GPUs: see whether ivgpud runs on the host and what it logs");
  return Answer::Late;
}

// The header area of a removed device reads as zeros, which look like an answer.
bool Gpus::is_there() const {
  return header_area_.header()[&ring::RegionHeader::magic].load(std::memory_order_relaxed) == ring::region_magic;
}

// Returns false if the question has no answer yet, or if the broker is writing another answer.
bool Gpus::copy(std::uint32_t question) {
  const auto page = header_area_.vm_page();
  if (!has_come_to(page[&ring::VmPage::answered].load(std::memory_order_acquire), question)) return false;  // edge A
  const std::uint32_t before = page[&ring::VmPage::sequence].load(std::memory_order_acquire);               // edge E
  if (before % 2 != 0) return false;
  snapshot_.vm = page.copy_out();
  snapshot_.vm.gpu_count = std::min(snapshot_.vm.gpu_count, ring::max_devices);
  for (std::uint32_t i = 0; i < snapshot_.vm.gpu_count; ++i) snapshot_.gpu[i] = header_area_.vm_gpu(i).copy_out();
  std::atomic_thread_fence(std::memory_order_acquire);  // edge E
  if (page[&ring::VmPage::sequence].load(std::memory_order_relaxed) != before) return false;
  end_text(snapshot_.vm.driver);
  for (ring::VmGpu& gpu : snapshot_.gpu)
    end_text(gpu.uuid), end_text(gpu.name), end_text(gpu.bus_id), end_text(gpu.vbios);
  snapshot_.taken_ns = monotonic_nanoseconds();
  return true;
}

std::uint32_t Gpus::holders(std::uint32_t gpu, Holder (&to)[ring::max_slots]) const {
  std::uint32_t count = 0;
  for (std::uint32_t slot = 0; slot < slot_count_; ++slot) {
    const std::uint64_t bytes = snapshot_.gpu[gpu].used_by[slot];
    const auto entry = header_area_.entry(slot);
    const auto word = ring::SlotWord::of(entry[&ring::SlotEntry::state].load(std::memory_order_relaxed));
    if (bytes == 0 || word.state != ring::SlotState::Claimed) continue;
    const ring::SlotOwner owner = entry[&ring::SlotEntry::owner].copy_out();
    if (is_ours(owner)) to[count++] = {owner.pid, bytes};
  }
  return count;
}

// Returns whether the owner's pid has the same meaning in this process. The kernel module fills in the owner for all
// programs, with a pid of the machine's first pid namespace and a boot id of its own.
bool Gpus::is_ours(const ring::SlotOwner& owner) const {
  if (owner.pid == 0 || self_.pid_space == 0 || owner.pid_space != self_.pid_space) return false;
  return region_->module() != nullptr || owner.boot == self_.boot;
}

}  // namespace guest::nvml
