// A decoded request: the record of a CUSTOM or SESSION line, read by the list of its fields (ring/api/fields.h). The
// steps `take`, `check`, `commit` and `answer` of request.h are the same for all these records.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "host/untrusted/marshal/decoded_attributes.h"
#include "host/untrusted/marshal/field_validators.h"
#include "host/untrusted/marshal/request.h"
#include "ring/api/records.h"

namespace host {

// The fields of a record that describe an image.
struct DecodedImage {
  const std::byte* sizes = nullptr;  // 64 bits for each part; this memory is still in the record
  const std::byte* options = nullptr;
  const std::byte* values = nullptr;
  std::uint64_t bytes = 0;  // size of all parts, each padded
  ring::SharedBytes arena;  // the parts' bytes in the arena, if they are there
  const std::byte* in_record = nullptr;
};

template <class R>
class DecodedRequest : public FieldValidators<R> {
 public:
  using Reply = typename api::ReplyOf<R>::Type;

  using FieldValidators<R>::record, FieldValidators<R>::session;

  explicit DecodedRequest(Request& r) : FieldValidators<R>(r.session, r.in.read<R>()), request(r) {}

  // Returns false if no correct guest sends this record.
  bool take() {
    sound_ = request.in.ok();
    api::each_field_at<R>([&](std::size_t i, const auto& word) {
      if (sound_) sound_ = take(i, word);
    });
    return sound_ && request.complete();
  }

  // Returns the error of the first field that refers to an object or memory that the session does not have.
  CUresult check() {
    CUresult refused = CUDA_SUCCESS;
    api::each_field_at<R>([&](std::size_t i, const auto& word) {
      if (refused == CUDA_SUCCESS) refused = check(i, word);
    });
    return refused;
  }

  // Forgets everything that the call has ended.
  void commit() {
    api::each_field<R>([&](const auto& word) { commit(word); });
  }
  // Must be called after the driver's free.
  void end_freed(CUresult result) {
    if (freed_) session().asked_to_free(*freed_, result);
  }
  // Adds the handle that the call has made under the proposed id. Returns false if the protocol is broken: no correct
  // guest proposes an id that is in use.
  bool put(void* handle) {
    const Proposal p = proposal();
    session().memory.charges.keep(p.id, std::move(request.charge));
    return session().objects.put(p.id, p.kind, handle, request.place(p.kind, owner()));
  }
  // Adds a handle that the driver may have returned before. Returns the handle's id, or 0 where put() returns false.
  std::uint64_t put_once(void* handle) {
    const Proposal p = proposal();
    return session().objects.put_once(p.id, p.kind, handle, request.place(p.kind, owner()));
  }

  // Returns the driver's result, and writes the reply on success. `runs` are the byte runs of the reply's list, in the
  // list's order; their lengths set the reply's counts.
  template <class... Run>
  CUresult answer(CUresult result, Reply reply, const Run&... runs) {
    if (result != CUDA_SUCCESS) return result;
    const std::array<std::span<const std::byte>, sizeof...(Run)> all{std::as_bytes(std::span(runs))...};
    static_assert(api::runs_behind<Reply> == sizeof...(Run), "the reply's list says another number of runs");
    std::size_t run = 0;
    api::each_field<Reply>([&](const auto& word) {
      if constexpr (api::follows_reply_v<std::remove_cvref_t<decltype(word)>>) count(reply, word, all[run++].size());
    });
    api::each_field<Reply>([&](const auto& word) { answer(reply, word); });
    request.out.bytes(&reply, sizeof reply);
    for (const auto& bytes : all) request.out.bytes(bytes.data(), bytes.size());
    return CUDA_SUCCESS;
  }

  // Returns the driver's handle for an id or a stream of the record.
  template <class T, class M>
  T handle(M member) const {
    return static_cast<T>(const_cast<void*>(found(member)));
  }
  // Returns the data after the record whose length or count this member contains.
  template <class M>
  const std::byte* behind(M length) const {
    return static_cast<const std::byte*>(found(length));
  }
  // Returns the name after the record, or a name that bring_name has sent before. The name ends with a NUL.
  std::string_view text() const { return text_; }
  // Returns the host's side of a copy, which is in the arena, in the record or in the reply.
  ring::SharedBytes arena() const { return arena_; }
  std::byte* inline_bytes() const { return inline_bytes_; }
  const DecodedImage& image() const { return image_; }
  // Returns a launch's attributes, in the form that the driver accepts.
  const CUlaunchAttribute* attributes() const { return attributes_.get(); }

