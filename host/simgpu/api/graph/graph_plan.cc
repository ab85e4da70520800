// Turns the nodes of a graph into the pieces of a launch plan.
#include "host/simgpu/api/graph/graph_exec.h"
#include "ring/base/mutex.h"

#include "host/simgpu/api/context/green_resources.h"
#include "host/simgpu/api/graph/condition.h"
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/stream/callback.h"
#include "host/simgpu/api/stream/streams.h"

namespace simgpu {
namespace {

using Piece = LaunchPlan::Piece;

CUresult living(const Context& context) {
  return context.active.load(std::memory_order_acquire) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void put(Driver& driver, const Context& context, std::function<void()> work, Piece& piece) {
  piece.work = guarded(driver, context, std::move(work), Run::UnlessFailed);
}

CUresult plan_work(Driver& driver, const KernelWork& work, Piece& piece) {
  LaunchRequest request = request_of(work);
  const Multiprocessors on = all_of_device(work.context->device.ordinal);
  if (const CUresult error = living(*work.context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = check_launch(request, *work.reference.function, on.count); error != CUDA_SUCCESS)
    return error;
  put(driver, *work.context, launch_work(driver, *work.context, request, work.reference, on, work.parameters), piece);
  return CUDA_SUCCESS;
}

CUresult plan_work(Driver& driver, const CopyWork& work, Piece& piece) {
  Copy copy;
  Side to{}, from{};
  ReadyCopy ready;
  if (const CUresult error = living(*work.context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = copy_of(driver, work.asked, copy, to, from); error != CUDA_SUCCESS) return error;
  if (const CUresult error = prepare_copy(driver, copy, to, from, ready); error != CUDA_SUCCESS) return error;
  put(driver, *work.context, std::move(ready.work), piece);
  return CUDA_SUCCESS;
}

CUresult plan_work(Driver& driver, const FillWork& work, Piece& piece) {
  ReadyFill ready;
  if (const CUresult error = living(*work.context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = prepare_fill(driver, *work.context, fill_of(work.asked), ready); error != CUDA_SUCCESS)
    return error;
  put(driver, *work.context, std::move(ready.work), piece);
  return CUDA_SUCCESS;
}

CUresult plan_work(Driver& driver, const HostWork& work, Piece& piece) {
  piece.work = [&driver, work] {
    if (driver.fault() == CUDA_SUCCESS) run_callback(driver, [&] { work.function(work.data); });
  };
  return CUDA_SUCCESS;
}

CUresult plan_work(Driver& driver, const ChildWork& work, Piece& piece) {
  return make_plan(driver, *work.graph, piece.inside);
}

CUresult plan_work(Driver&, const NoWork&, Piece&) { return CUDA_SUCCESS; }

CUresult plan_work(Driver&, const EventWait& work, Piece& piece) {
  const ring::MutexLock lock(work.event->mutex);
  piece.awaits = work.event->record;
  return CUDA_SUCCESS;
}

CUresult plan_work(Driver&, const EventRecord& work, Piece& piece) {
  piece.records = work.event;
  return CUDA_SUCCESS;
}

// Returns the index of the body to run for a value. No body runs if the index is past the last body.
std::size_t body_for(CUgraphConditionalNodeType type, unsigned value) {
  if (type == CU_GRAPH_COND_TYPE_SWITCH) return value;
  return value != 0 ? 0 : 1;
}

// The thread that evaluates the condition submits the pieces of the body and waits for them.
CUresult plan_work(Driver& driver, const ConditionalWork& work, Piece& piece) {
  std::vector<std::shared_ptr<const LaunchPlan>> bodies;
  for (const std::shared_ptr<Graph>& body : work.bodies) {
    std::shared_ptr<const LaunchPlan> plan;
    if (const CUresult error = make_plan(driver, *body, plan); error != CUDA_SUCCESS) return error;
    bodies.push_back(std::move(plan));
  }
  piece.work = [&driver, bodies, condition = work.condition, type = work.type, context = work.context] {
    const bool repeats = type == CU_GRAPH_COND_TYPE_WHILE;
    do {
      const std::size_t chosen = body_for(type, condition->value.load(std::memory_order_acquire));
      if (chosen >= bodies.size() || driver.fault() != CUDA_SUCCESS) return;
      EventRecords none;
      driver.schedule.wait(submit_plan(driver, *bodies[chosen], nullptr, none));
    } while (repeats && !context->ending.load(std::memory_order_relaxed));
  };
  return CUDA_SUCCESS;
}

}  // namespace

CUresult make_plan(Driver& driver, const Graph& graph, std::shared_ptr<const LaunchPlan>& out) {
  const auto plan = std::make_shared<LaunchPlan>();
  std::unordered_map<const GraphNode*, std::size_t> places;
  for (GraphNode* const node : in_order(graph)) {
    Piece& piece = plan->pieces.emplace_back();
    places[node] = plan->pieces.size() - 1;
    for (const Edge& edge : node->before) piece.after.push_back(places.at(edge.node));
    if (!node->enabled) continue;
    const CUresult error = std::visit([&](const auto& work) { return plan_work(driver, work, piece); }, node->work);
    if (error != CUDA_SUCCESS) return error;
  }
  out = plan;
  return CUDA_SUCCESS;
}

Ticket submit_plan(Driver& driver, const LaunchPlan& plan, const Ticket& begin, EventRecords& records) {
  std::vector<Ticket> tickets;
  const auto submit = [&](const std::function<void()>& work, const std::vector<Ticket>& after) {
    return driver.schedule.submit(work, after, Schedule::Who::Pool);
  };
  for (const Piece& piece : plan.pieces) {
    std::vector<Ticket> after{piece.after.empty() ? begin : nullptr, piece.awaits};
    for (const std::size_t place : piece.after) after.push_back(tickets[place]);
    tickets.push_back(piece.inside == nullptr ? submit(piece.work, after)
                                              : submit_plan(driver, *piece.inside, submit({}, after), records));
    if (piece.records != nullptr) records.emplace_back(piece.records, tickets.back());
  }
  tickets.push_back(begin);
  return submit({}, tickets);
}

}  // namespace simgpu
