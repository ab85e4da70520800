#include "guest/calls/place.h"

#include "guest/session/session.h"

namespace guest {

Place place_of(CUdeviceptr at) {
  Session& s = *session();
  if (const auto a = s.allocations.find(at)) return {Place::Kind::Device, a->start, a->bytes, a->id, a->context};
  if (const auto b = s.arena->find(reinterpret_cast<const void*>(at)))
    return {Place::Kind::Pinned, reinterpret_cast<std::uint64_t>(s.arena->at(b->offset)), b->bytes,
            b->offset | 1ULL << 62, nullptr};
  return {};
}

CUdeviceptr device_pointer(const Place& place, CUdeviceptr at) {
  if (place.kind != Place::Kind::Pinned) return at;
  Session& s = *session();
  return s.device_address(s.arena->offset(reinterpret_cast<const std::byte*>(at)));
}

}  // namespace guest
