#include "guest/calls/module/links.h"

#include <map>
#include <utility>

#include "ring/base/mutex.h"

namespace guest {
namespace {

// Never destroyed, because calls come until the process ends.
struct Links {
  ring::Mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<Link>> by_id GUARDED_BY(mutex);
};

Links& links() {
  static Links* const all = new Links;
  return *all;
}

}  // namespace

const std::vector<char>& Link::keep(std::vector<char> image) {
  ring::MutexLock lock(mutex_);
  if (images_.empty() || images_.back() != image) images_.push_back(std::move(image));
  return images_.back();
}

void add_link(std::uint64_t id, std::shared_ptr<Link> link) {
  ring::MutexLock lock(links().mutex);
  links().by_id.insert_or_assign(id, std::move(link));
}

std::shared_ptr<Link> find_link(std::uint64_t id) {
  ring::MutexLock lock(links().mutex);
  const auto found = links().by_id.find(id);
  return found == links().by_id.end() ? nullptr : found->second;
}

void drop_link(std::uint64_t id) {
  ring::MutexLock lock(links().mutex);
  links().by_id.erase(id);
}

}  // namespace guest
