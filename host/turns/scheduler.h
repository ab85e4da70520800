// The scheduler of turns: a thread that reads the requests of all workers, asks a Policy for each GPU, and writes the
// grants. It is apart from the broker's loop, which may be busy for milliseconds; the two hand each other messages
// through queues without locks. ring/turns.h has the pages, host/turns/policy.h the decisions.
//
// While processes take turns the thread polls, so that a grant follows a request within microseconds; `naps` makes it
// sleep 50 us between two looks, for a machine without a processor to spare. Where nobody takes turns it looks a hundred
// times a second; ten times where no process submits, since a worker may submit without a ring; and not at all while no GPU
// has two processes. Each worker has a bell of its own (host/turns/line.h).
//
// Thread-safety: one thread, the broker's, calls the functions.
#pragma once

#include <poll.h>

#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "host/broker/fd.h"
#include "host/turns/line.h"
#include "host/turns/policy.h"

namespace host::turns {

class Scheduler {
 public:
  using Vm = Policy::Vm;
  using Client = Policy::Client;

  struct Options {
    bool on = true;  // else every worker submits when it likes, and the driver slices
    Limits limits;
    bool operator==(const Options&) const = default;
  };
  struct Share {
    double weight = 1;
    bool latency = false;
    bool operator==(const Share&) const = default;
  };
  // Of each VM over all GPUs, and of each GPU.
  struct Report {
    std::map<Vm, Account> vms;
    std::map<std::string, bool> takes_turns;                // by GPU
    std::map<std::string, Time> in_turns;                   // likewise: for how long turns were taken, together
    std::map<std::string, std::map<Vm, Time>> held;         // likewise: each VM's turns
    std::map<std::string, std::map<Client, Right>> rights;  // of each GPU that takes turns
    Time made{};
  };

  // Null where the thread cannot be had, and `error` is one sentence.
  static std::unique_ptr<Scheduler> start(const Options& options, bool naps, std::string& error);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void change(const Options& options);
  // Whether somebody looks for workers that submit without a turn.
  void set_watched(bool watched);
  Vm add_vm(const Share& share);
  void change_vm(Vm vm, const Share& share);
  void remove_vm(Vm vm);
  // A worker that comes, or comes from an earlier scheduler, as its grants show. `gpus`: the names of those that it
  // sees, by its ordinals.
  Client add(Vm vm, std::shared_ptr<Line> line, std::vector<std::string> gpus);
  void remove(Client client);
  // It has used this GPU without a turn, it seems (Policy::suspect()).
  void suspect(Client client, const std::string& gpu);

  // Readable once a GPU has begun to take turns; whoever reads it empties it.
  int news_fd() const { return news_.get(); }
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
    std::shared_ptr<Line> line;
    std::vector<std::string> gpus;
  };
  struct NoClient {
    Client client;
  };
  struct Watched {
    bool watched;
  };
  struct Suspect {
    Client client;
    std::string gpu;
  };
  struct Tell {};
  struct Stop {};
  using Message = std::variant<Stop, Options, NewShare, NoVm, NewClient, NoClient, Watched, Suspect, Tell>;

  struct Place {  // where a client's words for a GPU are
    std::shared_ptr<Line> line;
    std::uint32_t device;
  };
  struct Gpu {
    Policy policy;
    std::map<Client, Place> places;
    bool took_turns = false;     // after the last step
    Time stepped{}, in_turns{};  // when that was; for how long turns were taken until then, together
    Time in_turns_at(Time now) const { return took_turns ? in_turns + (now - stepped) : in_turns; }
  };

  Scheduler(const Options& options, bool naps) : options_(options), naps_(naps) {}
  void send(const Message& message);

  // The thread's.
  void run();
  bool take_messages();
  void take(const Options& options);
  void take(const NewShare& message);
  void take(const NoVm& message);
  void take(const NewClient& message);
  void take(const NoClient& message);
  void take(Watched message);
  void take(const Suspect& message);
  void take(Tell);
  void take(Stop) {}
  static Request request_of(const Place& place);
  Time step(Gpu& gpu, Time now);
  void note_turns(Gpu& gpu, Time now) const;
  static void give(const Place& place, ring::Grant grant, Time most_under_way);
  void find_bells();
  void rest(Time until_next);

  Options options_;  // the thread's from its start
  bool watched_ = false;
  const bool naps_;
  broker::Fd news_;
  broker::Fd post_;  // rung when there is a message; nobody else has it
  boost::lockfree::spsc_queue<Message, boost::lockfree::capacity<1024>> messages_;
  boost::lockfree::spsc_queue<std::shared_ptr<const Report>, boost::lockfree::capacity<16>> reports_;
  std::map<Vm, Share> shares_;                                         // the thread's, as the next two
  std::map<std::string, Gpu> gpus_;                                    // by name
  std::map<Client, std::shared_ptr<Line>> lines_;                      // the thread's, as the next
  std::vector<pollfd> bells_;                                          // `post_`, and those of `lines_` in their order
  std::shared_ptr<const Report> report_ = std::make_shared<Report>();  // the newest that was taken
  Vm vms_ = 0;
  Client clients_ = 0;
  std::thread thread_;
};

}  // namespace host::turns
