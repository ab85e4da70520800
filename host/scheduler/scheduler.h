// The scheduler of GPU time: a thread that reads what all workers tell of their use (ring/ops/gpu_use.h), asks a Policy for each
// GPU, and has a Switcher carry its orders out. It is apart from the broker's loop, which may be busy for milliseconds; the
// two hand each other messages through queues without locks.
//
// While VMs contend for a GPU the thread looks each 50 us; while one alone uses it, a hundred times a second, for its account;
// else it sleeps until a worker rings. Each worker has a bell of its own.
//
// Thread-safety: one thread, the broker's, calls the functions.
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
    bool on = true;  // else nothing is switched: the driver slices, or its MPS server shares
    std::chrono::milliseconds longest_off{1000};
    bool operator==(const Options&) const = default;
  };
  // How a GPU is shared, or was within the last second.
  enum class Sharing : std::uint8_t { Unswitched, Alone, Leases };
  struct Report {
    std::map<Vm, Account> vms;                          // over all GPUs
    std::map<std::string, std::map<Vm, Account>> gpus;  // by GPU
    std::map<std::string, Sharing> sharing;             // likewise
    Time made{};
  };

  // Null where the thread cannot be had, and `error` is one sentence.
  static std::unique_ptr<Scheduler> start(const Options& options, std::string& error);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void change(const Options& options);
  // From now on this one switches; it is told first to let all workers on. Null: nobody does.
  void set_switcher(std::unique_ptr<Switcher> switcher);
  Vm add_vm(const Share& share);
  void change_vm(Vm vm, const Share& share);
  void remove_vm(Vm vm);
  Client add(Vm vm, std::shared_ptr<WorkerPages> pages);
  // The worker is ready: `rm_client` is its driver's client, which it has told before it served a guest. A number that an
  // older worker has told is this one's from now on. `gpus`: the names of those that the worker sees, by its ordinals.
  void ready(Client client, pid_t process, std::uint32_t rm_client, std::vector<std::string> gpus);
  void remove(Client client);

  // Readable once the switcher is lost, until take_lost() returns true.
  int lost_fd() const { return lost_.get(); }
  bool take_lost();
  // What is now. It waits for the thread's answer, which takes microseconds, and 20 ms at most: then it is the one before.
  const Report& report();
  // The newest that there is, unless it was made longer ago than this.
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

  // What is known of a worker on one GPU.
  struct OnGpu {
    std::uint32_t device = 0;              // its ordinal of the GPU
    std::optional<std::uint32_t> version;  // of its channels that were last switched
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
    std::optional<std::size_t> place;  // the switcher's; none: nobody can switch its channels
    bool under_way = false;
    Time began{};
    Time active{};       // when a VM last wanted it
    Time contended{};    // when more than one did
    Time read_tables{};  // when workers' channels were last looked at
    std::set<Vm> vms;
  };

  explicit Scheduler(const Options& options) : options_(options) {}
  void send(const Message& message);

  // The thread's.
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
  std::map<Vm, Share> shares_;       // the thread's, as the next ones
  std::map<std::string, Gpu> gpus_;  // by name
  std::map<Client, Worker> workers_;
  std::unique_ptr<Switcher> switcher_;
  std::vector<pollfd> bells_;  // `post_`, the switcher's, and those of `workers_` in their order
  std::uint32_t wake_ = 0;
  Time kept_{}, rested_{};
  std::shared_ptr<const Report> report_ = std::make_shared<Report>();  // the newest that was taken
  Vm vms_ = 0;
  Client clients_ = 0;
  std::thread thread_;
};

}  // namespace host::scheduler
