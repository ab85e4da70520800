// The launch attributes that cross to the worker: one line for each, with its tag and the members of its value. The
// members are a list, like a record's (ring/api/fields.h). The guest uses the list to copy a value out of the program's
// union, the worker to read the value, `ivgpu trace` to print it, and the fuzzers to make values.
//
// A user of the lines passes one function for all attributes to with_attribute(). For an unknown tag the guest returns
// the driver's error, and the worker ends the session. The driver checks the numbers.
//
// ```cpp
// const char* name_of(CUlaunchAttributeID tag) {
//   const char* name = "an attribute that does not cross";
//   api::with_attribute<api::LaunchAttributes>(tag, [&](const auto& line) { name = line.name; });
//   return name;
// }
// ```
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include "ring/api/cuda.h"
#include "ring/api/field_list.h"

namespace api {

inline constexpr std::uint32_t max_launch_attributes = 16;

// ---- values, with the layout of cuda.h's union ---------------------------------------------------------------------

// An enumeration crosses as a number, because the sender may use a value outside the enumeration.
template <class T>
struct NumberValue {
  T number;

  static constexpr std::tuple fields{field::Number{"value", &NumberValue::number}};
};
struct DimensionsValue {
  std::uint32_t size[3];

  static constexpr std::tuple fields{field::Triple{"size", &DimensionsValue::size}};
};
struct DomainMapValue {
  std::uint8_t local, remote;

  static constexpr std::tuple fields{field::Number{"default", &DomainMapValue::local},
                                     field::Number{"remote", &DomainMapValue::remote}};
};

// Events that the launch records. The driver checks the flags with which the events were created.
struct ProgrammaticEventValue {
  std::uint64_t event;
  std::int32_t flags, at_block_start;

  static constexpr std::tuple fields{field::Id{Handle::Event, &ProgrammaticEventValue::event},
                                     field::Number{"flags", &ProgrammaticEventValue::flags},
                                     field::Number{"at_block_start", &ProgrammaticEventValue::at_block_start}};
};
struct CompletionEventValue {
  std::uint64_t event;
  std::int32_t flags;
  std::uint32_t pad;

  static constexpr std::tuple fields{field::Id{Handle::Event, &CompletionEventValue::event},
                                     field::Number{"flags", &CompletionEventValue::flags},
                                     field::Zero{&CompletionEventValue::pad}};
};

// The members of CUaccessPolicyWindow, a hint to the GPU's cache. A window of 0 bytes means no window.
struct WindowValue {
  std::uint64_t start, bytes;
  std::uint32_t ratio;  // the bits of a float
  std::int32_t hits, misses;
  std::uint32_t pad;

  // Only the first byte must be the session's, as for field::first_byte.
  static constexpr std::uint64_t span(const WindowValue& v) { return v.bytes == 0 ? 0 : 1; }
  static constexpr std::tuple fields{
      field::Address{"window", &WindowValue::start, span}, field::Number{"bytes", &WindowValue::bytes},
      field::Number{"ratio", &WindowValue::ratio},         field::Number{"hits", &WindowValue::hits},
      field::Number{"misses", &WindowValue::misses},       field::Zero{&WindowValue::pad}};
};

// ---- lines ---------------------------------------------------------------------------------------------------------

inline constexpr std::int64_t every_number = std::numeric_limits<std::uint32_t>::max();
// No value is certainly accepted: only the driver knows whether several blocks fit on the GPU together, or whether it
// accepts a value.
inline constexpr std::int64_t at_once = -1;

template <class V>
struct LaunchAttribute {
  using Value = V;

  CUlaunchAttributeID tag;
  const char* name;
  // The driver certainly accepts the numbers from 0 to this one. A launch with another number waits for its reply, so
  // that the program gets the error at once.
  std::int64_t accepted = every_number;

  // The number of bytes of the union that the value uses.
  static constexpr std::size_t bytes = std::is_empty_v<V> ? 0 : sizeof(V);
};
// Makes a line. The third argument is the union's member; the value must have the member's size.
template <class V, class M>
constexpr LaunchAttribute<V> attribute(CUlaunchAttributeID tag, const char* name, M CUlaunchAttributeValue::*,
                                       std::int64_t accepted = every_number) {
  static_assert(sizeof(V) == sizeof(M) && std::is_trivially_copyable_v<V>, "the value is not as long as in cuda.h");
  return {tag, name, accepted};
}

struct LaunchAttributes {
  using Union = CUlaunchAttributeValue;
  template <class T>
  using One = NumberValue<T>;

