// The scheduler of GPU time: a thread that reads the reports of all workers (ring/ops/gpu_use.h). It asks a Policy for
// each GPU, and has a Switcher carry out the orders. It is separate from the broker's loop, which may be busy for
// milliseconds. Messages between the two pass through lock-free queues.
//
// While VMs contend for a GPU the thread looks every 50 us; while one VM uses it, a hundred times a second, for the
// account. Otherwise it sleeps until a worker sends a doorbell. Each worker has a doorbell of its own.
//
// Thread-safety: only the broker's thread calls the functions.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "host/base/fd.h"
#include "host/scheduler/policy.h"
#include "host/scheduler/switcher.h"
#include "host/scheduler/worker_pages.h"

namespace host::scheduler {

class Scheduler {
 public:
  using Vm = Policy::Vm;
  using Share = Policy::Share;
  using Client = std::uint32_t;

  struct Options {
    bool on = true;  // false: nothing is switched, and driver time slicing or the MPS server shares the GPU
    std::chrono::milliseconds longest_off{1000};
    bool operator==(const Options&) const = default;
  };
  // How a GPU is shared now, or was within the last second.
  enum class Sharing : std::uint8_t { Unswitched, Alone, Leases };
  struct Report {
    std::map<Vm, Account> vms;                          // over all GPUs
    std::map<std::string, std::map<Vm, Account>> gpus;  // by GPU
    std::map<std::string, Sharing> sharing;             // by GPU
    Time made{};
  };

  // Null if the thread cannot be started, and `error` is one sentence.
  static std::unique_ptr<Scheduler> start(const Options& options, std::string& error);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void change(const Options& options);
  // Replaces the switcher. The new one first enables all workers. Null: nothing is switched.
  void set_switcher(std::unique_ptr<Switcher> switcher);
  Vm add_vm(const Share& share);
  void change_vm(Vm vm, const Share& share);
  void remove_vm(Vm vm);
  Client add(Vm vm, std::shared_ptr<WorkerPages> pages);
  // The worker is ready. `rm_client`: its driver's client, which it reported before it served a guest; if an older
  // worker reported the same number, this worker has it now. `gpus`: names of the GPUs that the worker sees, by its
  // ordinals.
  void ready(Client client, pid_t process, std::uint32_t rm_client, std::vector<std::string> gpus);
  void remove(Client client);

  // Readable when the switcher is lost, until take_lost() returns true.
  int lost_fd() const { return lost_.get(); }
  bool take_lost();
  // The present state. Waits for the thread's answer, which takes microseconds; after 20 ms it returns the last report.
  const Report& report();
  // The last report, unless it is older than `age`; then a new one.
  const Report& report_of(Time age);

 private:
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
  struct Tell {};
  struct Stop {};
  using Message = std::variant<Stop, Options, NewShare, NoVm, NewClient, Ready, NoClient, NewSwitcher, Tell>;

  // A worker's state on one GPU.
  struct OnGpu {
    std::uint32_t device = 0;              // the worker's ordinal of the GPU
    std::optional<std::uint32_t> version;  // version of the channel table last switched
    std::uint64_t seen = 0;                // submissions at the last look
  };
  struct Worker {
    Vm vm = 0;
    std::shared_ptr<WorkerPages> pages;
    pid_t process = 0;
    std::uint32_t rm_client = 0;
    std::map<std::string, OnGpu> on;  // by GPU
  };
  struct Gpu {
    Policy policy;
    std::optional<std::size_t> place;  // the switcher's index; none: its channels cannot be switched
    bool under_way = false;
    Time began{};
    Time active{};       // when a VM last wanted it
    Time contended{};    // when two VMs last did
    Time read_tables{};  // when workers' channel tables were last read
    std::set<Vm> vms;
  };

  explicit Scheduler(const Options& options) : options_(options) {}
  void send(const Message& message);

  // Members from here on belong to the scheduler's thread.
  void run();
  bool take_messages();
  void take(const Options& options);
  void take(const NewShare& message);
  void take(const NoVm& message);
  void take(const NewClient& message);
  void take(const Ready& message);
  void take(const NoClient& message);
  void take(const NewSwitcher& message);
  void take(Tell);
  void take(Stop) {}
  Demand demand_of(const Worker& worker, std::uint32_t device) const;
  void look(const std::string& name, Gpu& gpu, Time now);
  void look_at_channels(const std::string& name, Gpu& gpu, Time now);
  void carry_out(const std::string& name, Gpu& gpu, const Policy::Order& order, Time now);
  std::vector<Switcher::Worker> workers_of(const std::string& name, const Gpu& gpu, const std::vector<Vm>& vms,
                                           bool to_be_on);
  void hear_switcher(Time now);
  void lose_switcher();
  void let_all_on();
  void arm(Worker& worker);
  void find_bells();
  void rest(Time until_next);

  Options options_;  // the thread's from its start
  broker::Fd lost_, post_;
  boost::lockfree::spsc_queue<Message, boost::lockfree::capacity<1024>> messages_;
  boost::lockfree::spsc_queue<std::shared_ptr<const Report>, boost::lockfree::capacity<16>> reports_;
  std::map<Vm, Share> shares_;       // the thread's, like the next ones
  std::map<std::string, Gpu> gpus_;  // by name
  std::map<Client, Worker> workers_;
  std::unique_ptr<Switcher> switcher_;
  std::vector<pollfd> bells_;  // `post_`, the switcher's, and those of `workers_` in order
  std::uint32_t wake_ = 0;
  Time kept_{}, rested_{};
  std::shared_ptr<const Report> report_ = std::make_shared<Report>();  // the newest one received
  Vm vms_ = 0;
  Client clients_ = 0;
  std::thread thread_;
};

}  // namespace host::scheduler
