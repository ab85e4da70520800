// Two attributes with lines that only the tests have, independent of the served attributes. The first contains an id
// and padding, the second a device address with its length.
#pragma once

#include "ring/api/launch_attributes.h"

namespace own_attributes {

namespace field = api::field;

struct EventValue {
  std::uint64_t event;
  std::int32_t flags;
  std::uint32_t pad;

  static constexpr std::tuple fields{field::Id{api::Handle::Event, &EventValue::event},
                                     field::Number{"flags", &EventValue::flags}, field::Zero{&EventValue::pad}};
};
struct WindowValue {
  std::uint64_t address, bytes;
  std::uint32_t ratio, hit, miss, pad;

  static constexpr std::tuple fields{field::Address{"address", &WindowValue::address, &WindowValue::bytes},
                                     field::Number{"bytes", &WindowValue::bytes},
                                     field::Number{"ratio", &WindowValue::ratio},
                                     field::Number{"hit", &WindowValue::hit},
                                     field::Number{"miss", &WindowValue::miss},
                                     field::Zero{&WindowValue::pad}};
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
