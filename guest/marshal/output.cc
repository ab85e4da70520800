#include "guest/marshal/output.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string_view>

#include "guest/base/log.h"
#include "guest/base/uncancelled.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest {
namespace {

// Reads a length, and text of this length, into `room`. If the text does not fit, returns empty text and marks the
// reader as failed.
std::span<char> take_text(ring::SharedReader& r, std::span<char> room) {
  const std::uint64_t length = r.slot();
  if (length <= room.size() && r.copy(room.data(), length)) return room.first(length);
  r.fail();
  return {};
}

// The program chooses the kernel names in this text. Control characters become '?', so that no name can steer a
// terminal.
void log_lines(std::span<char> text) {
  const auto steers = [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; };
  std::replace_if(text.begin(), text.end(), steers, '?');
  for (std::string_view rest(text.data(), text.size()); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (!line.empty()) log(Level::Error, "simulated GPU: %.*s", static_cast<int>(line.size()), line.data());
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

}  // namespace

void print_output() {
  if (ready() != CUDA_SUCCESS || !session()->liveness().usable()) return;
  const Uncancelled here;
  for (std::size_t length = 1; length != 0;) {
    length = 0;
    const api::TakeOutputRecord record{.room = api::max_output};
    const auto read = [&](CUresult result, ring::SharedReader& r) {
      if (result != CUDA_SUCCESS) return;
      std::array<char, api::max_output> room;
      const std::span<char> text = take_text(r, room);
      length = text.size();
      std::fwrite(text.data(), 1, length, stdout);
      if (r.ok() && r.left() != 0) log_lines(take_text(r, std::span(room).first(api::max_diagnosis)));
    };
    send_own(api::id_of::take_output, primary(0), record, read);
  }
}

}  // namespace guest
