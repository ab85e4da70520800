#include "guest/objects/memory/page_swap.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "guest/base/uncancelled.h"
#include "guest/objects/copy/own_proc.h"
#include "guest/objects/copy/raw.h"
#include "guest/objects/copy/shared_copy.h"
#include "ring/abi/descriptor.h"
#include "ring/layout/layout.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace guest {
namespace {

bool raw_replace(std::byte* at, std::size_t bytes, const std::byte* by) {
  return raw(SYS_mremap, word(by), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, word(at)) ==
         static_cast<long>(word(at));
}

long raw_ioctl(int fd, unsigned long request, void* argument) {
  return raw(SYS_ioctl, static_cast<unsigned long>(fd), request, word(argument));
}

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// A userfaultfd. Closing it wakes every thread that sleeps at a page fault.
class Faults {
 public:
  explicit Faults(std::uint64_t features)
      : fd_(cuabi::above_standard(
            static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)))) {
    uffdio_api api{.api = UFFD_API, .features = features, .ioctls = 0};
    if (fd_ >= 0 && ioctl(fd_, UFFDIO_API, &api) == 0) return;
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  ~Faults() {
    if (fd_ >= 0) raw(SYS_close, static_cast<unsigned long>(fd_));
  }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  bool there() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool watch(const std::byte* at, std::size_t bytes, std::uint64_t mode) const {
    uffdio_register watched{.range = {word(at), bytes}, .mode = mode, .ioctls = 0};
    return ioctl(fd_, UFFDIO_REGISTER, &watched) == 0;
  }
  bool protect(const std::byte* at, std::size_t bytes, bool on) const {
    uffdio_writeprotect range{.range = {word(at), bytes}, .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0UL};
    return raw_ioctl(fd_, UFFDIO_WRITEPROTECT, &range) == 0;
  }
  // Wakes threads that sleep at a page of the range. These threads then fault again.
  void wake(const std::byte* at, std::size_t bytes) const {
    uffdio_range range{word(at), bytes};
    raw_ioctl(fd_, UFFDIO_WAKE, &range);
  }
  // Fills missing pages. Returns false if the kernel has no page left. Ranges that the program has unmapped meanwhile
  // need no pages.
  bool fill(const std::byte* at, std::size_t bytes, const std::byte* from) const {
    std::size_t done = 0;
    while (done < bytes) {
      uffdio_copy copy{.dst = word(at) + done, .src = word(from) + done, .len = bytes - done, .mode = 0, .copy = 0};
      const long result = raw_ioctl(fd_, UFFDIO_COPY, &copy);
      if (copy.copy > 0) done += static_cast<std::size_t>(copy.copy);
      if (result == 0 || result == -EAGAIN) continue;  // EAGAIN: MoveReader has not read the event yet
      if (copy.copy <= 0 && result == -EEXIST) done += ring::page;
      if (result == -ENOMEM) return false;
      if (result != -EEXIST) return true;
    }
    return true;
  }

 private:
  int fd_;
};

// Moving watched pages returns only when a thread has read the event of the move. This class has a thread that reads
// the event.
class MoveReader {
 public:
  explicit MoveReader(int fd) : fd_(fd), runs_(pthread_create(&thread_, nullptr, run, this) == 0) {
    while (runs_ && !ready_.load()) sched_yield();
  }
  ~MoveReader() {
    stop_.store(true);
    if (runs_) pthread_join(thread_, nullptr);
  }
  MoveReader(const MoveReader&) = delete;
  MoveReader& operator=(const MoveReader&) = delete;

  bool runs() const { return runs_; }

 private:
  static void* run(void* self) {
    auto& reader = *static_cast<MoveReader*>(self);
    reader.ready_.store(true);
    reader.read_until_moved();
    return nullptr;
  }
  void read_until_moved() const {
    uffd_msg message;
    while (!stop_.load()) {
      pollfd wanted{fd_, POLLIN, 0};
      raw(SYS_poll, word(&wanted), 1, 10);
      const long n = raw(SYS_read, static_cast<unsigned long>(fd_), word(&message), sizeof message);
      if (n == static_cast<long>(sizeof message) && message.event == UFFD_EVENT_REMAP) return;
    }
  }

  const int fd_;
  std::atomic<bool> ready_{false}, stop_{false};
  pthread_t thread_{};
  const bool runs_;
};

// Returns whether the range contains the part of this thread's stack that is in use here.
bool holds_this_stack(const Piece& piece) {
  constexpr std::uint64_t below = 16 << 10, above = 64 << 10;
  const std::uint64_t here = word(__builtin_frame_address(0)), start = word(piece.at);
  return start < here + above && start + piece.bytes > here - below;
}

bool one_thread() {
  const int folder = own_proc().open_file("task", O_RDONLY | O_DIRECTORY);
  DIR* tasks = folder >= 0 ? fdopendir(folder) : nullptr;
  if (tasks == nullptr) return false;
  int count = 0;
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(tasks);
  return count == 1;
}