  static constexpr std::tuple lines{
      LaunchAttribute<Nothing>{CU_LAUNCH_ATTRIBUTE_IGNORE, "ignore"},
      attribute<One<int>>(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, "cooperative", &Union::cooperative, at_once),
      attribute<One<int>>(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, "synchronization_policy", &Union::syncPolicy),
      attribute<DimensionsValue>(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, "cluster", &Union::clusterDim, at_once),
      attribute<One<int>>(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, "cluster_scheduling",
                          &Union::clusterSchedulingPolicyPreference, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING),
      attribute<One<int>>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, "programmatic_serialization",
                          &Union::programmaticStreamSerializationAllowed),
      attribute<ProgrammaticEventValue>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, "programmatic_event",
                                        &Union::programmaticEvent, at_once),
      attribute<CompletionEventValue>(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, "completion_event",
                                      &Union::launchCompletionEvent, at_once),
      attribute<One<int>>(CU_LAUNCH_ATTRIBUTE_PRIORITY, "priority", &Union::priority),
      attribute<DomainMapValue>(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, "memory_domains", &Union::memSyncDomainMap),
      attribute<One<int>>(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, "memory_domain", &Union::memSyncDomain,
                          CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE),
      attribute<WindowValue>(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, "window", &Union::accessPolicyWindow, at_once),
      attribute<DimensionsValue>(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, "preferred_cluster",
                                 &Union::preferredClusterDim, at_once),
      attribute<One<unsigned>>(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, "carveout",
                               &Union::sharedMemCarveout, at_once),
      attribute<One<unsigned>>(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, "nvlink",
                               &Union::nvlinkUtilCentricScheduling, at_once)};
};

// ---- reading -------------------------------------------------------------------------------------------------------

// Calls `f(line)` for the line with this tag. Returns false if no line has this tag.
template <class Lines, class F>
constexpr bool with_attribute(int tag, F f) {
  return std::apply(
      [&](const auto&... line) { return ((static_cast<int>(line.tag) == tag && (f(line), true)) || ...); },
      Lines::lines);
}
template <class Lines = LaunchAttributes>
constexpr bool crosses_boundary(CUlaunchAttributeID tag) {
  return with_attribute<Lines>(static_cast<int>(tag), [](const auto&) {});
}

// Returns whether the driver may refuse a launch with this attribute. If so, the launch waits for its reply.
template <class Lines = LaunchAttributes>
bool is_answered_at_once(const CUlaunchAttribute& attribute) {
  std::int64_t accepted = every_number;
  with_attribute<Lines>(static_cast<int>(attribute.id), [&](const auto& line) { accepted = line.accepted; });
  std::uint32_t number = 0;
  std::memcpy(&number, &attribute.value, sizeof number);
  return number > accepted;
}

// Returns whether a stream may have the attribute. Attributes that name an object are valid only for launches.
template <class Lines = LaunchAttributes>
constexpr bool is_streams(CUlaunchAttributeID tag) {
  bool fits = false;
  with_attribute<Lines>(static_cast<int>(tag), [&](const auto& line) {
    using Value = typename std::remove_cvref_t<decltype(line)>::Value;
    fits = true;
    each_field<Value>([&]<class W>(const W&) { fits = fits && !names_id<W>; });
  });
  return fits;
}

// Reads a line's value from an attribute, or writes the value into an attribute.
template <class V>
V value_of(const LaunchAttribute<V>& line, const CUlaunchAttribute& attribute) {
  V value{};
  std::memcpy(static_cast<void*>(&value), &attribute.value, line.bytes);
  return value;
}
template <class V>
void put_value(const LaunchAttribute<V>& line, CUlaunchAttribute& attribute, const V& value) {
  std::memcpy(&attribute.value, static_cast<const void*>(&value), line.bytes);
}

}  // namespace api
