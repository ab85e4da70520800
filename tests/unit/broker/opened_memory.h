// For VMs that open their region by path: the test stands in for the VM, and opens the memory as QEMU does.
#pragma once

#include <string>
#include <vector>

#include "tests/other_side.h"
#include "tests/unit/broker/harness.h"

namespace broker_test {

// A path in /dev/shm. The test process removes the file at its exit, even if a broker was killed.
inline std::string memory_file(const std::string& name) {
  struct Files {
    ~Files() {
      for (const std::string& file : names) unlink(file.c_str());
    }
    std::vector<std::string> names;
  };
  static Files files;
  return files.names.emplace_back("/dev/shm/ivgpu-test-" + std::to_string(getpid()) + "-" + name);
}

// `start`: the offset of the region in the memory.
class OpenedMemory {
 public:
  using SlotState = ring::SlotState;

  explicit OpenedMemory(const std::string& path, std::size_t start = 0)
      : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)), start_(start) {
    if (fd_ < 0) return;
    bytes_ = static_cast<std::size_t>(lseek(fd_, 0, SEEK_END));
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at != MAP_FAILED) base_ = static_cast<std::byte*>(at);
  }
  ~OpenedMemory() { end(); }
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  void end() {
    if (base_ != nullptr) munmap(base_, bytes_);
    if (fd_ >= 0) close(fd_);
    base_ = nullptr, fd_ = -1;
  }

  bool there() const { return base_ != nullptr; }
  std::size_t bytes() const { return bytes_; }
  std::byte* memory() const { return base_; }
  ring::RegionHeader& header() const { return other_side::region(region()); }
  ring::SlotEntry& entry(std::uint32_t k) const { return other_side::entry(region(), k); }
  ring::Shared<std::uint32_t> state(std::uint32_t k) const { return other_side::shared(entry(k).state); }
  bool becomes(std::uint32_t k, SlotState wanted) const {
    return eventually([&] { return ring::SlotWord::of(state(k).load()).state == wanted; });
  }
  void ring_peer(std::uint32_t peer) const {
    other_side::shared(header().doorbell_bits[peer / 64]).fetch_or(1ULL << peer % 64);
  }
  bool claim(std::uint32_t k, std::uint32_t pid = 7) const {
    if (!becomes(k, SlotState::Ready)) return false;
    const ring::SlotWord now = ring::SlotWord::of(state(k).load());
    state(k).store(now.with(SlotState::Claimed).word());
    entry(k).owner.pid = pid;
    ring_peer(ring::peer_broker);
    return true;
  }
  volatile char* command(std::uint32_t k) const {
    return reinterpret_cast<volatile char*>(region() + header().first_slot + k * header().slot_bytes +
                                            ring::arena_offset);
  }
  // True if the broker forwards a doorbell to the slot's worker, and the worker answers.
  bool worker_answers(std::uint32_t k) const {
    command(k)[1] = 0;
    command(k)[0] = 'c';
    ring_peer(ring::peer_of_slot(k));
    return eventually([&] { return command(k)[1] == 'k'; });
  }
  // Makes the slot's worker interrupt its guest once.
  void ask_for_interrupt(std::uint32_t k) const {
    command(k)[0] = 'i';
    ring_peer(ring::peer_of_slot(k));
  }

 private:
  std::byte* region() const { return base_ + start_; }

  int fd_;
  const std::size_t start_;
  std::size_t bytes_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace broker_test
