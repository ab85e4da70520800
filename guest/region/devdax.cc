#include "guest/region/devdax.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "guest/base/log.h"
#include "guest/region/access.h"
#include "guest/region/doorbell.h"
#include "guest/region/doorbell_channel.h"
#include "guest/region/map_shared.h"
#include "guest/region/region.h"
#include "guest/region/sysfs.h"
#include "ring/abi/descriptor.h"

namespace guest {
namespace {

class Devdax final : public Region {
 public:
  Devdax(int memory, std::uint64_t size) : memory_(memory), size_(size) {}
  ~Devdax() override {
    forget();
    if (mapped_ != nullptr) munmap(mapped_, ring::region_header_bytes);
  }

  std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) override {
    return map_shared(memory_, offset, bytes, address);
  }
  // The bit in the header would suffice; the byte makes the broker look at once.
  void ring(std::uint32_t peer) override {
    ring_by_header(header_, peer);
    doorbells_.ring();
  }
  std::uint64_t size() const override { return size_; }
  std::uint32_t peer() const override { return 0; }
  bool same_kernel() const override { return false; }
  DoorbellChannel* doorbells() override { return doorbells_.works() ? &doorbells_ : nullptr; }
  const char* memory_in_words() const override { return "the devdax memory"; }
  void forget() override {
    doorbells_.forget();
    if (memory_ >= 0) close(memory_);
    memory_ = -1;
  }

  // Must be called before the first ring(). This object owns the header from then on.
  void open_doorbells(const CheckedRegion& checked, const DevdaxPlaces& places, Doorbells doorbells) {
    header_ = checked.view.header();
    mapped_ = checked.view.base();
    if (doorbells == Doorbells::None) return;
    std::string why;
    if (checked.doorbell_port != 0 && doorbells_.connect(checked.doorbell_port, places.dial, why)) return;
    if (!why.empty()) log(Level::Info, "%s; looking for a port of virtio-serial instead", why.c_str());
    if (!doorbells_.open(places.ports, places.nodes, why))
      log(Level::Info,
          "no doorbell channel, so waits use timed sleeps, and the host hears of a call after idle within 20 ms: %s",
          why.c_str());
  }

 private:
  int memory_;
  const std::uint64_t size_;
  ring::Shared<ring::RegionHeader> header_;
  std::byte* mapped_ = nullptr;
  DoorbellChannel doorbells_;
};

std::unique_ptr<Devdax> open_device(const std::string& node, std::uint64_t size, std::string& why) {
  const int fd = cuabi::open_file(node.c_str(), O_RDWR);
  if (fd >= 0) return std::make_unique<Devdax>(fd, size);
  why = "cannot open " + node + ": " + std::strerror(errno) + access_in_words(node.c_str()) +
        (errno == EACCES || errno == EPERM ? "; run the program as root, or let a group have the node"
                                           : "; `ivgpu-check` says what is wrong with this guest");
  return nullptr;
}

}  // namespace

std::unique_ptr<Region> open_devdax(const DevdaxPlaces& places, std::string& why, Doorbells doorbells) {
  why.clear();
  for (const std::string& name : names_in(places.devices)) {
    const std::string device = places.devices + "/" + name, node = places.nodes + "/" + name;
    std::string refusal;
    auto region = open_device(node, read_number(device + "/size"), refusal);
    if (region == nullptr) {
      log(Level::Info, "%s", refusal.c_str());
    } else if (const std::uint64_t align = read_number(device + "/align"); align > ring::page) {
      refusal =
          node + " maps pieces of " + std::to_string(align) +
          " bytes only: let the broker describe the memory, or make the namespace with -a 4k (qemu-config/pmem.md)";
      log(Level::Info, "%s", refusal.c_str());
    } else if (const auto checked = check_region(*region)) {
      log(Level::Info, "%s has the region", node.c_str());
      region->open_doorbells(*checked, places, doorbells);
      return region;
    } else {
      refusal = no_usable_region("the devdax device " + node);
    }
    if (why.empty()) why = refusal;
  }
  return nullptr;
}

}  // namespace guest
