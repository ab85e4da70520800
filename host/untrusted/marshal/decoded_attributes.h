// A launch's attributes, decoded by their table (ring/api/launch_attributes.h). The driver gets the bytes that a line
// describes, and zeros after them. The record's remaining bytes are ignored, because an older guest library sends
// whatever else the program's union contained.
#pragma once

#include <array>
#include <cstring>

#include "host/untrusted/marshal/field_validators.h"
#include "ring/api/launch_attributes.h"

namespace host {

// An attribute's value, decoded like a record that no data follow.
template <class V>
class DecodedValue : public FieldValidators<V> {
 public:
  using FieldValidators<V>::FieldValidators;

  // Returns false if no correct guest sends this value.
  bool is_sound() {
    bool sound = true;
    api::each_field_at<V>([&](std::size_t i, const auto& word) { sound = sound && this->take(i, word); });
    return sound;
  }
  CUresult check_all() {
    CUresult refused = CUDA_SUCCESS;
    api::each_field_at<V>([&](std::size_t i, const auto& word) {
      if (refused == CUDA_SUCCESS) refused = this->check(i, word);
    });
    return refused;
  }
  // Returns the value with the driver's handles in place of ids. Precondition: check_all() has found the handles.
  V with_handles() const {
    V value = this->record;
    api::each_field_at<V>([&](std::size_t i, const auto& word) {
      if constexpr (requires { word.member; })
        if (this->found_[i] != nullptr) place(api::member_of(value, word.member), this->found_[i]);
    });
    return value;
  }

 private:
  static void place(std::uint64_t& at, const void* handle) { at = reinterpret_cast<std::uint64_t>(handle); }
  template <class T>
  static void place(T&, const void*) {}  // other members contain no ids
};

template <class Lines = api::LaunchAttributes>
class DecodedAttributes {
 public:
  // Returns false if no correct guest sends these attributes. Precondition: `count` is at most
  // api::max_launch_attributes.
  bool take(Session& session, const std::byte* at, std::size_t count) {
    for (count_ = 0; count_ < count; ++count_)
      if (!take_one(session, at + count_ * sizeof(CUlaunchAttribute), values_[count_])) return false;
    return true;
  }
  // Translates ids into the driver's handles.
  CUresult check(Session& session) {
    for (std::size_t k = 0; k < count_; ++k)
      if (const CUresult refused = check_one(session, values_[k]); refused != CUDA_SUCCESS) return refused;
    return CUDA_SUCCESS;
  }
  const CUlaunchAttribute* get() const { return values_.data(); }

 private:
  static int tag_of(const void* at) {
    int tag = 0;  // the guest's number may be outside the enumeration
    std::memcpy(&tag, static_cast<const std::byte*>(at) + offsetof(CUlaunchAttribute, id), sizeof tag);
    return tag;
  }
  static bool take_one(Session& session, const std::byte* at, CUlaunchAttribute& to) {
    bool sound = false;
    api::with_attribute<Lines>(tag_of(at), [&](const auto& line) {
      using Value = typename std::remove_cvref_t<decltype(line)>::Value;
      Value value{};
      std::memcpy(static_cast<void*>(&value), at + offsetof(CUlaunchAttribute, value), line.bytes);
      to = {};
      to.id = line.tag;
      api::put_value(line, to, value);
      sound = DecodedValue<Value>(session, value).is_sound();
    });
    return sound;
  }
  static CUresult check_one(Session& session, CUlaunchAttribute& attribute) {
    CUresult refused = CUDA_SUCCESS;
    api::with_attribute<Lines>(static_cast<int>(attribute.id), [&](const auto& line) {
      using Value = typename std::remove_cvref_t<decltype(line)>::Value;
      DecodedValue<Value> value(session, api::value_of(line, attribute));
      refused = value.check_all();
      if (refused == CUDA_SUCCESS) api::put_value(line, attribute, value.with_handles());
    });
    return refused;
  }

  std::size_t count_ = 0;
  std::array<CUlaunchAttribute, api::max_launch_attributes> values_;  // only the first count_ are used and written
};

}  // namespace host