  const Driver& driver() const { return request.session.driver; }

  Request& request;

 private:
  using FieldValidators<R>::take, FieldValidators<R>::check, FieldValidators<R>::value, FieldValidators<R>::found_,
      FieldValidators<R>::freed_;

  struct Proposal {
    std::uint64_t id = 0;
    api::Handle kind = api::Handle::None;
  };

  // ---- take --------------------------------------------------------------------------------------------------------

  template <class M, class L>
  bool take(std::size_t, const field::Place<M, L>& w) {
    const std::uint64_t bytes = *api::length_of(record, w.length);
    if (value(w.member) != ring::absent) {
      arena_ = session().arena.bytes_at(value(w.member), bytes);
      return arena_.there();
    }
    if (w.otherwise == field::Otherwise::InRecord) inline_bytes_ = const_cast<std::byte*>(request.in.take(bytes));
    if (w.otherwise == field::Otherwise::InReply) inline_bytes_ = request.out.reserve(bytes);
    if (w.otherwise == field::Otherwise::InReply && inline_bytes_ != nullptr) std::memset(inline_bytes_, 0, bytes);
    return inline_bytes_ != nullptr;
  }
  template <class M>
  bool take(std::size_t, const field::Text<M>& w) {
    const std::uint64_t bytes = value(w.length);
    if (bytes == 0) return take_brought_name();
    const auto* at = reinterpret_cast<const char*>(request.in.take(bytes));
    if (at == nullptr || std::memchr(at, 0, bytes) != at + bytes - 1) return false;
    text_ = {at, bytes - 1};
    return true;
  }
  bool take_brought_name() {
    if (request.brought_name != nullptr) brought_name_ = std::exchange(*request.brought_name, {});
    text_ = brought_name_;
    return !text_.empty();
  }
  // Handles overwrite the ids in place, since the record is private.
  template <class M>
  bool take(std::size_t i, const field::Ids<M>& w) {
    const std::uint64_t count = value(w.count);
    return count <= ring::max_record && (found_[i] = request.in.take(count * sizeof(std::uint64_t))) != nullptr;
  }
  template <class M>
  bool take(std::size_t i, const field::Parameters<M>& w) {
    return (found_[i] = request.in.take(value(w.length))) != nullptr;
  }
  template <class M>
  bool take(std::size_t, const field::Attributes<M>& w) {
    const std::uint64_t count = value(w.count);
    if (count == 0) return true;
    if (count > api::max_launch_attributes) return false;
    const std::byte* at = request.in.take(count * sizeof(CUlaunchAttribute));
    return at != nullptr && attributes_.take(session(), at, count);
  }
  template <class M>
  bool take(std::size_t, const field::PartSizes<M>& w) {
    return (image_.sizes = request.in.take(value(w.count) * sizeof(std::uint64_t))) != nullptr;
  }
  template <class M>
  bool take(std::size_t, const field::JitOptions<M>& w) {
    const std::uint64_t count = value(w.count);
    image_.options = request.in.take(count * sizeof(std::uint64_t));
    image_.values = request.in.take(count * sizeof(std::uint64_t));
    for (std::uint64_t k = 0; image_.values != nullptr && k < count; ++k)
      if (!api::crosses_boundary(static_cast<CUjit_option>(word_at(image_.options, k)))) return false;
    return image_.values != nullptr;
  }
  template <class M, class C>
  bool take(std::size_t, const field::Parts<M, C>& w) {
    for (std::uint64_t k = 0; k < value(w.count); ++k) {
      const std::uint64_t size = word_at(image_.sizes, k);
      if (size == 0 || size > api::max_image_bytes - image_.bytes) return false;
      image_.bytes += ring::padded(size);
    }
    if (value(w.arena) == ring::absent) return (image_.in_record = request.in.take(image_.bytes)) != nullptr;
    image_.arena = session().arena.bytes_at(value(w.arena), image_.bytes);
    return image_.arena.there();
  }
  static std::uint64_t word_at(const std::byte* words, std::uint64_t k) {
    std::uint64_t word = 0;
    std::memcpy(&word, words + k * sizeof word, sizeof word);
    return word;
  }

