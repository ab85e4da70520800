#include "host/broker/region/guarded_memory.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace host::broker {

// Whole pages of a mapping. `begin` is 0 while the entry is unused.
struct GuardedMemory::Entry {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> is_taken{true}, is_lost{false};
  Entry* next = nullptr;

  static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
                "a signal handler waits for no lock");
};

class GuardedMemory::Handler {
 public:
  // The process's handler, which lives until its end.
  static Handler& get() {
    static Handler handler;
    return handler;
  }

  Entry& take() {
    for (Entry* entry = entries_.load(std::memory_order_acquire); entry != nullptr; entry = entry->next)
      if (!entry->is_taken.exchange(true, std::memory_order_acquire)) return *entry;
    auto* const entry = new Entry;
    entry->next = entries_.load(std::memory_order_relaxed);
    while (!entries_.compare_exchange_weak(entry->next, entry, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return *entry;
  }
  int lost_fd() const { return lost_fd_; }
  void report_lost(Entry& entry) const {
    entry.is_lost.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(lost_fd_, &one, sizeof one);
  }

 private:
  Handler() : lost_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    struct sigaction action {};
    action.sa_sigaction = &Handler::on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGBUS, &action, nullptr);
    sigset_t only;  // a fault while SIGBUS is blocked ends the process
    sigemptyset(&only);
    sigaddset(&only, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  }

  // Runs in a signal handler: only atomics and system calls are allowed.
  static void on_signal(int number, siginfo_t* info, void*) {
    const int before = errno;
    const bool is_fault = info->si_code > 0;  // else a process sent it
    if (!is_fault || !get().replace(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
      signal(number, SIG_DFL);
      if (!is_fault) raise(number);  // a fault recurs by itself
    }
    errno = before;
  }

  bool replace(std::uintptr_t address) const {
    for (Entry* entry = entries_.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
      const std::uintptr_t begin = entry->begin.load(std::memory_order_acquire);
      const std::size_t bytes = entry->bytes.load(std::memory_order_relaxed);
      if (begin == 0 || address - begin >= bytes) continue;
      constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
      if (mmap(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) return false;
      report_lost(*entry);
      return true;
    }
    return false;
  }

  std::atomic<Entry*> entries_{nullptr};
  const int lost_fd_;
};

std::unique_ptr<GuardedMemory> GuardedMemory::map(const Fd& memory, std::size_t from, std::size_t bytes) {
  struct stat status {};
  if (fstat(memory.get(), &status) != 0) return nullptr;
  // On hugetlbfs mappings consist of whole huge pages, whose size is st_blksize.
  const auto page = static_cast<std::size_t>(status.st_blksize), skipped = from % page;
  const std::size_t whole = (skipped + bytes + page - 1) / page * page;
  Entry& entry = Handler::get().take();
  void* const at =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), static_cast<off_t>(from - skipped));
  if (at == MAP_FAILED) {
    entry.is_taken.store(false, std::memory_order_release);
    return nullptr;
  }
  entry.is_lost.store(false, std::memory_order_relaxed);
  entry.bytes.store(whole, std::memory_order_relaxed);
  entry.begin.store(reinterpret_cast<std::uintptr_t>(at),
                    std::memory_order_release);  // pairs with the handler
  return std::unique_ptr<GuardedMemory>(new GuardedMemory(entry, static_cast<std::byte*>(at) + skipped));
}

GuardedMemory::~GuardedMemory() {
  const std::uintptr_t begin = entry_.begin.exchange(0, std::memory_order_relaxed);
  munmap(reinterpret_cast<void*>(begin), entry_.bytes.load(std::memory_order_relaxed));
  entry_.is_taken.store(false, std::memory_order_release);  // pairs with take()
}

void GuardedMemory::give_up() const { Handler::get().report_lost(entry_); }

bool GuardedMemory::is_lost() const { return entry_.is_lost.load(std::memory_order_acquire); }

int GuardedMemory::lost_fd() { return Handler::get().lost_fd(); }

}  // namespace host::broker
