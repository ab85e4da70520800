// Writes records of any call, as a guest would that knows the protocol and wants to break its worker: whole ones
// mostly, with ids and addresses that are the session's, and then one thing wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ring/api/id.h"
#include "ring/wire/record.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/payload.h"

namespace fuzz {

class Records {
 public:
  explicit Records(std::uint64_t arena_bytes) : arena_bytes_(arena_bytes) {}
  // Where choices come from. Before all else.
  void read_from(Input& in) { input_ = &in; }

  // The payload of one record of this call. `made` below says what it would create.
  const std::vector<std::byte>& write(const CallLine& line) {
    payload_.clear();
    made_ = 0;
    if (line.recipe == nullptr)
      write_fields(line.fields);
    else
      write_recipe(line.recipe);
    return payload_.bytes();
  }

  const std::vector<std::byte>& payload() const { return payload_.bytes(); }

  // What the last record asked the host to create, if it has succeeded.
  void succeeded() {
    if (made_ != 0) ids_[api::Id::of(made_).kind].push_back(made_);
  }
  void learn_address(std::uint64_t address) { addresses_.push_back(address); }
  // Something else than the whole payload.
  void damage() {
    switch (input_->below(4)) {
      case 0: payload_.resize(input_->below(payload_.size() + 1)); break;
      case 1: payload_.resize(payload_.size() + input_->below(64)); break;
      case 2: payload_.overwrite(*input_, input_->any()); break;
      default: payload_.overwrite(*input_, some_word()); break;
    }
  }

 private:
  // ---- words -------------------------------------------------------------------------------------------------------

  std::uint64_t some_word() {
    constexpr std::string_view letters = "semlfkSEMLFKdapn";
    return word(letters[input_->below(letters.size())]);
  }
  // An id that the session has; now and then one that it had, of another kind, or never.
  std::uint64_t id(api::Handle kind) {
    if (kind == api::Handle::Stream && input_->once_in(4)) return input_->below(4);
    if (input_->once_in(16))
      return api::Id{kind, static_cast<std::uint32_t>(input_->below(64)), input_->number()}.value();
    if (input_->once_in(32)) return input_->any();
    if (input_->once_in(16)) kind = static_cast<api::Handle>(input_->below(api::handle_kinds));
    const auto& known = ids_[kind];
    return known.empty() ? 0 : known[known.size() - 1 - input_->below(std::min<std::size_t>(known.size(), 256))];
  }
  std::uint64_t new_id(api::Handle kind) {
    if (input_->once_in(32)) return made_ = id(kind);
    return made_ = api::Id{kind, next_++, 0}.value();
  }
  std::uint64_t address() {
    if (addresses_.empty() || input_->once_in(16)) return input_->any();
    const std::uint64_t start =
        addresses_[addresses_.size() - 1 - input_->below(std::min<std::size_t>(addresses_.size(), 256))];
    return input_->once_in(4) ? start + input_->any() : start;
  }
  std::uint64_t word(char letter) {
    switch (letter) {
      case 's': return id(api::Handle::Stream);
      case 'e': return id(api::Handle::Event);
      case 'm': return id(api::Handle::Module);
      case 'l': return id(api::Handle::Library);
      case 'f': return id(input_->once_in(2) ? api::Handle::Kernel : api::Handle::Function);
      case 'k': return id(api::Handle::Kernel);
      case 'S': return new_id(api::Handle::Stream);
      case 'E': return new_id(api::Handle::Event);
      case 'M': return new_id(api::Handle::Module);
      case 'L': return new_id(api::Handle::Library);
      case 'F': return new_id(api::Handle::Function);
      case 'K': return new_id(api::Handle::Kernel);
      case 'd': return address();
      case 'a': return arena();
      case 'p': return input_->below(4) << 21;
      case 'w': return 4 - input_->below(6);
      case 'b': return input_->once_in(16) ? input_->any() : input_->below(2);
      case 'n': return small();
      case 'N': return input_->once_in(2) ? some_word() : input_->any();
      default: return input_->once_in(8) ? input_->any() : 0;
    }
  }
  std::uint64_t arena() {
    if (input_->once_in(2)) return ring::absent;
    return input_->once_in(4) ? arena_bytes_ - input_->below(64) : input_->any() % (arena_bytes_ + 1);
  }
  std::uint64_t small() { return input_->once_in(8) ? input_->any() : input_->number(); }

  // ---- CALL lines --------------------------------------------------------------------------------------------------

  std::uint64_t number(const Field& f) {
    const std::uint64_t value = input_->once_in(4) ? input_->any() : input_->number();
    if (f.bits == 64 || input_->once_in(16)) return value;
    const std::uint64_t mask = (1ULL << f.bits) - 1;
    // An int's sign reaches through the slot.
    return f.bits == 32 && input_->once_in(4) ? static_cast<std::uint64_t>(static_cast<std::int32_t>(value))
                                              : value & mask;
  }

  std::uint64_t value(const Field& f) {
    switch (f.arg.dir) {
      case api::Dir::Device: return address();
      case api::Dir::Creates: return new_id(f.handle);
      case api::Dir::Value: return f.handle != api::Handle::None ? id(f.handle) : number(f);
      default: return 0;  // a length, which hangs on other fields
    }
  }

