// Records that break no rule of the protocol, with ids and addresses that several channels share: what one makes
// another uses, ends, or makes anew. The recipes are those of calls.h; what they leave open is filled so that no record
// is one that ends a session.
#pragma once

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

// The ids of a session, made from few indices. An index is given out again, under the next generation, as soon as the
// session does not know its last id any more.
class SharedIds {
 public:
  explicit SharedIds(std::function<bool(std::uint64_t)> known) : known_(std::move(known)) {}

  // For something that is to be made; made() when the record has been executed, whatever came of it.
  std::uint64_t take(api::Handle kind, std::size_t first) {
    for (std::size_t n = 0; n < few; ++n)
      if (Entry& entry = entries_[(first + n) % few]; !entry.making && !known_(entry.id)) return renew(entry, kind);
    return renew(entries_.emplace_back(Entry{.index = static_cast<std::uint32_t>(entries_.size() + 1)}), kind);
  }
  void made(std::uint64_t id) {
    for (Entry& entry : entries_)
      if (entry.id == id) entry.making = false;
  }
  // One of this kind, alive or not; 0 where there never was one.
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

class WholeRecords {
 public:
  WholeRecords(Input& in, SharedIds& ids) : in_(in), ids_(ids) {}

  // Whether there is a way to write this call's record whole.
  static bool knows(const CallLine& line) { return line.recipe != no_recipe && line.name != "hello"; }

  // The payload of one record of this call; made() is the id that it would give, or 0.
  const std::vector<std::byte>& write(const CallLine& line) {
    payload_.clear();
    made_ = 0;
    const std::string_view name = line.name;
    if (line.recipe == nullptr) {
      write_fields(line.fields);
    } else if (name.starts_with("cuMemcpy3D")) {
      payload_.put_words({address(), 32, 2, address(), 32, 2, 1 + in_.below(16), 1 + in_.below(2), 1, stream()});
    } else if (name.starts_with("cuMemsetD2D")) {
      payload_.put_words({address(), 32, 1 + in_.below(8), 1 + in_.below(2), in_.number(), stream()});
    } else if (name.starts_with("cuMemAlloc")) {
      payload_.put_words({16 + in_.below(64), in_.below(3), 4});
    } else if (name == "pin_arena" || name == "join_arena") {
      payload_.put_words({in_.below(2) << 21, 1 << 21});
    } else {
      write_recipe(name, line.recipe);
    }
    return payload_.bytes();
  }
  std::uint64_t made() const { return made_; }
  void learn_address(std::uint64_t address) { addresses_.push_back(address); }
  const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  // One word of the last record is another one now: it may break the protocol.
  const std::vector<std::byte>& damage() {
    payload_.overwrite(in_, in_.any());
    return payload_.bytes();
  }

 private:
  // ---- words -------------------------------------------------------------------------------------------------------

  std::uint64_t id(api::Handle kind) { return ids_.some(kind, in_.number()); }
  std::uint64_t new_id(api::Handle kind) { return made_ = ids_.take(kind, in_.number()); }
  std::uint64_t stream() { return in_.once_in(2) ? id(api::Handle::Stream) : in_.below(3); }
  std::uint64_t address() {
    return addresses_.empty()
               ? 0
               : addresses_[addresses_.size() - 1 - in_.below(std::min<std::size_t>(addresses_.size(), 8))];
  }
  std::uint64_t word(char letter) {
    switch (letter) {
      case 's': return stream();
      case 'e': return id(api::Handle::Event);
      case 'm': return id(api::Handle::Module);
      case 'l': return id(api::Handle::Library);
      case 'f': return id(in_.once_in(2) ? api::Handle::Kernel : api::Handle::Function);
      case 'k': return id(api::Handle::Kernel);
      case 'M': return new_id(api::Handle::Module);
      case 'L': return new_id(api::Handle::Library);
      case 'F': return new_id(api::Handle::Function);
      case 'K': return new_id(api::Handle::Kernel);
      case 'd': return address();
      case 'b': return in_.below(2);
      case 'n': return in_.below(64);
      default: return 0;
    }
  }

  // ---- CALL lines --------------------------------------------------------------------------------------------------

  std::uint64_t value(const Field& f) {
    if (f.arg.dir == api::Dir::Device) return address();
    if (f.arg.dir == api::Dir::Creates) return new_id(f.handle);
    if (f.handle == api::Handle::Stream && !f.arg.closes) return stream();
    return f.handle != api::Handle::None ? id(f.handle) : in_.below(4);
  }
  static std::uint64_t length(const Field& f, const std::vector<std::uint64_t>& slots) {
    if (f.arg.extent == api::Extent::String) return 8;
    return f.arg.extent == api::Extent::One ? f.size : slots[static_cast<std::size_t>(f.arg.count)] * f.size;
  }
  void write_fields(const std::vector<Field>& fields) {
    const auto points = [](const Field& f) { return f.arg.dir == api::Dir::In || f.arg.dir == api::Dir::Out; };
    std::vector<std::uint64_t> slots;
    for (const Field& f : fields) slots.push_back(points(f) ? 0 : value(f));
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (points(fields[i])) slots[i] = length(fields[i], slots);
    for (const std::uint64_t slot : slots) payload_.put(slot);
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].arg.dir == api::Dir::In) payload_.put_zeros(slots[i]);
  }

  // ---- CUSTOM and SESSION lines ------------------------------------------------------------------------------------

  void write_recipe(std::string_view name, std::string_view recipe) {
    const std::string_view words = recipe.substr(0, recipe.find(' '));
    if (name.starts_with("cuMemcpy")) return write_copy(recipe.ends_with(" bytes"), name == "cuMemcpyDtoHAsync_v2");
    if (words == "fs") return write_launch(name == "cuOccupancyMaxActiveClusters");
    for (const char letter : words) payload_.put(letter == 'a' ? ring::absent : word(letter));
    if (recipe.ends_with(" name")) write_name();
    if (recipe.ends_with(" load")) write_load();
  }

  void write_name() {
    constexpr std::string_view names[] = {"fill", "counter", "nothing", "none"};
    const std::string text(in_.pick(names));
    payload_.put(text.size() + 1);
    payload_.put_bytes(text.c_str(), text.size() + 1);
  }

  // To the device the record itself may hold the bytes; from there the reply does, but for an asynchronous copy.
  void write_copy(bool to_device, bool needs_arena) {
    const bool in_arena = needs_arena || in_.once_in(2);
    const std::uint64_t bytes = in_.below(64);
    payload_.put_words({address(), in_arena ? in_.below(4) * 64 : ring::absent, bytes, stream(), in_.below(2)});
    if (to_device && !in_arena) payload_.put_zeros(bytes);
  }

  void write_launch(bool asks) {
    constexpr std::uint64_t one = 1, param_bytes = 16;
    payload_.put_words({word('f'), stream()});
    for (int i = 0; i < 3; ++i) payload_.put(one | one << 32);
    payload_.put_words({asks ? 0 : param_bytes << 32, 0});
    if (!asks) payload_.put_words({address(), 4});
  }

  void write_load() {
    constexpr std::string_view text = ".version 7.5\n.target sm_75\n.address_size 64\n";
    constexpr std::uint64_t one = 1;
    const std::uint64_t bytes = text.size() + 1;
    payload_.put_words({one << 32, 0, bytes});
    payload_.put_bytes(std::string(text).c_str(), bytes);
  }

  Input& in_;
  SharedIds& ids_;
  Payload payload_;
  std::vector<std::uint64_t> addresses_;
  std::uint64_t made_ = 0;
};

}  // namespace fuzz
