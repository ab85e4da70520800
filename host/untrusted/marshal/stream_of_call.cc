#include "host/untrusted/marshal/stream_of_call.h"

#include <array>
#include <cstring>

#include "ring/api/call.h"

namespace host {
namespace {

constexpr std::size_t none = ~std::size_t{0};

// For a CALL line, whose record has a slot for each parameter.
template <class Shape>
struct Slots;
template <class... P, api::Arg... A>
struct Slots<api::Shape<CUresult(P...), A...>> {
  static consteval std::size_t of_stream() {
    std::size_t found = none, at = 0;
    [[maybe_unused]] const auto look = [&](bool is_stream) {
      if (is_stream && found == none) found = at;
      at += sizeof(std::uint64_t);
    };
    (look(A.dir == api::Dir::Value && api::kind_of_param<P, A> == api::Handle::Stream), ...);
    return found;
  }
};

// For a CUSTOM line, whose record has a list of its fields.
template <class R, class Word>
void look(const R&, const Word&, std::size_t&) {}
template <class R, class M>
void look(const R& record, const api::field::Stream<M>& word, std::size_t& found) {
  const auto* at = reinterpret_cast<const std::byte*>(&api::member_of(record, word.member));
  if (found == none) found = static_cast<std::size_t>(at - reinterpret_cast<const std::byte*>(&record));
}
template <class R>
std::size_t stream_in() {
  std::size_t found = none;
  const R record{};
  api::each_field<R>([&](const auto& word) { look(record, word, found); });
  return found;
}

std::array<std::size_t, api::driver_ids> find_streams() {
  std::array<std::size_t, api::driver_ids> all{};
  all.fill(none);
#define CALL(id, ...) all[id] = Slots<typename api::Call<id>::Shape>::of_stream();
#define CUSTOM(id, ...) all[id] = stream_in<typename api::Call<id>::Record>();
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
  return all;
}

}  // namespace

std::uint64_t stream_of_call(std::uint16_t call, std::span<const std::byte> payload) {
  static const auto places = find_streams();
  const std::size_t at = call < places.size() ? places[call] : none;
  std::uint64_t id = 0;
  if (at == none || payload.size() < at + sizeof id) return 0;
  std::memcpy(&id, payload.data() + at, sizeof id);
  return id;
}

}  // namespace host
