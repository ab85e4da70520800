#include "host/broker/region/region.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/base/hostile_text.h"
#include "host/broker/region/dax_label.h"
#include "ring/layout/release.h"

namespace host::broker {
namespace {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return static_cast<std::uint64_t>(getpid());
  return number;
}

Error cannot_be_made(const VmOptions& vm, const Error& why) {
  if (!vm.plain_file.empty())
    return {fmt::format("VM {}: plain_file = \"{}\" cannot be made: {}", vm.name, vm.plain_file, why.message)};
  return {fmt::format("VM {}: a region of {} MiB cannot be made: {}", vm.name, memory_bytes(vm) >> 20, why.message)};
}

}  // namespace

std::size_t memory_of_machine() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

Result<void> region_fits_machine(const VmOptions& vm) {
  const auto bytes = static_cast<std::size_t>(vm.region_size), memory = memory_of_machine();
  if (bytes <= memory) return {};
  return Error{fmt::format("VM {}: a region of {} MiB cannot be made: this machine has {} MiB of memory", vm.name,
                           bytes >> 20, memory >> 20)};
}

Result<std::unique_ptr<Region>> Region::create(const VmOptions& vm, const FileAccess& access) {
  if (const auto fits = region_fits_machine(vm); !fits) return fits.error();
  auto memory = RegionMemory::create(vm, access);
  if (!memory) return cannot_be_made(vm, memory.error());
  auto region = over(*std::move(memory), vm, random_number());
  if (region) return region;
  if (!vm.plain_file.empty()) unlink(vm.plain_file.c_str());
  return cannot_be_made(vm, region.error());
}

Result<std::unique_ptr<Region>> Region::adopt(const VmOptions& vm, Fd memfd, std::uint64_t generation) {
  auto memory = RegionMemory::adopt(vm, std::move(memfd));
  if (!memory) return memory.error();
  return over(*std::move(memory), vm, generation);  // its VM may have ended, and spoilt the label
}

Result<std::unique_ptr<Region>> Region::over(RegionMemory memory, const VmOptions& vm, std::uint64_t generation) {
  if (const auto taken = memory.take_pages(vm); !taken) return taken.error();
  auto header_area = memory.map({0, region_start(vm) + ring::first_slot_offset});
  if (!header_area) return Error{RegionMemory::failed_at("mapping it")};
  std::unique_ptr<Region> region(new Region(std::move(memory), std::move(header_area), vm, generation));
  region->label();
  region->restore_header();
  return region;
}

Region::Region(RegionMemory memory, std::unique_ptr<GuardedMemory> header_area, const VmOptions& vm,
               std::uint64_t generation)
    : memory_(std::move(memory)),
      header_area_(std::move(header_area)),
      start_(region_start(vm)),
      base_(header_area_->base() + start_),
      slot_bytes_(ring::slot_bytes_for(static_cast<std::size_t>(vm.region_size), static_cast<std::uint32_t>(vm.slots))),
      vm_(vm),
      generation_(generation) {}

void Region::restore_header() const {
  using Header = ring::RegionHeader;
  const ring::Shared<Header> to = header();
  const auto put = [&to](auto member, auto value) { to[member].store(value, std::memory_order_relaxed); };
  put(&Header::version, ring::layout_version);
  put(&Header::slot_count, static_cast<std::uint32_t>(vm_.slots));
  put(&Header::generation, generation_);
  put(&Header::region_bytes, static_cast<std::uint64_t>(vm_.region_size));
  put(&Header::first_slot, std::uint64_t{ring::first_slot_offset});
  put(&Header::slot_bytes, std::uint64_t{slot_bytes_});
  put(&Header::no_doorbell, opened_by_path(vm_) ? 1u : 0u);
  put(&Header::guest_vectors, guest_vectors(vm_));
  char name[sizeof Header::vm] = {};
  vm_.name.copy(name, sizeof name - 1);
  to[&Header::vm].copy_in(name);
  char release[sizeof Header::release] = {};
  std::string_view(ring::this_release).copy(release, sizeof release - 1);
  to[&Header::release].copy_in(release);
  put(&Header::common_offset, std::uint64_t{0});
  put(&Header::common_bytes, std::uint64_t{0});  // there is no common memory
  put(&Header::doorbell_port, static_cast<std::uint32_t>(vm_.vsock_port));
  gpu_answers().restore();
  // Pairs with the acquire load of each process that opens the region.
  to[&Header::magic].store(ring::region_magic, std::memory_order_release);
}

void Region::label() const {
  if (start_ == 0) return;
  const DaxLabel label = dax_label(start_, static_cast<std::size_t>(vm_.region_size));
  std::memcpy(base_ - start_ + dax_label_offset, &label, sizeof label);
}

bool Region::touched(std::uint32_t slot) const {
  return memory_.has_data({slot_offset(slot) + ring::huge_page, slot_bytes_ - ring::huge_page});
}

std::vector<Region::Range> Region::rest() const {
  if (memory_.is_huge()) return {};
  const std::size_t slots_end = slot_offset(static_cast<std::uint32_t>(vm_.slots));
  std::vector<Range> ranges = {{start_ + ring::header_area_bytes, ring::first_slot_offset - ring::header_area_bytes},
                               {slots_end, memory_bytes(vm_) - slots_end}};
  std::erase_if(ranges, [](const Range& range) { return range.bytes == 0; });
  return ranges;
}

Region::~Region() { memory_.remove_file(); }

void Region::look_at_size() const {
  if (memory_.is_truncated()) header_area_->give_up();
}

ring::SlotOwner Region::owner(std::uint32_t slot) const { return entry(slot)[&ring::SlotEntry::owner].copy_out(); }

std::string Region::program(std::uint32_t slot) const {
  char name[sizeof ring::SlotEntry::program];
  entry(slot)[&ring::SlotEntry::program].copy_out(name);
  return escaped({name, strnlen(name, sizeof name)});
}

void Region::clear_owner(std::uint32_t slot) const {
  static constexpr char nobody[sizeof ring::SlotEntry::program] = {};
  entry(slot)[&ring::SlotEntry::owner].copy_in({});
  entry(slot)[&ring::SlotEntry::program].copy_in(nobody);
  clear_pinned(slot);
}

bool Region::pinned(std::uint32_t slot) const {
  return entry(slot)[&ring::SlotEntry::pinned].load(std::memory_order_acquire) != 0;  // A
}

void Region::clear_pinned(std::uint32_t slot) const {
  entry(slot)[&ring::SlotEntry::pinned].store(0, std::memory_order_relaxed);
}

}  // namespace host::broker
