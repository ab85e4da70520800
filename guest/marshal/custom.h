// How a CUSTOM call crosses. Its function enters, checks, and says what to write and how to read the reply. Its line of
// the table and its record's list say the rest: what it must not overtake, whether it waits for its reply, and what an
// earlier posted call's error is to it.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "guest/marshal/marshal.h"
#include "ring/api/call.h"
#include "ring/api/known_ids.h"
#include "ring/api/lives.h"

namespace guest {

// What follows a record, padded to 8.
struct Part {
  const void* at = nullptr;
  std::size_t bytes = 0;
};

// What the table says of a CUSTOM call.
struct CustomLine {
  api::Way way = api::Way::Waited;
  api::Order order = api::Order::Own;
  // It makes or ends something. Then its reply is its answer whatever came before: else something would live on the
  // host, or be gone there, that the guest does not know of.
  bool changes_lives = false;
};

template <int Id>
constexpr CustomLine custom_line() {
  using C = api::Call<Id>;
  constexpr bool ends = C::manner.order == api::Order::All;
  return {C::way, C::manner.order, ends || api::lives_of<typename C::Record>().makes};
}

inline constexpr auto custom_lines = [] {
  std::array<CustomLine, api::known_ids.driver + 1> lines{};
#define CUSTOM(id, fn, ...) lines[id] = custom_line<id>();
#define CALL(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
  return lines;
}();

// Finds the context in which the call is made, or the error to return: by its line, and by the handles that it names.
template <int Id, class... Handles>
CUresult enter_call(Context*& context, Handles... named) {
  if constexpr (api::Call<Id>::manner.contextless) return enter_without_context(context);
  return enter(context, {static_cast<const void*>(named)...});
}

struct Crossing {
  int call;                           // of a CUSTOM line
  Context& context;                   // in which the worker makes it
  const StreamRef* stream = nullptr;  // on which it is; null: on none
  // Another way than the line's: a posted call whose answer is needed now, or a piece of a waited one.
  std::optional<api::Way> way = {};
};

// Sends the call: `payload` bytes, which `write` fills; `read` as in guest/session/send.h. Its stream remembers it, also
// where the reply has come: what the call gave to the GPU may be under way.
template <class Write, class Read>
Sent cross(const Crossing& c, std::size_t payload, Write write, Read read) {
  const CustomLine& line = custom_lines[static_cast<std::size_t>(c.call)];
  Channel& channel = this_channel();
  const bool ordered = line.order == api::Order::All ? wait_for_all(channel)
                                                     : c.stream == nullptr || wait_for_stream(*c.stream, channel);
  if (!ordered) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  const api::Way way = c.way.value_or(line.way);
  Sending how = sending(c.call, way, c.context, payload, line.changes_lives ? Earlier::Left : Earlier::Told);
  if (line.way == api::Way::Posted) how.before = Earlier::Told;
  const Sent sent = send(channel, how, write, read);
  if (c.stream != nullptr && sent.use.position != 0) remember(*c.stream->object, sent.use);
  return sent;
}

// The same with a record and the parts after it.
template <class Record, class Read>
Sent cross(const Crossing& c, const Record& record, std::span<const Part> parts, Read read) {
  std::size_t payload = ring::padded(sizeof record);
  for (const Part& part : parts) payload += part.bytes > ring::max_record ? ring::max_record : ring::padded(part.bytes);
  const auto write = [&](ring::Writer& w) {
    w.bytes(&record, sizeof record);
    for (const Part& part : parts) w.bytes(part.at, part.bytes);
  };
  return cross(c, payload, write, read);
}

template <class Record>
Sent cross(const Crossing& c, const Record& record, std::span<const Part> parts = {}) {
  return cross(c, record, parts, read_nothing);
}

}  // namespace guest
