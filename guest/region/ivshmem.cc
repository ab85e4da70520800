// The region in a VM without the kernel module. The process, as root, uses the ivshmem device through sysfs. BAR2
// (resource2) is the region. BAR0 (resource0) has the registers: a store of (peer << 16 | vector) at 12 rings, and a
// load at 8 returns this guest's own id. An ivshmem-plain device has no doorbell: the guest sets a bit in the region's
// header, which the broker polls.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "guest/base/log.h"
#include "guest/region/access.h"
#include "guest/region/doorbell.h"
#include "guest/region/map_shared.h"
#include "guest/region/region.h"
#include "guest/region/sysfs.h"
#include "ring/abi/descriptor.h"

namespace guest {
namespace {

class Ivshmem final : public Region {
 public:
  Ivshmem(int memory, std::uint64_t size, volatile std::uint32_t* registers)
      : memory_(memory), size_(size), registers_(registers) {}
  ~Ivshmem() override {
    forget();
    munmap(const_cast<std::uint32_t*>(registers_), registers_bytes);
    if (header_ != nullptr) munmap(header_, ring::region_header_bytes);
  }

  std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) override {
    return map_shared(memory_, offset, bytes, address);
  }
  void ring(std::uint32_t peer) override {
    if (doorbells_.there())
      ring_by_header(doorbells_, peer);
    else
      ring_by_register(registers_, peer);
  }
  // Makes this object ring through the header from now on. This object then owns the header.
  void use_doorbells(const ring::RegionView& view) {
    doorbells_ = view.header();
    header_ = view.base();
  }
  std::uint64_t size() const override { return size_; }
  std::uint32_t peer() const override { return registers_[register_id / 4]; }
  bool same_kernel() const override { return false; }
  void forget() override {
    if (memory_ >= 0) close(memory_);
    memory_ = -1;
  }

 private:
  int memory_;
  std::uint64_t size_;
  volatile std::uint32_t* registers_;
  ring::Shared<ring::RegionHeader> doorbells_;
  std::byte* header_ = nullptr;
};

// Returns whether the guest's kernel module is the device's driver. If so, no program maps the device through sysfs.
bool is_the_modules(const std::string& device) {
  char target[256];
  const ssize_t n = readlink((device + "/driver").c_str(), target, sizeof target);
  return n > 0 && std::string_view(target, static_cast<std::size_t>(n)).ends_with("/ivgpu");
}

// Enables the device's memory space, as a driver would. While it is disabled, each load returns all ones.
void enable(const std::string& device) {
  if (read_number(device + "/enable") != 0) return;
  const int fd = cuabi::open_file((device + "/enable").c_str(), O_WRONLY);
  if (fd < 0 || write(fd, "1", 1) != 1) log(Level::Info, "cannot enable %s: %s", device.c_str(), std::strerror(errno));
  if (fd >= 0) close(fd);
}

// Returns the sentence about a device's file that this process cannot use: the file, its group and mode, and the
// remedy.
std::string unusable(const std::string& file, const char* how, int error) {
  const std::string remedy =
      error == EACCES || error == EPERM
          ? "run the program as root, or let a group have the device by 60-ivgpu.rules (docs/guest.md, As another user)"
          : "`ivgpu-check` says what is wrong with this guest";
  return "cannot " + std::string(how) + " " + file + ": " + std::strerror(error) + access_in_words(file.c_str()) +
         "; " + remedy;
}

std::unique_ptr<Ivshmem> open_device(const std::string& device, std::string& why) {
  enable(device);
  const std::string registers_file = device + "/resource0", memory_file = device + "/resource2";
  const int registers_fd = cuabi::open_file(registers_file.c_str(), O_RDWR | O_SYNC);
  if (registers_fd < 0) {
    why = unusable(registers_file, "open", errno);
    return nullptr;
  }
  void* registers = mmap(nullptr, registers_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, registers_fd, 0);
  const int error = errno;
  close(registers_fd);
  if (registers == MAP_FAILED) {
    why = unusable(registers_file, "map", error);
    return nullptr;
  }
  const int memory = cuabi::open_file(memory_file.c_str(), O_RDWR);
  struct stat status {};
  if (memory < 0 || fstat(memory, &status) != 0) {
    why = unusable(memory_file, "open", errno);
    munmap(registers, registers_bytes);
    if (memory >= 0) close(memory);
    return nullptr;
  }
  return std::make_unique<Ivshmem>(memory, static_cast<std::uint64_t>(status.st_size),
                                   static_cast<volatile std::uint32_t*>(registers));
}

}  // namespace

std::unique_ptr<Region> open_ivshmem(const char* pci_devices, std::string& why) {
  why =
      "this machine has no ivshmem device (PCI 1af4:1110), and IVGPU_REGION names no broker's socket: give the VM the "
      "device (qemu-config/README.md), or use `ivgpu run` on the host itself";
  DIR* folder = cuabi::open_folder(pci_devices);
  if (folder == nullptr) {
    log(Level::Info, "no ivshmem device: %s is not there", pci_devices);
    return nullptr;
  }
  std::unique_ptr<Region> found;
  std::string refusal;  // the reason for refusing a device that may be ours
  while (const dirent* entry = found == nullptr ? readdir(folder) : nullptr) {
    const std::string device = std::string(pci_devices) + "/" + entry->d_name;
    if (entry->d_name[0] == '.' || read_number(device + "/vendor") != 0x1af4 ||
        read_number(device + "/device") != 0x1110)
      continue;
    if (is_the_modules(device)) {
      refusal = "the kernel module has the ivshmem device " + device +
                ", and here is no node of it: give the program /dev/ivgpu0 (docs/guest-module.md)";
      continue;
    }
    auto region = open_device(device, refusal);
    if (region == nullptr) {
      log(Level::Info, "%s", refusal.c_str());
      continue;
    }
    if (const auto checked = check_region(*region)) {
      if (checked->no_doorbell)
        region->use_doorbells(checked->view);
      else
        checked->unmap();
      found = std::move(region);
    } else {
      why = no_usable_region("the ivshmem device " + device);
    }
  }
  closedir(folder);
  if (!refusal.empty()) why = refusal;
  return found;
}

}  // namespace guest
