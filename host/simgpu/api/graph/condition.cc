// The table of conditions. A condition exists as long as its graph.
#include "host/simgpu/api/graph/condition.h"

#include <map>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/graph/graph.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

struct Conditions {
  ring::Mutex mutex;
  std::map<CUgraphConditionalHandle, std::weak_ptr<Condition>> all GUARDED_BY(mutex);
  CUgraphConditionalHandle next GUARDED_BY(mutex) = 1;
};
Conditions& conditions() {
  static Conditions& table = *new Conditions;  // never freed: kernels may use it while the process exits
  return table;
}

}  // namespace

std::shared_ptr<Condition> make_condition() {
  Conditions& table = conditions();
  const ring::MutexLock lock(table.mutex);
  auto condition = std::make_shared<Condition>();
  condition->handle = table.next++;
  table.all[condition->handle] = condition;
  std::erase_if(table.all, [](const auto& entry) { return entry.second.expired(); });
  return condition;
}

std::shared_ptr<Condition> condition_of(CUgraphConditionalHandle handle) {
  Conditions& table = conditions();
  const ring::MutexLock lock(table.mutex);
  const auto at = table.all.find(handle);
  return at == table.all.end() ? nullptr : at->second.lock();
}

const std::function<void(std::uint64_t, std::uint32_t)>& condition_setter() {
  static const auto& set =
      *new std::function<void(std::uint64_t, std::uint32_t)>([](std::uint64_t handle, std::uint32_t value) {
        if (const std::shared_ptr<Condition> condition = condition_of(handle); condition != nullptr)
          condition->value.store(value, std::memory_order_release);
      });
  return set;
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* pHandle_out, CUgraph hGraph, CUcontext ctx,
                                        unsigned defaultLaunchValue, unsigned flags) {
  return with_graph(hGraph, [&](Driver& driver, Graph& graph) {
    if (pHandle_out == nullptr || (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (ctx == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult error = CUDA_SUCCESS;
    const std::shared_ptr<Context> context = context_named(driver, ctx, &error);
    if (context == nullptr) return error;
    const std::shared_ptr<Condition> condition = make_condition();
    condition->context = context;
    condition->default_value = defaultLaunchValue;
    condition->assigns_default = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0;
    graph.conditions.push_back(condition);
    *pHandle_out = condition->handle;
    return CUDA_SUCCESS;
  });
}
