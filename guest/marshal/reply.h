// Reads a reply by its field list (ring/api/fields.h). The guest does not trust the worker: it checks each count
// against the rest of the reply before it allocates. After a bad count every further read fails.
#pragma once

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "ring/api/records.h"
#include "ring/wire/shared_reader.h"

namespace guest {

// The part of a reply that follows the reply's struct and has a variable length.
struct Behind {
  std::vector<api::ParameterPlace> layout;
  std::string text;
  std::vector<CUdevResource> resources;
};

template <class Reply>
class RepliedBy {
 public:
  explicit RepliedBy(ring::SharedReader& from) : reply(from.read<Reply>()), in_(from) {
    api::each_field<Reply>([&](const auto& word) {
      if (in_.ok() && !read(word)) in_.fail();
    });
    if (!in_.ok()) behind = {};
  }

  const Reply reply;
  Behind behind;

 private:
  template <class W>
  bool read(const W&) {
    static_assert(!api::follows_reply_v<W>, "nothing reads this word of a reply");
    return true;
  }
  template <class M>
  bool read(const api::field::Layout<M>& w) {
    const std::size_t count = api::member_of(reply, w.count);
    if (count > in_.left() / sizeof(api::ParameterPlace)) return false;
    behind.layout.resize(count);
    if (!in_.copy(behind.layout.data(), count * sizeof(api::ParameterPlace))) return false;
    // Launches write each parameter at its place in this layout. The worker must not make a launch write outside the
    // block.
    const std::uint64_t bytes = api::member_of(reply, w.bytes);
    for (const api::ParameterPlace& p : behind.layout)
      if (p.offset > bytes || p.size > bytes - p.offset) return false;
    return true;
  }
  template <class M>
  bool read(const api::field::Resources<M>& w) {
    const std::size_t count = api::member_of(reply, w.count);
    if (count > in_.left() / sizeof(CUdevResource)) return false;
    behind.resources.resize(count);
    return in_.copy(behind.resources.data(), count * sizeof(CUdevResource));
  }
  template <class M>
  bool read(const api::field::Text<M>& w) {
    const std::size_t bytes = api::member_of(reply, w.length);
    if (bytes == 0 || bytes > in_.left()) return false;
    behind.text.resize(bytes);
    if (!in_.copy(behind.text.data(), bytes)) return false;
    if (std::memchr(behind.text.data(), 0, bytes) != &behind.text.back()) return false;
    behind.text.pop_back();
    return true;
  }

  ring::SharedReader& in_;
};

}  // namespace guest
