// Sends a CUSTOM call: a call whose guest half is a handwritten function. The function enters the context, checks the
// arguments, writes the record and reads the reply. The call's line in the table and the record's field list decide
// three things: the order with other calls, whether the call waits for its reply, and whether it returns the error of
// an earlier posted call.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "guest/marshal/marshal.h"
#include "ring/api/call.h"
#include "ring/api/known_ids.h"
#include "ring/api/lives.h"

namespace guest {

// Bytes that follow a record, padded to a multiple of 8. The caller owns the bytes.
struct Part {
  const void* at = nullptr;
  std::size_t bytes = 0;
};

// What the table says about a CUSTOM call.
struct CustomLine {
  api::Way way = api::Way::Waited;
  api::Order order = api::Order::Own;
  // Set for a call that creates or destroys an object. Such a call returns its own result, and the error of an earlier
  // call waits for the next call. Otherwise the guest would not learn that the host has created or destroyed the
  // object.
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

// Finds the call's context from the call's line and from the passed handles, or returns the error.
template <int Id, class... Handles>
CUresult enter_call(Context*& context, Handles... named) {
  if constexpr (api::Call<Id>::manner.contextless) return enter_without_context(context);
  return enter(context, {static_cast<const void*>(named)...});
}

struct Crossing {
  int call;                           // the number of a CUSTOM line
  Context& context;                   // the context in which the worker makes the call
  const StreamRef* stream = nullptr;  // null if the call is on no stream
  // Posted or Waited instead of the line's choice: for a posted call whose result is needed now, or for a fragment of a
  // waited call.
  std::optional<api::Way> way = {};
  bool known_accepted = false;  // the worker accepts the call, so open captures do not force a wait
};

// Sends the call with `payload` bytes, which `write` fills; guest/session/send.h describes `read`. The stream remembers
// the call even after the reply, since the GPU may still work on the call. Preconditions: the caller holds no channel's
// lock.
template <class Write, class Read>
Sent cross(const Crossing& c, std::size_t payload, Write write, Read read) {
  const CustomLine& line = custom_lines[static_cast<std::size_t>(c.call)];
  Channel& channel = this_channel();
  const bool ordered = follows_all(line.order, c.stream != nullptr)
                           ? wait_for_all(channel)
                           : c.stream == nullptr || wait_for_stream(*c.stream, channel);
  if (!ordered) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  const Captures& captures = session()->graphs.captures;
  const bool is_judged = captures.any() && !(c.known_accepted && captures.accept_launches());
  const api::Way way = is_judged ? api::Way::Waited : c.way.value_or(line.way);
  Sending how = sending(c.call, way, c.context, payload, line.changes_lives ? Earlier::Left : Earlier::Returned);
  if (line.way == api::Way::Posted) how.before = Earlier::Returned;
  const Sent sent = send(channel, how, write, read);
  note_answer(sent.result);
  if (c.stream != nullptr && sent.use.position != 0) remember(*c.stream->object, sent.use);
  return sent;
}

// A record, and the parts that follow the record.
template <class Record>
struct WithParts {
  const Record& record;
  std::span<const Part> parts;

  std::size_t bytes() const {
    std::size_t all = ring::padded(sizeof record);
    for (const Part& part : parts) all += part.bytes > ring::max_record ? ring::max_record : ring::padded(part.bytes);
    return all;
  }
  void operator()(ring::Writer& w) const {
    w.bytes(&record, sizeof record);
    for (const Part& part : parts) w.bytes(part.at, part.bytes);
  }
};

template <class Record, class Read>
Sent cross(const Crossing& c, const Record& record, std::span<const Part> parts, Read read) {
  const WithParts<Record> all{record, parts};
  return cross(c, all.bytes(), all, read);
}

template <class Record>
Sent cross(const Crossing& c, const Record& record, std::span<const Part> parts = {}) {
  return cross(c, record, parts, read_nothing);
}

// Sends a record of a SESSION line, which no program calls, and waits for its reply. The caller has waited for the
// calls that this record must not overtake. Preconditions: the caller holds no channel's lock.
template <class Record, class Read = decltype(read_nothing)>
Sent send_own(int call, const Context& context, const Record& record, Read read = read_nothing,
              std::span<const Part> parts = {}) {
  const WithParts<Record> all{record, parts};
  const Sending how{.call = call, .flags = record_flags(context, true), .payload = all.bytes()};
  return send(this_channel(), how, all, read);
}

}  // namespace guest
