// User objects: memory of the program that graphs keep, with a function that frees it. The program, each graph, each
// executable graph and each launch in flight hold references. When the last reference ends, a thread of the schedule's
// pool runs the function.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <map>
#include <memory>
#include <mutex>

namespace simgpu {

class UserObject {
 public:
  UserObject(void* data, CUhostFn destroy, unsigned count) : data_(data), destroy_(destroy), count_(count) {}
  void set_handle(CUuserObject handle) { handle_ = handle; }  // call before another thread sees the object

  void retain(unsigned count);
  // Returns false if fewer references are left.
  bool release(unsigned count);

 private:
  void* const data_;
  const CUhostFn destroy_;
  CUuserObject handle_ = nullptr;
  std::mutex mutex_;
  unsigned count_;
};

// The references of one owner. A copy retains references of its own.
class UserReferences {
 public:
  UserReferences() = default;
  ~UserReferences();
  UserReferences(const UserReferences& other);
  UserReferences& operator=(const UserReferences& other);

  void add(const std::shared_ptr<UserObject>& object,
           unsigned count);  // takes over references that the caller retained
  bool remove(const std::shared_ptr<UserObject>& object, unsigned count);
  bool empty() const { return counts_.empty(); }

 private:
  std::map<std::shared_ptr<UserObject>, unsigned> counts_;
};

}  // namespace simgpu
