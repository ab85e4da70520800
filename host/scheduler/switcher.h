// Carries out the policy's orders: disables and enables workers' channels on a GPU. There are two implementations: one
// for NVIDIA's driver, through the helper (helper_protocol.h), and one for the simulated GPU, through its usage file.
//
// Thread-safety: only the scheduler's thread.
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
    std::vector<SwitchedChannel> channels;  // channels of the worker's own client
  };
  struct Answer {
    std::size_t gpu = 0;
    bool everything_on = false;  // not an answer to an order: the switcher itself has enabled all channels
    std::uint32_t failed = 0;
    std::int64_t refused = 0;  // status of the last failure
    std::chrono::nanoseconds took{};
  };

  virtual ~Switcher() = default;
  // Returns the index of a GPU that this switcher can switch, by the GPU's name.
  virtual std::optional<std::size_t> place_of(const std::string& gpu) const = 0;
  // Returns the driver's number of that GPU, by which workers report their channels.
  virtual std::uint32_t instance_of(std::size_t place) const = 0;
  // Returns a descriptor that is readable when there is an answer; -1: answers are available at once.
  virtual int fd() const = 0;
  // Begins an order; one order for each GPU at a time. `forced`: enables channels that another switcher may have
  // disabled. Returns false if this switcher cannot switch channels any more.
  virtual bool begin(std::size_t gpu, const std::vector<Worker>& on, const std::vector<Worker>& off, bool forced) = 0;
  // Returns nothing if there is no answer yet. Sets `lost` to true if there will be no answers any more.
  [[nodiscard]] virtual std::optional<Answer> answer(bool& lost) = 0;
  // Must be called at least four times in `longest_silence` while a channel is disabled. After a silence of this
  // length, the switcher enables all channels.
  virtual void keep(std::chrono::milliseconds longest_silence) = 0;
};

// Makes a switcher that uses the helper's socket, after the helper's Hello. `gpus`: the names of the Hello's GPUs, in
// order.
std::unique_ptr<Switcher> make_helper_switcher(broker::Fd socket, const Hello& hello, std::vector<std::string> gpus,
                                               std::chrono::milliseconds longest_silence);
// Makes a switcher that uses the file that IVGPU_SIM_USAGE names in the workers' environment. Returns null if there is
// none.
[[nodiscard]] std::unique_ptr<Switcher> make_simulated_switcher(const std::string& usage_file,
                                                                std::vector<std::string> gpus);

}  // namespace host::scheduler
