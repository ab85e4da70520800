#include "host/scheduler/worker_pages.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "host/base/sealed_memory.h"

namespace host::scheduler {
namespace {

using broker::Fd;

// Maps a page. Returns null on failure.
template <class Page>
Page* map_page(const Fd& memfd) {
  return broker::has_size(memfd, sizeof(Page)) ? static_cast<Page*>(broker::map_memory(memfd, sizeof(Page))) : nullptr;
}

}  // namespace

Result<std::shared_ptr<WorkerPages>> WorkerPages::create(const std::string& name, bool kept) {
  std::shared_ptr<WorkerPages> pages(new WorkerPages);
  if (pages->open(name, kept)) return pages;
  return Error{std::string("cannot be given the scheduler's pages: ") + std::strerror(errno)};
}

std::shared_ptr<WorkerPages> WorkerPages::adopt(Fd orders, Fd use, Fd doorbell) {
  std::shared_ptr<WorkerPages> pages(new WorkerPages);
  pages->orders_ = map_page<ring::OrdersPage>(orders);
  pages->use_ = map_page<ring::UsePage>(use);
  pages->writable_orders_ = std::move(orders);
  pages->use_fd_ = std::move(use);
  pages->doorbell_ = broker::SharedFd(std::move(doorbell));
  return pages->orders_ != nullptr && pages->use_ != nullptr ? pages : nullptr;
}

bool WorkerPages::open(const std::string& name, bool kept) {
  orders_fd_ = broker::make_sealed_memory("orders:" + name, sizeof(ring::OrdersPage));
  use_fd_ = broker::make_sealed_memory("use:" + name, sizeof(ring::UsePage));
  orders_ = map_page<ring::OrdersPage>(orders_fd_);
  use_ = map_page<ring::UsePage>(use_fd_);
  doorbell_ = broker::SharedFd::make_doorbell();
  if (orders_ == nullptr || use_ == nullptr || !doorbell_ || !broker::seal_for_good(orders_fd_, kept)) return false;
  Fd reader = broker::reader_of(orders_fd_);
  if (kept) writable_orders_ = std::move(orders_fd_);
  orders_fd_ = std::move(reader);
  return static_cast<bool>(orders_fd_);
}

void WorkerPages::publish_whether_on(std::uint32_t device, bool on) const {
  std::atomic<std::uint32_t>& off = orders_->device[device].off;
  if (off.load(std::memory_order_relaxed) == (on ? 0U : 1U)) return;
  off.store(on ? 0 : 1, std::memory_order_relaxed);
  if (on) syscall(SYS_futex, &off, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

WorkerPages::~WorkerPages() {
  if (orders_ != nullptr) munmap(orders_, sizeof *orders_);
  if (use_ != nullptr) munmap(use_, sizeof *use_);
}

}  // namespace host::scheduler
