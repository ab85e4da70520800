// The messages between the broker's thread and the scheduler's thread, in lock-free queues, one for each direction.
//
// Scheduler owns this object and is the broker's side; SchedulerLoop is the scheduler's side. The broker wakes the
// scheduler's thread by an eventfd. The scheduler reports a lost switcher by another eventfd.
//
// Threads: one thread on each side. Invariant: each function belongs to one side, which the section's heading names.
#pragma once

#include <sys/types.h>

#include <boost/lockfree/spsc_queue.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "host/base/fd.h"
#include "host/scheduler/gpu_time.h"
#include "host/scheduler/policy.h"
#include "host/scheduler/switcher.h"
#include "host/scheduler/worker_pages.h"

namespace host::scheduler {

struct SchedulerOptions {
  bool on = true;  // false: no channels are switched, and driver time slicing or the MPS server shares the GPU
  std::chrono::milliseconds longest_off{1000};
  bool operator==(const SchedulerOptions&) const = default;
};

// How a GPU is shared now, or was within the last second.
enum class Sharing : std::uint8_t { Unswitched, Alone, Leases };

struct SchedulerReport {
  std::map<Policy::Vm, Account> vms;                          // summed over all GPUs
  std::map<std::string, std::map<Policy::Vm, Account>> gpus;  // keyed by GPU
  std::map<std::string, Sharing> sharing;                     // keyed by GPU
  Time made{};
};

class SchedulerQueues {
 public:
  using Vm = Policy::Vm;
  using Share = Policy::Share;
  using Client = std::uint32_t;
  using Report = std::shared_ptr<const SchedulerReport>;

  struct NewShare {
    Vm vm;
    Share share;
  };
  struct NoVm {
    Vm vm;
  };
  struct NewClient {
    Client client;
    Vm vm;
    std::shared_ptr<WorkerPages> pages;
  };
  struct Ready {
    Client client;
    pid_t process;
    std::uint32_t rm_client;
    std::vector<std::string> gpus;
  };
  struct NoClient {
    Client client;
  };
  struct NewSwitcher {
    std::shared_ptr<std::unique_ptr<Switcher>> switcher;
  };
  struct ReportRequest {};
  struct Stop {};
  using Message =
      std::variant<Stop, SchedulerOptions, NewShare, NoVm, NewClient, Ready, NoClient, NewSwitcher, ReportRequest>;

  SchedulerQueues() = default;
  ~SchedulerQueues();  // called after the scheduler's thread has ended
  SchedulerQueues(const SchedulerQueues&) = delete;
  SchedulerQueues& operator=(const SchedulerQueues&) = delete;

  // Must be called once, before all other functions. Returns false on failure, with errno.
  [[nodiscard]] bool open();

  // ---- the broker's thread
  void send(const Message& message);
  bool take_report(Report& report) { return reports_.pop(report); }
  // Drops reports that arrived too late.
  void drop_reports();
  // Readable when the switcher is lost, until take_lost() returns true.
  int lost_fd() const { return lost_.get(); }
  bool take_lost();

  // ---- the scheduler's thread
  bool receive(Message& message) { return messages_.pop(message); }
  // Readable when messages have arrived, until drain_post() is called.
  int post_fd() const { return post_.get(); }
  void drain_post();
  void report(const Report& report) { reports_.push(report); }
  void report_lost();

 private:
  broker::Fd lost_, post_;
  boost::lockfree::spsc_queue<Message, boost::lockfree::capacity<1024>> messages_;
  boost::lockfree::spsc_queue<Report, boost::lockfree::capacity<16>> reports_;
};

}  // namespace host::scheduler
