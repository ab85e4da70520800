// Carries the policy's orders out: takes workers off a GPU and lets them on again. Two kinds: NVIDIA's driver, through the
// helper (helper_protocol.h), and the simulated GPU, through its file.
//
// Thread-safety: one thread, the scheduler's.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/fd.h"
#include "host/scheduler/helper_protocol.h"

namespace host::scheduler {

class Switcher {
 public:
  struct Worker {
    pid_t process = 0;
    std::vector<SwitchedChannel> channels;  // of its own client
  };
  struct Answer {
    std::size_t gpu = 0;
    bool everything_on = false;  // unasked: it has switched everything on
    std::uint32_t failed = 0;
    std::int64_t refused = 0;  // the status of the last that failed
    std::chrono::nanoseconds took{};
  };

  virtual ~Switcher() = default;
  // The GPUs that it can switch, by their names.
  virtual std::optional<std::size_t> place_of(const std::string& gpu) const = 0;
  // The driver's number of that GPU, by which workers tell their channels.
  virtual std::uint32_t instance_of(std::size_t place) const = 0;
  // Readable when there is an answer; -1: answers are there at once.
  virtual int fd() const = 0;
  // One order of a GPU at a time. `forced`: switch on whoever has switched them off. False: it can switch no more.
  virtual bool begin(std::size_t gpu, const std::vector<Worker>& on, const std::vector<Worker>& off, bool forced) = 0;
  // Nothing: none is there yet. `lost` becomes true where there will be none any more.
  virtual std::optional<Answer> answer(bool& lost) = 0;
  // Called four times in that time at least while something is off: after so long a silence it lets everything on.
  virtual void keep(std::chrono::milliseconds longest_silence) = 0;
};

// The helper's end of its socket, after its Hello, which is about these GPUs by their names, in their order.
std::unique_ptr<Switcher> make_helper_switcher(broker::Fd socket, const Hello& hello, std::vector<std::string> gpus,
                                               std::chrono::milliseconds longest_silence);
// Through the file that IVGPU_SIM_USAGE names in the workers' environment. Null where there is none.
std::unique_ptr<Switcher> make_simulated_switcher(const std::string& usage_file, std::vector<std::string> gpus);

}  // namespace host::scheduler
