// Two attributes with lines of the tests' own, independent of the served ones. One holds an id and padding; the second
// holds a device address with its length.
#pragma once

#include "ring/api/launch_attributes.h"

namespace own_attributes {

namespace field = api::field;

struct EventValue {
  std::uint64_t event;
  std::int32_t flags;
  std::uint32_t pad;

  static constexpr std::tuple fields{field::id(api::Handle::Event, &EventValue::event),
                                     field::number("flags", &EventValue::flags), field::zero(&EventValue::pad)};
};
struct WindowValue {
  std::uint64_t address, bytes;
  std::uint32_t ratio, hit, miss, pad;

  static constexpr std::tuple fields{field::address("address", &WindowValue::address, &WindowValue::bytes),
                                     field::number("bytes", &WindowValue::bytes),
                                     field::number("ratio", &WindowValue::ratio),
                                     field::number("hit", &WindowValue::hit),
                                     field::number("miss", &WindowValue::miss),
                                     field::zero(&WindowValue::pad)};
};
struct Lines {
  static constexpr std::tuple lines{
      api::attribute<EventValue>(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, "completion_event",
                                 &CUlaunchAttributeValue::launchCompletionEvent),
      api::attribute<WindowValue>(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, "window",
                                  &CUlaunchAttributeValue::accessPolicyWindow)};
};

// An attribute with this value; all other bytes of the union are `rest`.
template <class V>
CUlaunchAttribute with(CUlaunchAttributeID tag, const V& value, int rest) {
  CUlaunchAttribute attribute;
  std::memset(&attribute, rest, sizeof attribute);
  attribute.id = tag;
  std::memcpy(&attribute.value, &value, sizeof value);
  return attribute;
}
template <class V>
V value_in(const CUlaunchAttribute& attribute) {
  V value;
  std::memcpy(&value, &attribute.value, sizeof value);
  return value;
}
// Index of the first nonzero byte after the value, or 64.
template <class V>
std::size_t first_behind(const CUlaunchAttribute& attribute) {
  std::size_t i = sizeof(V);
  const auto* at = reinterpret_cast<const char*>(&attribute.value);
  while (i < sizeof attribute.value && at[i] == 0) ++i;
  return i;
}

}  // namespace own_attributes
