// User objects: memory of the program that graphs keep alive, with a function that frees it. The program, graphs,
// executable graphs and launches in flight hold references. After the last reference is released, the function runs as
// a callback, on behalf of a thread of the schedule's pool.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <map>
#include <memory>

namespace simgpu {

class UserObject {
 public:
  UserObject(void* data, CUhostFn destroy, unsigned count) : data_(data), destroy_(destroy), count_(count) {}
  void set_handle(CUuserObject handle) { handle_ = handle; }  // call before another thread sees the object

  void retain(unsigned count);
  // Returns false and releases nothing if fewer than `count` references are left.
  bool release(unsigned count);

 private:
  void* const data_;
  const CUhostFn destroy_;
  CUuserObject handle_ = nullptr;
  ring::Mutex mutex_;
  unsigned count_ GUARDED_BY(mutex_);
};

// The references of one owner. A copy of this object retains references of its own.
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
