// Generates records of CUSTOM and SESSION lines from the list of their fields (ring/api/fields.h), so that the fuzzers
// cover a new record without a change here.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "ring/api/records.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/payload.h"

namespace fuzz {

namespace field = api::field;

// The source of a fuzzer's words: the ids and addresses that it knows, and whether it follows the protocol.
class Choices {
 public:
  virtual ~Choices() = default;

  virtual std::uint64_t id(api::Handle kind) = 0;
  virtual std::uint64_t new_id(api::Handle kind) = 0;
  virtual std::uint64_t stream() = 0;
  virtual std::uint64_t context() = 0;
  virtual std::uint64_t new_context() = 0;
  virtual std::uint64_t address() = 0;
  virtual std::uint64_t number() = 0;
  virtual std::uint64_t pages(bool is_offset) = 0;
  // An offset in the arena, or ring::absent where allowed. `image`: the call expects an image at the offset.
  virtual std::uint64_t place(bool may_be_absent, bool image) = 0;
  // The value that the list demands. A fuzzer that violates rules sometimes returns another value.
  virtual std::uint64_t or_else(std::uint64_t right) = 0;
  virtual std::uint32_t attribute() = 0;
  virtual std::uint64_t jit_option() = 0;
  virtual std::uint32_t parameter_bytes() = 0;
  virtual std::string name() = 0;
  // The images for a fat binary.
  virtual std::vector<std::string> parts() = 0;
  virtual Input& input() = 0;
};

template <class R>
class ByList {
 public:
  ByList(Choices& choices, Payload& to) : c_(choices), to_(to) {}

  void write() {
    to_.put_bytes(&make(), sizeof record_);
    api::each_field<R>([&](const auto& word) { follow(word); });
  }
  // Makes a struct inside a record, such as an attribute's value.
  const R& make() {
    api::each_field<R>([&](const auto& word) { choose(word); });
    api::each_field<R>([&](const auto& word) { keep(word); });
    return record_;
  }

 private:
  template <class M>
  void set(M member, std::uint64_t value) {
    auto& at = api::member_of(record_, member);
    at = static_cast<std::remove_cvref_t<decltype(at)>>(value);
  }
  template <class M>
  std::uint64_t get(M member) const {
    return api::member_of(record_, member);
  }
  std::size_t below(std::size_t end) { return c_.input().below(end); }
  bool once_in(unsigned times) { return c_.input().once_in(times); }

  // ---- the fields --------------------------------------------------------------------------------------------------

  template <class W>
  struct IsMemory : std::false_type {};
  template <class M, class L>
  struct IsMemory<field::Memory<M, L>> : std::true_type {};
  template <class... W>
  static constexpr bool any_memory(const std::tuple<W...>*) {
    return (IsMemory<W>::value || ...);
  }
  using Replied = std::remove_const_t<decltype(api::ReplyOf<R>::Type::fields)>;

  // A call that allocates memory allocates enough for the numbers of other calls.
  template <class M>
  void choose(const field::Number<M>& w) {
    set(w.member, c_.number() + (any_memory(static_cast<const Replied*>(nullptr)) ? 512 : 0));
  }
  template <class M>
  void choose(const field::Between<M>& w) {
    set(w.member, c_.or_else(w.most - below(w.most - w.least + 1)));
  }
  template <class M, class F>
  void choose(const field::AtLeast<M, F>&) {}
  template <class M>
  void choose(const field::Flag<M>& w) {
    set(w.member, c_.or_else(below(2)));
  }
  template <class M>
  void choose(const field::Zero<M>& w) {
    set(w.member, c_.or_else(0));
  }
  template <class M>
  void choose(const field::Bits<M>& w) {
    set(w.member, c_.or_else(c_.number() & w.mask));
  }
  template <class M, class C>
  void choose(const field::OnlyIf<M, C>& w) {
    set(w.member, c_.or_else(get(w.condition) != 0 ? c_.number() : 0));
  }
  template <class M>
  void choose(const field::CreatedContext<M>& w) {
    set(w.member, c_.context());
  }
  template <class M>
  void choose(const field::NewContext<M>& w) {
    set(w.member, c_.new_context());
  }
  template <class M>
  void choose(const field::Ordinal<M>& w) {
    set(w.member, c_.or_else(0));
  }
  template <class M>
  void choose(const field::Pages<M>& w) {
    set(w.member, c_.pages(w.is_offset));
  }
  template <class M>
  void choose(const field::Triple<M>& w) {
    for (auto& n : api::member_of(record_, w.member)) n = static_cast<std::uint32_t>(c_.or_else(1));
  }
  template <class M, class L>
  void choose(const field::Address<M, L>& w) {
    set(w.member, c_.address());
  }
  template <class M, class L>
  void choose(const field::MaybeAddress<M, L>& w) {
    set(w.member, once_in(4) ? 0 : c_.address());
  }
  template <class M>
  void choose(const field::MaybeId<M>& w) {
    set(w.member, below(2) == 0 ? 0 : c_.id(w.kind));
  }
  template <class M>
  void choose(const field::Frees<M>& w) {
    set(w.member, c_.address());
  }
  template <class M, class L>
  void choose(const field::Place<M, L>& w) {
    set(w.member, c_.place(w.otherwise != field::Otherwise::Nowhere, !std::is_member_pointer_v<L>));
  }
  template <class M>
  void choose(const field::Stream<M>& w) {
    set(w.member, c_.stream());
  }
  template <class M>
  void choose(const field::Id<M>& w) {
    const bool either = w.kind == api::Handle::Function && once_in(2);
    set(w.member, c_.id(either ? api::Handle::Kernel : w.kind));
  }
  template <class M>
  void choose(const field::Closes<M>& w) {
    set(w.member, c_.id(w.kind));
  }
  template <class M>
  void choose(const field::Proposed<M>& w) {
    set(w.member, c_.new_id(w.kind));
  }
  template <class M>
  void choose(const field::Text<M>& w) {
    text_ = c_.name();
    set(w.length, c_.or_else(text_.size() + 1));
  }
  template <class M>
  void choose(const field::Parameters<M>& w) {
    set(w.length, c_.parameter_bytes());
  }
  template <class M>
  void choose(const field::Attributes<M>& w) {
    // Keeps a count that another field has set.
    const std::uint64_t chosen = get(w.count);
    attributes_ = chosen != 0 ? std::min<std::uint64_t>(chosen, api::max_launch_attributes) : once_in(4) ? below(4) : 0;
    if (chosen == 0) set(w.count, c_.or_else(attributes_));
  }
  template <class M>
  void choose(const field::Ids<M>& w) {
    set(w.count, c_.or_else(ids_ = below(4)));
  }
  template <class M>
  void choose(const field::PartSizes<M>& w) {
    parts_ = c_.parts();
    set(w.count, c_.or_else(parts_.size()));
  }
  template <class M>
  void choose(const field::JitOptions<M>& w) {
    set(w.count, c_.or_else(options_ = once_in(4) ? below(6) : 0));
  }
  template <class M, class C>
  void choose(const field::Parts<M, C>&) {}