  template <class M>
  CUresult check(std::size_t i, const field::Ids<M>& w) {
    auto* const at = static_cast<std::byte*>(const_cast<void*>(found_[i]));
    for (std::uint64_t k = 0; k < value(w.count); ++k) {
      void* const handle = session().objects.find(word_at(at, k), w.kind);
      if (handle == nullptr) return api::kind_of(w.kind).unknown;
      std::memcpy(at + k * sizeof handle, &handle, sizeof handle);
    }
    return CUDA_SUCCESS;
  }
  template <class M>
  CUresult check(std::size_t, const field::Attributes<M>&) {
    return attributes_.check(session());
  }

  // ---- commit and answer -------------------------------------------------------------------------------------------

  template <class W>
  void commit(const W&) {}
  template <class M>
  void commit(const field::Closes<M>& w) {
    session().forget(session().objects.drop_with_owned(value(w.member)));
  }
  template <class W>
  static void count(Reply& reply, const W& w, std::size_t bytes) {
    auto& reported = api::member_of(reply, w.length);
    reported = static_cast<std::remove_cvref_t<decltype(reported)>>(bytes);
  }
  template <class M>
  static void count(Reply& reply, const field::Layout<M>& w, std::size_t bytes) {
    api::member_of(reply, w.count) = static_cast<std::uint32_t>(bytes / sizeof(api::ParameterPlace));
  }
  template <class M>
  static void count(Reply& reply, const field::Resources<M>& w, std::size_t bytes) {
    api::member_of(reply, w.count) = static_cast<std::uint32_t>(bytes / sizeof(CUdevResource));
  }
  template <class W>
  void answer(const Reply&, const W&) {}
  template <class M, class L>
  void answer(const Reply& reply, const field::Memory<M, L>& w) {
    session().memory.addresses.add({.start = api::member_of(reply, w.member),
                                    .bytes = *api::length_of(reply, w.length),
                                    .owner = owner(),
                                    .context = request.context_of_memory(owner()),
                                    .device = request.charge.device(),
                                    .charged = request.charge.hand_over()});
  }

  // ---- the list's contents -----------------------------------------------------------------------------------------

  template <class W>
  static void see_proposal(const DecodedRequest&, const W&, Proposal&) {}
  template <class M>
  static void see_proposal(const DecodedRequest& decoded, const field::Proposed<M>& w, Proposal& p) {
    p = {decoded.value(w.member), w.kind};
  }
  Proposal proposal() const {
    Proposal p;
    api::each_field<R>([&](const auto& word) { see_proposal(*this, word, p); });
    return p;
  }
  template <class W>
  static void see_owner(const DecodedRequest&, const W&, std::uint64_t&) {}
  template <class M>
  static void see_owner(const DecodedRequest& decoded, const field::Id<M>& w, std::uint64_t& id) {
    if (id == 0) id = decoded.value(w.member);
  }
  std::uint64_t owner() const {
    std::uint64_t id = 0;
    api::each_field<R>([&](const auto& word) { see_owner(*this, word, id); });
    return id;
  }

  // Finds a field by the first member that it describes.
  template <class W, class M>
  static constexpr bool names(const W&, M) {
    return false;
  }
  template <template <class> class W, class M>
  static constexpr bool names(const W<M>& word, M member) {
    if constexpr (requires { word.member; })
      return word.member == member;
    else if constexpr (requires { word.length; })
      return word.length == member;
    else
      return word.count == member;
  }
  template <class M>
  const void* found(M member) const {
    const void* at = nullptr;
    api::each_field_at<R>([&](std::size_t i, const auto& word) {
      if (at == nullptr && names(word, member)) at = found_[i];
    });
    return at;
  }

  bool sound_ = false;
  std::string brought_name_;
  std::string_view text_;
  ring::SharedBytes arena_;
  std::byte* inline_bytes_ = nullptr;
  DecodedImage image_;
  DecodedAttributes<> attributes_;
};

}  // namespace host
