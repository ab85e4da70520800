#include "guest/objects/memory/occupied.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "guest/base/uncancelled.h"
#include "guest/objects/copy/own_proc.h"
#include "ring/api/records.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

constexpr std::uint64_t chunk = std::uint64_t{32} << 20;  // the driver reserves addresses in units of this size

// Reads a list of mappings in ascending order, whose lines begin with "start-end ".
class Lines {
 public:
  explicit Lines(int file) : file_(file) {}

  std::optional<Stretch> next() {
    Stretch e{};
    if (!number(e.start, '-') || !number(e.end, ' ')) return std::nullopt;
    for (int c = get(); c != '\n' && c >= 0; c = get()) {
    }
    return e;
  }

 private:
  int get() {
    if (at_ == length_) {
      const ssize_t n = read(file_, bytes_.data(), bytes_.size());
      if (n <= 0) return -1;
      at_ = 0, length_ = static_cast<std::size_t>(n);
    }
    return static_cast<unsigned char>(bytes_[at_++]);
  }
  // Reads a hexadecimal number and the character after the number.
  bool number(std::uint64_t& into, char end) {
    constexpr std::string_view digits = "0123456789abcdef";
    into = 0;
    for (;;) {
      const int c = get();
      if (c == end) return true;
      const std::size_t digit = c < 0 ? digits.npos : digits.find(static_cast<char>(c));
      if (digit == digits.npos) return false;
      into = into << 4 | digit;
    }
  }

  const int file_;
  std::array<char, 4096> bytes_;
  std::size_t at_ = 0, length_ = 0;
};

bool overlap(const Stretch& a, const Stretch& b) { return a.start < b.end && b.start < a.end; }

// Rounds `run` to whole huge pages, and cuts the result to a record's limit around the start of `what`.
Stretch fit_for_a_record(Stretch run, const Stretch& what) {
  constexpr std::uint64_t half = api::max_excluded_range / 2;
  run.start = std::max(run.start / ring::huge_page * ring::huge_page, std::uint64_t{ring::huge_page});
  run.end = std::min((run.end + ring::huge_page - 1) / ring::huge_page * ring::huge_page, api::end_of_addresses);
  const std::uint64_t middle = std::max(what.start / ring::huge_page * ring::huge_page, run.start);
  if (middle - run.start > half) run.start = middle - half;
  run.end = std::min(run.end, run.start + api::max_excluded_range);
  return run;
}

}  // namespace

Stretch mappings_around(int maps, Stretch what) {
  Lines lines(maps);
  Stretch run{};
  while (const auto next = lines.next()) {
    const bool beside = next->start - run.end < chunk || (overlap(run, what) && next->start < what.end);
    if (run.end != 0 && beside) {
      run.end = next->end;
    } else if (overlap(run, what)) {
      return run;
    } else {
      run = *next;
    }
  }
  return overlap(run, what) ? run : Stretch{};
}

std::optional<Stretch> Occupied::around(std::uint64_t start, std::uint64_t bytes) {
  const Stretch what{start, start + bytes};
  const ring::MutexLock lock(mutex_);
  if (reported_.size() == api::max_excluded_ranges) return std::nullopt;
  if (is_reported(what)) return std::nullopt;
  const Uncancelled here;
  const int maps = own_proc().open_file("maps", O_RDONLY);
  if (maps < 0) return std::nullopt;
  const Stretch run = mappings_around(maps, what);
  close(maps);
  if (run.end == 0) return std::nullopt;
  const Stretch fit = fit_for_a_record(run, what);
  if (is_reported(fit)) return std::nullopt;
  return reported_.emplace_back(fit);
}

bool Occupied::is_reported(const Stretch& what) const {
  return std::any_of(reported_.begin(), reported_.end(),
                     [&](const Stretch& reported) { return reported.start <= what.start && what.end <= reported.end; });
}

}  // namespace guest
