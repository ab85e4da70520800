// User objects and references to them. The program's function runs as a callback (stream/callback.h).
#include "host/simgpu/api/graph/user_object.h"

#include <climits>

#include "host/simgpu/api/graph/graph.h"
#include "host/simgpu/api/stream/callback.h"
#include "ring/base/mutex.h"

namespace simgpu {

void UserObject::retain(unsigned count) {
  const ring::MutexLock lock(mutex_);
  count_ += count;
}

bool UserObject::release(unsigned count) {
  {
    const ring::MutexLock lock(mutex_);
    if (count > count_) return false;
    count_ -= count;
    if (count_ != 0) return true;
  }
  Driver* const driver = Driver::get();
  if (driver == nullptr) return true;
  driver->user_objects.remove(handle_);
  const auto destroy = [driver, function = destroy_, data = data_] { run_callback(*driver, [&] { function(data); }); };
  driver->schedule.submit(destroy, {}, Schedule::Who::Pool);
  return true;
}

UserReferences::~UserReferences() {
  for (const auto& [object, count] : counts_) object->release(count);
}

UserReferences::UserReferences(const UserReferences& other) : counts_(other.counts_) {
  for (const auto& [object, count] : counts_) object->retain(count);
}

UserReferences& UserReferences::operator=(const UserReferences& other) {
  UserReferences copy(other);
  counts_.swap(copy.counts_);
  return *this;
}

void UserReferences::add(const std::shared_ptr<UserObject>& object, unsigned count) { counts_[object] += count; }

bool UserReferences::remove(const std::shared_ptr<UserObject>& object, unsigned count) {
  const auto at = counts_.find(object);
  if (at == counts_.end() || at->second < count) return false;
  if ((at->second -= count) == 0) counts_.erase(at);
  return object->release(count);
}

}  // namespace simgpu

using namespace simgpu;

namespace {

bool is_count_of_references(unsigned count) { return count != 0 && count <= INT_MAX; }

template <class F>
CUresult with_user_object(CUuserObject handle, unsigned count, F&& call) {
  return with_graphs([&](Driver& driver) {
    const std::shared_ptr<UserObject> object = driver.user_objects.find(handle);
    if (object == nullptr || !is_count_of_references(count)) return CUDA_ERROR_INVALID_VALUE;
    return call(driver, object);
  });
}

CUresult valid_if(bool valid) { return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

}  // namespace

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy, unsigned initialRefcount,
                            unsigned flags) {
  return with_graphs([&](Driver& driver) {
    const bool sound = object_out != nullptr && destroy != nullptr && initialRefcount != 0;
    if (!sound || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
    const auto object = std::make_shared<UserObject>(ptr, destroy, initialRefcount);
    *object_out = driver.user_objects.insert(object);
    object->set_handle(*object_out);
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  return with_user_object(object, count, [&](Driver&, const std::shared_ptr<UserObject>& kept) {
    kept->retain(count);
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  return with_user_object(
      object, count, [&](Driver&, const std::shared_ptr<UserObject>& kept) { return valid_if(kept->release(count)); });
}

// With the flag MOVE, the graph takes over references of the caller.
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  return with_user_object(object, count, [&](Driver& driver, const std::shared_ptr<UserObject>& kept) {
    const std::shared_ptr<Graph> owner = driver.graphs.find(graph);
    if (owner == nullptr || (flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) kept->retain(count);
    owner->users.add(kept, count);
    return CUDA_SUCCESS;
  });
}

// As in the driver, releasing more references than the graph has succeeds and changes nothing.
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  return with_user_object(object, count, [&](Driver& driver, const std::shared_ptr<UserObject>& kept) {
    const std::shared_ptr<Graph> owner = driver.graphs.find(graph);
    if (owner != nullptr) owner->users.remove(kept, count);
    return valid_if(owner != nullptr);
  });
}
