// How much memory GPUs have, how much of it each process holds, and what else is told of a GPU: measured, not what a worker
// says of itself.
//
// Threads: the broker's one. An answer comes out of the event loop, so asking costs the broker no wait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/broker/gpu/gpu_facts.h"

namespace host::broker {

struct GpuUse {
  std::uint64_t total = 0;                   // bytes that programs can have of the GPU; 0: it is not told
  std::string missing;                       // why nothing is told of processes; "": all is
  std::map<pid_t, std::uint64_t> processes;  // bytes that each holds, managed memory among them (managed_memory.h)
  std::string unread = {};                   // why managed memory is not among them; "": it is
  GpuFacts facts = {};                       // in an answer of ask_for_facts() alone; none where there is `missing`
};
using GpuUses = std::map<std::string, GpuUse>;  // by the names that were asked for

class GpuUsage {
 public:
  virtual ~GpuUsage() = default;
  // `gpus`: UUIDs ("GPU-...", "MIG-..."), or PCI addresses. The answer has each, and comes later in the loop. One question
  // at a time: false while one is not answered.
  virtual bool ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) = 0;
  // The same of what guests may know of them.
  virtual bool ask_for_facts(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) = 0;
  // As ask(), but waits. For a broker that serves nobody yet.
  virtual GpuUses ask_now(const std::vector<std::string>& gpus) = 0;
};

// The one that goes with the driver that a broker's file names (the key `library`). `own_folder`: where ivgpud lies.
std::unique_ptr<GpuUsage> make_gpu_usage(EventLoop& loop, const std::string& library, const std::string& own_folder);
// NVIDIA's library, in a process of its own (host/broker/gpu/nvml_usage.cc), which is started again where it has ended, but not
// sooner than `between_starts` after the last start. `program`: the path of ivgpu-nvml.
std::unique_ptr<GpuUsage> make_nvml_usage(EventLoop& loop, const std::string& program,
                                          Clock::duration between_starts = std::chrono::seconds(10));
// The simulated GPU's file (host/simgpu/api/device/usage_file.h).
std::unique_ptr<GpuUsage> make_simulated_usage(EventLoop& loop);

// What a context of the simulated GPU takes, by the environment that its workers have.
std::uint64_t simulated_context();

// A question to ivgpu-nvml is a line of GPUs; this before them asks for facts in place of memory.
inline constexpr const char* facts_question = "facts";
// One line of what ivgpu-nvml says: "total GPU BYTES", "use GPU PROCESS BYTES", of which those of one process are added up,
// "missing GPU WHY", "unread GPU WHY", and those of GpuFacts. False: it is none.
bool take_usage_line(const std::string& line, GpuUses& uses);

}  // namespace host::broker
