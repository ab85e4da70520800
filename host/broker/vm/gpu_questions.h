// Answers guests' questions about their VM's GPUs, asked without a session (ring/layout/vm_page_c.h) by their
// libnvidia-ml.so.1. Owns the open question, the limit on answers, and the samples of the VM's utilization. A question
// is a counter that a guest increments. One answer serves all questions that precede it.
//
// Callers: the other parts of the same Vm, in the broker's event loop. What the constructor takes outlives it.
//
// Trust: a guest may increment the counter at will. It gets at most 200 answers a second, fifty at once, and each costs
// the broker a copy of 20 KiB. An answer contains the VM's own use, and facts of a GPU that do not reveal other VMs'
// work. Exceptions are temperature, power and clocks, which guests share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/rate.h"
#include "host/broker/gpu/gpu_fact_cache.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/gpu/utilization.h"
#include "host/broker/region/region.h"
#include "host/broker/vm/slot_table.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_memory.h"
#include "host/broker/vm/vm_mps.h"
#include "host/broker/vm/worker_gpus.h"

namespace host::broker {

class GpuQuestions {
 public:
  GpuQuestions(const VmContext& context, const Region& region, const SlotTable& slots, const WorkerGpus& gpus,
               const VmMemory& memory, const VmMps& mps);
  ~GpuQuestions();
  GpuQuestions(const GpuQuestions&) = delete;
  GpuQuestions& operator=(const GpuQuestions&) = delete;

  // Sees whether a guest has asked, and samples the VM's utilization.
  void look();
  // Answers a question that the earlier broker left unanswered.
  void go_on();
  // Takes no further question; the present one is answered.
  void stop() { context_.loop.forget(timer_); }

 private:
  static constexpr double answers_per_second = 200, answers_at_once = 50;

  std::optional<Clock::duration> had_of(const std::string& gpu) const;
  bool has_utilization() const;
  void note_utilization();
  void ask_for_facts();
  void answer();
  ring::VmGpu answer_for(const Gpu& gpu, ring::VmPage& page);
  void report_memory(const Gpu& gpu, const GpuFacts* facts, ring::VmGpu& to) const;

  const VmContext& context_;
  const Region& region_;
  const SlotTable& slots_;
  const WorkerGpus& gpus_;
  const VmMemory& memory_;
  const VmMps& mps_;
  std::map<std::string, Utilization> utilization_;  // by GPU
  Clock::time_point utilization_noted_{};
  GpuFactCache::Id facts_asked_ = 0;  // for the question being answered
  std::uint32_t answered_ = 0;        // of RegionHeader::gpu_questions
  TokenBucket answers_;
  EventLoop::Id timer_ = 0;
};

}  // namespace host::broker