  // ---- fields that depend on others --------------------------------------------------------------------------------

  template <class W>
  void keep(const W&) {}
  template <class M, class F>
  void keep(const field::AtLeast<M, F>& w) {
    set(w.member, c_.or_else(w.least(record_) + below(4)));
  }

  // ---- data after the record ---------------------------------------------------------------------------------------

  template <class W>
  void follow(const W&) {}
  template <class M, class L>
  void follow(const field::Place<M, L>& w) {
    const std::uint64_t bytes = api::length_of(record_, w.length).value_or(0);
    if (w.otherwise == field::Otherwise::InRecord && get(w.member) == ring::absent && bytes <= 4096) put_some(bytes);
  }
  template <class M>
  void follow(const field::Text<M>&) {
    to_.put_bytes(text_.c_str(), text_.size() + 1);
  }
  template <class M>
  void follow(const field::Attributes<M>&) {
    for (std::size_t i = 0; i < attributes_; ++i) put_attribute(c_.attribute());
  }
  template <class M>
  void follow(const field::Ids<M>& w) {
    for (std::size_t i = 0; i < ids_; ++i) to_.put(c_.id(w.kind));
  }
  // Appends parameters of the kernel `fill`, or random bytes.
  template <class M>
  void follow(const field::Parameters<M>& w) {
    const std::uint64_t bytes = get(w.length);
    if (bytes == 16)
      to_.put_words({c_.address(), c_.number() | c_.number() << 32});
    else if (bytes <= 4096)
      put_some(bytes);
  }
  template <class M>
  void follow(const field::PartSizes<M>&) {
    for (const std::string& part : parts_) to_.put(c_.or_else(part.size()));
  }
  template <class M>
  void follow(const field::JitOptions<M>&) {
    for (std::size_t i = 0; i < options_; ++i) to_.put(c_.jit_option());
    for (std::size_t i = 0; i < options_; ++i) to_.put(c_.number());
  }
  template <class M, class C>
  void follow(const field::Parts<M, C>& w) {
    if (get(w.arena) != ring::absent) return;
    for (const std::string& part : parts_) to_.put_bytes(part.data(), part.size());
  }

  // Appends an attribute by its line in the table. The bytes after the value, and all bytes of an unknown tag, are
  // random.
  void put_attribute(std::uint32_t tag) {
    CUlaunchAttribute attribute;
    std::memset(&attribute, static_cast<int>(c_.or_else(0) & 0xff), sizeof attribute);
    std::memcpy(&attribute.id, &tag, sizeof tag);
    api::with_attribute<api::LaunchAttributes>(static_cast<int>(tag), [&](const auto& line) {
      using Value = typename std::remove_cvref_t<decltype(line)>::Value;
      api::put_value(line, attribute, ByList<Value>(c_, to_).make());
    });
    to_.put_bytes(&attribute, sizeof attribute);
  }
  void put_some(std::size_t n) {
    std::vector<std::uint8_t> bytes(n, 'x');
    const auto given = c_.input().take(std::min<std::size_t>(n, 16));
    std::copy(given.begin(), given.end(), bytes.begin());
    to_.put_bytes(bytes.data(), n);
  }

  Choices& c_;
  Payload& to_;
  R record_{};
  std::string text_;
  std::vector<std::string> parts_;
  std::size_t attributes_ = 0, options_ = 0, ids_ = 0;
};

// ---- replies -------------------------------------------------------------------------------------------------------

template <class W>
constexpr bool is_address(const W&) {
  return false;
}
template <class M, class L>
constexpr bool is_address(const field::Memory<M, L>&) {
  return true;
}
template <class M>
constexpr bool is_address(const field::Arena<M>&) {
  return true;
}
// True if a reply begins with an address that the guest may use afterwards.
template <class Reply>
constexpr bool gives_memory() {
  bool gives = false;
  api::each_field<Reply>([&](const auto& word) { gives = gives || is_address(word); });
  return gives;
}

}  // namespace fuzz
