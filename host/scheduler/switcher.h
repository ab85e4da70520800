// Carries out the policy's orders: disables and enables workers' channels on a GPU. There are two kinds: for NVIDIA's
// driver, through the helper (helper_protocol.h), and for the simulated GPU, through its file.
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
    std::vector<SwitchedChannel> channels;  // of its own client
  };
  struct Answer {
    std::size_t gpu = 0;
    bool everything_on = false;  // unrequested: the switcher has enabled everything
    std::uint32_t failed = 0;
    std::int64_t refused = 0;  // status of the last failure
    std::chrono::nanoseconds took{};
  };

  virtual ~Switcher() = default;
  // The index of a GPU that it can switch, by name.
  virtual std::optional<std::size_t> place_of(const std::string& gpu) const = 0;
  // The driver's number of that GPU, by which workers report their channels.
  virtual std::uint32_t instance_of(std::size_t place) const = 0;
  // Readable when there is an answer; -1: answers are available at once.
  virtual int fd() const = 0;
  // Begins an order; one per GPU at a time. `forced`: enables channels that another switcher may have disabled. False
  // if it cannot switch any more.
  virtual bool begin(std::size_t gpu, const std::vector<Worker>& on, const std::vector<Worker>& off, bool forced) = 0;
  // Nothing if there is no answer yet. `lost` becomes true if there will be none any more.
  [[nodiscard]] virtual std::optional<Answer> answer(bool& lost) = 0;
  // Must be called at least four times in that time while a channel is disabled; after so long a silence it enables
  // all.
  virtual void keep(std::chrono::milliseconds longest_silence) = 0;
};

// The switcher over the helper's socket, after its Hello; `gpus`: names of the Hello's GPUs, in order.
std::unique_ptr<Switcher> make_helper_switcher(broker::Fd socket, const Hello& hello, std::vector<std::string> gpus,
                                               std::chrono::milliseconds longest_silence);
// The switcher over the file that IVGPU_SIM_USAGE names in the workers' environment. Null if there is none.
[[nodiscard]] std::unique_ptr<Switcher> make_simulated_switcher(const std::string& usage_file,
                                                                std::vector<std::string> gpus);

}  // namespace host::scheduler
