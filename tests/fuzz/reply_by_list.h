// Generates a hostile worker's replies from their lists (ring/api/fields.h): valid replies, or replies with wrong
// counts, with offsets outside the block, and with text that is unterminated or too short.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "ring/api/id.h"
#include "ring/api/records.h"
#include "ring/wire/record.h"
#include "tests/fuzz/input.h"

namespace fuzz {

template <class Reply>
class ReplyByList {
 public:
  // `proposed`: the id that the guest has proposed, if the reply contains the new object's id. 0: the worker chooses
  // the id.
  ReplyByList(Input& in, std::uint64_t proposed) : in_(in), proposed_(proposed), sane_(!in.once_in(4)) {}

  void write(ring::Writer& w) {
    for (std::size_t i = 0; i < sizeof reply_ / 4; ++i) {  // bytes that belong to no field
      const auto some = static_cast<std::uint32_t>(in_.once_in(4) ? in_.any() : 1024);
      std::memcpy(reinterpret_cast<std::byte*>(&reply_) + i * 4, &some, sizeof some);
    }
    api::each_field<Reply>([&](const auto& word) { choose(word); });
    w.bytes(&reply_, sizeof reply_);
    api::each_field<Reply>([&](const auto& word) { follow(w, word); });
  }

 private:
  static constexpr std::string_view text{"kernel", 7};

  template <class M>
  void set(M member, std::uint64_t value) {
    auto& at = api::member_of(reply_, member);
    at = static_cast<std::remove_cvref_t<decltype(at)>>(value);
  }
  std::uint64_t or_any(std::uint64_t right) { return sane_ ? right : in_.any(); }
  // An id as a worker may choose it; 0 means that the object does not exist.
  std::uint64_t chosen(api::Handle kind) {
    const auto which = static_cast<std::uint32_t>(in_.below(5));
    return which == 0 ? 0 : api::Id{kind, api::Id::first_of_worker + which, 0}.value();
  }

  template <class W>
  void choose(const W& w) {
    set(w.member, in_.any());
  }
  template <class M>
  void choose(const api::field::Made<M>& w) {
    set(w.member, or_any(proposed_ != 0 ? proposed_ : chosen(w.kind)));
  }
  template <class M>
  void choose(const api::field::Triple<M>& w) {
    for (auto& n : api::member_of(reply_, w.member)) n = static_cast<std::uint32_t>(or_any(1));
  }
  template <class M>
  void choose(const api::field::Layout<M>& w) {
    set(w.count, or_any(in_.below(4)));
    set(w.bytes, or_any(64));
  }
  template <class M>
  void choose(const api::field::Resources<M>& w) {
    set(w.count, or_any(in_.below(4)));
  }
  template <class M>
  void choose(const api::field::Words<M>& w) {
    set(w.length, or_any(8 * in_.below(6)));
  }
  template <class M>
  void choose(const api::field::Text<M>& w) {
    set(w.length, or_any(text.size()));
  }

  template <class W>
  void follow(ring::Writer&, const W&) {}
  template <class M>
  void follow(ring::Writer& w, const api::field::Layout<M>& word) {
    const std::uint64_t count = std::min<std::uint64_t>(api::member_of(reply_, word.count), 8);
    for (std::uint64_t i = 0; i < count; ++i) w.slot(or_any(i * 8 | 8ULL << 32));
  }
  template <class M>
  void follow(ring::Writer& w, const api::field::Resources<M>& word) {
    const std::uint64_t count = std::min<std::uint64_t>(api::member_of(reply_, word.count), 8);
    for (std::uint64_t i = 0; i < count * sizeof(CUdevResource) / sizeof(std::uint64_t); ++i) w.slot(in_.any());
  }
  template <class M>
  void follow(ring::Writer& w, const api::field::Words<M>& word) {
    const std::uint64_t bytes = std::min<std::uint64_t>(api::member_of(reply_, word.length), 64);
    for (std::uint64_t i = 0; i < bytes / 8; ++i) w.slot(in_.once_in(2) ? chosen(api::Handle::GraphNode) : in_.any());
  }
  template <class M>
  void follow(ring::Writer& w, const api::field::Text<M>&) {
    char bytes[text.size()];
    std::copy(text.begin(), text.end(), bytes);
    if (!sane_) bytes[in_.below(sizeof bytes)] = static_cast<char>(in_.any());
    w.bytes(bytes, sizeof bytes);
  }

  Input& in_;
  const std::uint64_t proposed_;
  const bool sane_;
  Reply reply_{};
};

}  // namespace fuzz
