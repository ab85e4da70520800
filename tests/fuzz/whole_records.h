// Valid records whose ids and addresses several channels share: a channel makes an object that another channel uses,
// ends or recreates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "ring/api/id.h"
#include "ring/wire/record.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/payload.h"

namespace fuzz {

// The ids of a session, made from few indices. An index is reused, under the next generation, once the session has
// forgotten the index's last id.
class SharedIds {
 public:
  explicit SharedIds(std::function<bool(std::uint64_t)> known) : known_(std::move(known)) {}

  // Returns an id for a new object. Call made() when the record has been executed, whatever its result.
  std::uint64_t take(api::Handle kind, std::size_t first) {
    for (std::size_t n = 0; n < few; ++n)
      if (Entry& entry = entries_[(first + n) % few]; !entry.making && !known_(entry.id)) return renew(entry, kind);
    return renew(entries_.emplace_back(Entry{.index = static_cast<std::uint32_t>(entries_.size() + 1)}), kind);
  }
  void made(std::uint64_t id) {
    for (Entry& entry : entries_)
      if (entry.id == id) entry.making = false;
  }
  // Adds an id that the worker has chosen for an object of the driver. The id may be known already.
  void found(std::uint64_t id) {
    if (std::find(all_.begin(), all_.end(), id) == all_.end()) all_.push_back(id);
  }
  // An id of this kind, alive or not; 0 if none ever existed.
  std::uint64_t some(api::Handle kind, std::size_t choice) const {
    std::vector<std::uint64_t> fitting;
    for (const std::uint64_t id : all_)
      if (api::Id::of(id).kind == kind) fitting.push_back(id);
    return fitting.empty() ? 0 : fitting[fitting.size() - 1 - choice % std::min<std::size_t>(fitting.size(), 4)];
  }
  const std::vector<std::uint64_t>& all() const { return all_; }

 private:
  static constexpr std::size_t few = 16;
  struct Entry {
    std::uint32_t index = 0, generation = 0;
    std::uint64_t id = 0;
    bool making = false;
  };
  std::uint64_t renew(Entry& entry, api::Handle kind) {
    entry.id = api::Id{kind, entry.index, ++entry.generation}.value();
    entry.making = true;
    return all_.emplace_back(entry.id);
  }
  static std::vector<Entry> first_entries() {
    std::vector<Entry> entries(few);
    for (std::uint32_t i = 0; i < few; ++i) entries[i].index = i + 1;
    return entries;
  }

  std::function<bool(std::uint64_t)> known_;
  std::vector<Entry> entries_ = first_entries();
  std::vector<std::uint64_t> all_;
};

class WholeRecords final : public Choices {
 public:
  WholeRecords(Input& in, SharedIds& ids) : in_(in), ids_(ids) {}

  // True if the record's words or field list describe all rules of this call. A few calls have further rules.
  static bool knows(const CallLine& line) {
    constexpr std::string_view with_more_rules[] = {
        "hello",    "cuTexObjectCreate", "cuSurfObjectCreate", "cuLinkAddData_v2", "cuDevResourceGenerateDesc",
        "take_name"};
    const auto has_value = [](const Field& f) { return f.arg.extent == api::Extent::Valued; };
    return std::find(std::begin(with_more_rules), std::end(with_more_rules), line.name) == std::end(with_more_rules) &&
           std::none_of(line.fields.begin(), line.fields.end(), has_value);
  }

  // The payload of one record of this call. made() then returns the id that the record proposes, or 0.
  const std::vector<std::byte>& write(const CallLine& line) {
    payload_.clear();
    made_ = 0;
    if (line.by_list == nullptr)
      write_fields(line.fields);
    else
      line.by_list(*this, payload_);
    return payload_.bytes();
  }
  std::uint64_t made() const { return made_; }
  void learn_address(std::uint64_t address) { addresses_.push_back(address); }
  const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  // Changes one word of the last record, which may break the protocol.
  const std::vector<std::byte>& damage() {
    payload_.overwrite(in_, in_.any());
    return payload_.bytes();
  }

 private:
  // ---- words -------------------------------------------------------------------------------------------------------

