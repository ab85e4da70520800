#include "host/session/telemetry.h"

#include <sys/mman.h>

#include <new>

namespace host {
namespace {

std::byte* memory_of_its_own() {
  void* at =
      mmap(nullptr, ring::telemetry_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(at);
}

}  // namespace

Telemetry::Telemetry(std::byte* mapped)
    : own_(mapped == nullptr), base_(mapped != nullptr ? mapped : memory_of_its_own()) {}

Telemetry::~Telemetry() {
  if (own_) munmap(base_, ring::telemetry_bytes);
}

}  // namespace host
