#include "guest/objects/copy/shared_copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "guest/objects/copy/raw.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace guest {
namespace {

constexpr std::size_t piece_bytes = 1 << 20;
constexpr std::size_t worth_a_helper = 4 << 20;

}  // namespace

SharedCopy::SharedCopy(void* to, const void* from, std::size_t bytes, unsigned helpers)
    : to_(static_cast<std::byte*>(to)), from_(static_cast<const std::byte*>(from)), bytes_(bytes) {
  if (bytes < worth_a_helper) return;
  for (unsigned i = 0; i < std::min(helpers, most_helpers); ++i) {
    if (pthread_create(&threads_[helpers_], nullptr, help, this) != 0) break;
    ++helpers_;
  }
  while (ready_.load() != helpers_) raw(SYS_sched_yield);
}

SharedCopy::~SharedCopy() {
  step_.store(Step::End);
  round_.fetch_add(1);
  for (unsigned i = 0; i < helpers_; ++i) pthread_join(threads_[i], nullptr);
}

bool SharedCopy::make_pages() {
  do_all(Step::MakePages);
  return !no_pages_.load();
}

void SharedCopy::run() { do_all(Step::Copy); }

void SharedCopy::do_all(Step step) {
  next_.store(0);
  finished_.store(0);
  step_.store(step);
  round_.fetch_add(1);
  do_pieces(step);
  while (finished_.load() != helpers_) raw(SYS_sched_yield);
}

void* SharedCopy::help(void* self) {
  auto& copy = *static_cast<SharedCopy*>(self);
  copy.ready_.fetch_add(1);
  for (unsigned round = 0;;) {
    while (copy.round_.load() == round) raw(SYS_sched_yield);
    ++round;
    const Step step = copy.step_.load();
    if (step == Step::End) return nullptr;
    copy.do_pieces(step);
    copy.finished_.fetch_add(1);
  }
}

void SharedCopy::do_pieces(Step step) {
  for (;;) {
    const std::size_t start = next_.fetch_add(piece_bytes);
    if (start >= bytes_) return;
    const std::size_t bytes = std::min(piece_bytes, bytes_ - start);
    if (step == Step::Copy)
      raw_copy(to_ + start, from_ + start, bytes);
    else if (raw(SYS_madvise, word(to_ + start), bytes, MADV_POPULATE_WRITE) == -ENOMEM)
      no_pages_.store(true);
  }
}

}  // namespace guest
