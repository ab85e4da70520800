// Serves the socket of ivgpu-gputime (helper_protocol.h): keeps a table of disabled channels for each GPU, and enables
// all channels at its end.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/scheduler/helper_protocol.h"
#include "host/scheduler/switch_table.h"

namespace host::scheduler {

class HelperService {
 public:
  struct Gpu {
    std::unique_ptr<SwitchTable> table;  // null: the GPU's channels cannot be switched
    std::int64_t refused = 0;            // the reason if `table` is null
    std::uint32_t instance = 0;          // the driver's number of the GPU
  };

  // The caller owns the socket.
  HelperService(int socket, std::vector<Gpu> gpus) : socket_(socket), gpus_(std::move(gpus)) {}
  ~HelperService() { all_on(); }
  HelperService(const HelperService&) = delete;
  HelperService& operator=(const HelperService&) = delete;

  // Sends the Hello. Returns false if the connection has ended.
  [[nodiscard]] bool greet() const;
  // Runs until the connection ends, or the broker breaks the protocol.
  void run();

 private:
  struct Message {
    Switch order;
    std::array<SwitchedChannel, most_channels> channels;
  };

  bool any_off() const;
  bool hear();
  bool answer(const Switched& answer) const;
  void all_on();
  void report_all_on() const;

  const int socket_;
  std::vector<Gpu> gpus_;
  Message message_{};
  int silence_ms_ = 1000;
};

}  // namespace host::scheduler