std::byte* private_pages(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// Touches each page, because a page that was never touched cannot be write-protected. The bytes read are unused, so
// another thread may write them meanwhile.
void touch_pages(const std::byte* at, std::size_t bytes) {
  std::byte unused{};
  for (std::size_t i = 0; i < bytes; i += ring::page) raw_copy(&unused, at + i, 1);
}

Swapped hold_and_swap_in(const Piece& piece, std::byte* block, std::byte* again, unsigned helpers) {
  const Faults faults(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  if (!faults.there()) return Swapped::ThreadsRun;
  if (!faults.watch(piece.at, piece.bytes, UFFDIO_REGISTER_MODE_WP)) return Swapped::No;
  touch_pages(piece.at, piece.bytes);
  SharedCopy copy(block, piece.at, piece.bytes, helpers);
  if (!faults.protect(piece.at, piece.bytes, true)) {
    faults.protect(piece.at, piece.bytes, false);
    return Swapped::No;
  }
  copy.run();
  if (raw_replace(piece.at, piece.bytes, again)) return Swapped::Yes;
  faults.protect(piece.at, piece.bytes, false);
  return Swapped::No;
}

Swapped fill_and_replace(const Piece& piece, const std::byte* block, std::byte* filled, unsigned helpers) {
  SharedCopy copy(filled, block, piece.bytes, helpers);
  if (!copy.make_pages()) return Swapped::No;
  copy.run();
  if (mprotect(filled, piece.bytes, piece.protection) != 0) return Swapped::No;
  return raw_replace(piece.at, piece.bytes, filled) ? Swapped::Yes : Swapped::No;
}

// `fresh` is empty, so threads that touch it wait. `filled` gets the block's contents and replaces `fresh`.
Swapped hold_and_swap_out(const Piece& piece, const std::byte* block, std::byte* fresh, std::byte* filled,
                          unsigned helpers) {
  const Faults faults(UFFD_FEATURE_EVENT_REMAP);
  if (!faults.there()) return Swapped::ThreadsRun;
  if (!faults.watch(fresh, piece.bytes, UFFDIO_REGISTER_MODE_MISSING)) return Swapped::No;
  const MoveReader reader(faults.fd());
  if (!reader.runs()) return Swapped::No;
  SharedCopy copy(filled, block, piece.bytes, helpers);
  if (!copy.make_pages()) return Swapped::No;
  if (!raw_replace(piece.at, piece.bytes, fresh)) return Swapped::No;
  copy.run();
  if (raw(SYS_mprotect, word(filled), piece.bytes, static_cast<unsigned long>(piece.protection)) == 0 &&
      raw_replace(piece.at, piece.bytes, filled)) {
    faults.wake(piece.at, piece.bytes);
    return Swapped::Yes;
  }
  const bool done = faults.fill(piece.at, piece.bytes, block);
  uffdio_range range{word(piece.at), piece.bytes};
  // Wakes sleeping threads, too; the end of the helper threads may need this memory.
  raw_ioctl(faults.fd(), UFFDIO_UNREGISTER, &range);
  // The kernel had no page left. Ends the process, because the unfilled pages would read as zeros.
  if (!done) raw(SYS_kill, static_cast<unsigned long>(raw(SYS_getpid)), SIGBUS);
  munmap(filled, piece.bytes);
  return Swapped::Yes;
}

}  // namespace

bool can_hold_writers() {
  const Uncancelled here;
  return Faults(0).there();
}

Swapped swap_in(const Piece& piece, std::byte* block, std::byte* again, unsigned helpers) {
  const Uncancelled here;
  Swapped done = Swapped::No;
  if (!holds_this_stack(piece) && mprotect(again, piece.bytes, piece.protection) == 0) {
    const bool writers = (piece.protection & PROT_WRITE) != 0 && !one_thread();
    const SignalsBlocked blocked;
    if (writers) {
      done = hold_and_swap_in(piece, block, again, helpers);
    } else {
      SharedCopy(block, piece.at, piece.bytes, helpers).run();
      done = raw_replace(piece.at, piece.bytes, again) ? Swapped::Yes : Swapped::No;
    }
  }
  if (done != Swapped::Yes) munmap(again, piece.bytes);
  return done;
}

Swapped swap_out(const Piece& piece, const std::byte* block, unsigned helpers) {
  const Uncancelled here;
  if (holds_this_stack(piece)) return Swapped::No;
  const bool writers = (piece.protection & PROT_WRITE) != 0 && !one_thread();
  std::byte* filled = private_pages(piece.bytes);
  std::byte* fresh = writers ? private_pages(piece.bytes) : nullptr;
  if (fresh != nullptr && piece.protection != (PROT_READ | PROT_WRITE)) mprotect(fresh, piece.bytes, piece.protection);
  Swapped done = Swapped::No;
  if (filled != nullptr && (fresh != nullptr || !writers)) {
    const SignalsBlocked blocked;
    done = writers ? hold_and_swap_out(piece, block, fresh, filled, helpers)
                   : fill_and_replace(piece, block, filled, helpers);
  }
  if (done == Swapped::Yes) return done;
  if (filled != nullptr) munmap(filled, piece.bytes);
  if (fresh != nullptr) munmap(fresh, piece.bytes);
  return done;
}

bool copy_out(const Piece& piece, const std::byte* block) {
  std::byte* fresh = private_pages(piece.bytes);
  if (fresh == nullptr) return false;
  raw_copy(fresh, block, piece.bytes);
  const bool done = mprotect(fresh, piece.bytes, piece.protection) == 0 && raw_replace(piece.at, piece.bytes, fresh);
  if (!done) munmap(fresh, piece.bytes);
  return done;
}

}  // namespace guest