  std::uint64_t id(api::Handle kind) override { return ids_.some(kind, in_.number()); }
  std::uint64_t new_id(api::Handle kind) override { return made_ = ids_.take(kind, in_.number()); }
  std::uint64_t stream() override { return in_.once_in(2) ? id(api::Handle::Stream) : in_.below(3); }
  std::uint64_t address() override {
    return addresses_.empty()
               ? 0
               : addresses_[addresses_.size() - 1 - in_.below(std::min<std::size_t>(addresses_.size(), 8))];
  }
  std::uint64_t number() override { return in_.below(16); }
  // Each number is used only once, since another channel may still work in an earlier context.
  std::uint64_t new_context() override { return ring::first_created_context + contexts_++; }
  std::uint64_t context() override { return ring::first_created_context + in_.below(contexts_ + 1); }
  std::uint64_t pages(bool is_offset) override { return is_offset ? in_.below(2) << 21 : 1 << 21; }
  // The arena holds no image.
  std::uint64_t place(bool may_be_absent, bool image) override {
    return image || (may_be_absent && in_.once_in(2)) ? ring::absent : in_.below(4) * 64;
  }
  std::uint64_t or_else(std::uint64_t right) override { return right; }
  std::uint32_t attribute() override { return CU_LAUNCH_ATTRIBUTE_PRIORITY; }
  std::uint64_t jit_option() override { return CU_JIT_MAX_REGISTERS; }
  std::uint32_t parameter_bytes() override { return 16; }
  std::string name() override {
    constexpr std::string_view names[] = {"fill", "counter", "nothing", "none", "shared"};
    return std::string(in_.pick(names));
  }
  std::vector<std::string> parts() override {
    return {std::string(".version 7.5\n.target sm_75\n.address_size 64\n") + '\0'};
  }
  Input& input() override { return in_; }

  // ---- CALL lines --------------------------------------------------------------------------------------------------

  std::uint64_t value(const Field& f) {
    switch (f.arg.dir) {
      case api::Dir::Device:
      case api::Dir::Frees:
      case api::Dir::Reserved:
      case api::Dir::Inside: return address();
      case api::Dir::Finds:
      case api::Dir::Knows:
      case api::Dir::Memory: return sizeof(std::uint64_t);
      default: break;
    }
    if (f.arg.dir == api::Dir::Creates) return new_id(f.handle);
    if (f.handle == api::Handle::Stream && !f.arg.closes) return stream();
    return f.handle != api::Handle::None ? id(f.handle) : in_.below(4);
  }
  static std::uint64_t length(const Field& f, const std::vector<std::uint64_t>& slots) {
    if (f.arg.extent == api::Extent::String) return 8;
    if (f.arg.extent == api::Extent::Row) return static_cast<std::uint64_t>(f.arg.count) * f.size;
    return f.arg.extent == api::Extent::One ? f.size : slots[static_cast<std::size_t>(f.arg.count)] * f.size;
  }
  void write_fields(const std::vector<Field>& fields) {
    const auto points = [](const Field& f) {
      return f.arg.dir == api::Dir::In || f.arg.dir == api::Dir::Out || f.arg.dir == api::Dir::Ids;
    };
    std::vector<std::uint64_t> slots;
    for (const Field& f : fields) slots.push_back(points(f) ? 0 : value(f));
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (points(fields[i])) slots[i] = length(fields[i], slots);
    for (const std::uint64_t slot : slots) payload_.put(slot);
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].arg.dir == api::Dir::Ids) {
        for (std::uint64_t n = slots[i] / sizeof(std::uint64_t); n > 0; --n) payload_.put(id(fields[i].handle));
      } else if (fields[i].arg.dir == api::Dir::In && fields[i].size == sizeof(CUDA_MEMSET_NODE_PARAMS)) {
        put_fill();
      } else if (fields[i].arg.dir == api::Dir::In) {
        payload_.put_zeros(slots[i]);
      }
  }
  void put_fill() {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = address(), fill.elementSize = 1, fill.width = 1 + in_.below(16), fill.height = 1;
    payload_.put_bytes(&fill, sizeof fill);
  }

  Input& in_;
  SharedIds& ids_;
  Payload payload_;
  std::vector<std::uint64_t> addresses_;
  std::uint64_t made_ = 0;
  unsigned contexts_ = 0;
};

}  // namespace fuzz
