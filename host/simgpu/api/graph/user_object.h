// User objects: memory of the program that graphs keep, with the function that frees it. Owners count references: the
// program, each graph, each executable graph, each launch in flight. When
// the last reference goes, a thread of the schedule's pool runs the function.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <map>
#include <memory>
#include <mutex>

namespace simgpu {

class UserObject {
 public:
  UserObject(void* data, CUhostFn destroy, unsigned count) : data_(data), destroy_(destroy), count_(count) {}
  void set_handle(CUuserObject handle) { handle_ = handle; }  // before another thread sees it

  void retain(unsigned count);
  // False if fewer references are left.
  bool release(unsigned count);

 private:
  void* const data_;
  const CUhostFn destroy_;
  CUuserObject handle_ = nullptr;
  std::mutex mutex_;
  unsigned count_;
};

// The references of one owner. A copy retains its own.
class UserReferences {
 public:
  UserReferences() = default;
  ~UserReferences();
  UserReferences(const UserReferences& other);
  UserReferences& operator=(const UserReferences& other);

  void add(const std::shared_ptr<UserObject>& object, unsigned count);  // retained already
  bool remove(const std::shared_ptr<UserObject>& object, unsigned count);
  bool empty() const { return counts_.empty(); }

 private:
  std::map<std::shared_ptr<UserObject>, unsigned> counts_;
};

}  // namespace simgpu