  std::uint64_t length(const Field& f, const std::vector<std::uint64_t>& slots) {
    if (input_->once_in(16)) return ring::absent;
    if (input_->once_in(32)) return input_->any();
    switch (f.arg.extent) {
      case api::Extent::One: return f.size;
      case api::Extent::Counted: return slots[static_cast<std::size_t>(f.arg.count)] * f.size;
      case api::Extent::String: return 1 + input_->below(64);
    }
    return 0;
  }

  void write_fields(const std::vector<Field>& fields) {
    std::vector<std::uint64_t> slots;
    for (const Field& f : fields) slots.push_back(value(f));
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].arg.dir == api::Dir::In || fields[i].arg.dir == api::Dir::Out) slots[i] = length(fields[i], slots);
    for (const std::uint64_t slot : slots) payload_.put(slot);
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].arg.dir == api::Dir::In && slots[i] <= 4096) put_input(slots[i]);
  }

  void put_input(std::size_t n) {
    std::vector<std::uint8_t> bytes(n, 'x');
    const auto given = input_->take(std::min<std::size_t>(n, 16));
    std::copy(given.begin(), given.end(), bytes.begin());
    if (n != 0 && !input_->once_in(16)) bytes.back() = 0;
    payload_.put_bytes(bytes.data(), n);
  }

  // ---- CUSTOM and SESSION lines ------------------------------------------------------------------------------------

  void write_recipe(std::string_view recipe) {
    const std::size_t blank = recipe.find(' ');
    for (const char letter : recipe.substr(0, blank)) payload_.put(word(letter));
    if (blank == std::string_view::npos) return;
    const std::string_view rest = recipe.substr(blank + 1);
    if (rest == "name") write_name();
    if (rest == "bytes") write_copied();
    if (rest == "launch") write_launch();
    if (rest == "load") write_load();
  }

  void write_name() {
    constexpr std::string_view names[] = {"fill", "nothing", "fault", "counter", "none"};
    std::string_view name = input_->pick(names);
    if (input_->once_in(32)) {
      long_name_.assign(input_->number<std::uint16_t>(), 'f');
      name = long_name_;
    }
    payload_.put(input_->once_in(16) ? input_->any() : name.size() + 1);
    std::vector<char> text(name.begin(), name.end());
    text.push_back('\0');
    payload_.put_bytes(text.data(), text.size());
  }

  void write_copied() {
    std::uint64_t bytes = 0, arena = 0;
    std::memcpy(&arena, payload_.bytes().data() + 8, 8);
    std::memcpy(&bytes, payload_.bytes().data() + 16, 8);
    if (arena == ring::absent && bytes <= 4096) put_input(bytes);
  }

  void write_launch() {
    constexpr std::uint64_t one = 1;
    const std::uint64_t attributes = input_->once_in(4) ? input_->below(4) : 0;
    const std::uint64_t params = input_->once_in(4) ? small() & 0xffff'ffff : 16;
    for (const std::uint64_t dims : {one | one << 32, one | one << 32, one | one << 32})
      payload_.put(input_->once_in(16) ? input_->any() : dims);
    payload_.put((input_->once_in(16) ? input_->number<std::uint16_t>() : 0) | params << 32);
    payload_.put(attributes);
    for (std::uint64_t i = 0; i < attributes; ++i) {
      payload_.put(input_->below(20));  // its id; the value's 64 bytes follow
      for (int word = 0; word < 8; ++word) payload_.put(input_->number());
    }
    if (params == 16) {
      payload_.put(address());
      payload_.put(input_->number() | std::uint64_t{input_->number()} << 32);
    } else if (params <= 4096) {
      put_input(params);
    }
  }

  void write_load() {
    constexpr std::string_view text = ".version 7.5\n.target sm_75\n.address_size 64\n";
    const std::uint64_t options = input_->once_in(4) ? input_->below(6) : 0,
                        parts = input_->once_in(8) ? 1 + input_->below(3) : 1;
    payload_.put((parts == 1 ? input_->below(3) : 2) | parts << 32);
    payload_.put(options);
    std::vector<std::vector<std::uint8_t>> images(parts);
    for (auto& image : images) {
      image.assign(text.begin(), text.end());
      image.push_back(0);
      if (input_->once_in(4)) write_image(image);
      payload_.put(input_->once_in(16) ? input_->any() : image.size());
    }
    for (std::uint64_t i = 0; i < options; ++i) payload_.put(input_->below(35));
    for (std::uint64_t i = 0; i < options; ++i) payload_.put(input_->any());
    for (const auto& image : images) payload_.put_bytes(image.data(), image.size());
  }

  // Headers of the other forms, with lengths of their own.
  void write_image(std::vector<std::uint8_t>& image) {
    constexpr std::array<std::uint8_t, 4> magics[] = {
        {0xb1, 0x43, 0x62, 0x46}, {0x50, 0xed, 0x55, 0xba}, {0x7f, 'E', 'L', 'F'}, {'.', 'v', 'e', 'r'}};
    const auto bytes = input_->take(input_->below(128));
    image.assign(bytes.begin(), bytes.end());
    const auto& magic = input_->pick(magics);
    image.insert(image.begin(), magic.begin(), magic.end());
  }

  Input* input_ = nullptr;
  const std::uint64_t arena_bytes_;
  Payload payload_;
  std::map<api::Handle, std::vector<std::uint64_t>> ids_;
  std::vector<std::uint64_t> addresses_;
  std::string long_name_;
  std::uint64_t made_ = 0;
  std::uint32_t next_ = 1;
};

}  // namespace fuzz
