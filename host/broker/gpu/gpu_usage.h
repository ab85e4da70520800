// Measures the GPUs' memory, how much each process holds, and other facts of a GPU, independent of what workers report.
//
// Threads: the broker's event loop only. Answers arrive through the loop, so a question does not block the broker.
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
  std::uint64_t total = 0;                   // bytes that programs can have of the GPU; 0: unknown
  std::string missing;                       // why processes could not be measured; "": they were
  std::map<pid_t, std::uint64_t> processes;  // bytes per process, including managed memory (managed_memory.h)
  std::string unread = {};                   // why managed memory is not included; "": it is
  GpuFacts facts = {};                       // only in answers to ask_for_facts(); none if `missing`
};
using GpuUses = std::map<std::string, GpuUse>;  // by the requested names

class GpuUsage {
 public:
  virtual ~GpuUsage() = default;
  // `gpus`: UUIDs ("GPU-...", "MIG-...") or PCI addresses. The answer has an entry for each, and arrives through the
  // loop. False while another question is open.
  virtual bool ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) = 0;
  // Asks for the facts that guests may know of these GPUs.
  virtual bool ask_for_facts(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) = 0;
  // Like ask(), but blocks. Only for a broker that serves no VM yet.
  virtual GpuUses ask_now(const std::vector<std::string>& gpus) = 0;
};

// The source for the driver that the key `library` names. `own_folder`: the folder of ivgpud.
std::unique_ptr<GpuUsage> make_gpu_usage(EventLoop& loop, const std::string& library, const std::string& own_folder);
// Uses NVIDIA's library in a separate process (host/broker/gpu/nvml_usage.cc). A process that has ended is restarted,
// at most once per `between_starts`. `program`: the path of ivgpu-nvml.
std::unique_ptr<GpuUsage> make_nvml_usage(EventLoop& loop, const std::string& program,
                                          Clock::duration between_starts = std::chrono::seconds(10));
// Uses the simulated GPU's file (host/simgpu/api/device/usage_file.h).
std::unique_ptr<GpuUsage> make_simulated_usage(EventLoop& loop);

// Memory of a simulated context, from the environment that the workers inherit.
std::uint64_t simulated_context();

// A question to ivgpu-nvml is a line of GPUs; this word first asks for facts instead of memory.
inline constexpr const char* facts_question = "facts";
// Parses a line of ivgpu-nvml: "total GPU BYTES", "use GPU PROCESS BYTES", "missing GPU WHY", "unread GPU WHY", or one
// of GpuFacts. It adds up the "use" lines of a process. False if the line has none of these forms.
bool take_usage_line(const std::string& line, GpuUses& uses);

}  // namespace host::broker
