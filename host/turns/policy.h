// Who may give one GPU work, and when: the scheduler's decisions, without a thread, a clock or shared memory. The
// thread (host/turns/scheduler.h) calls step() with what the workers' pages say, and writes the grants that come back;
// tests call it in virtual time.
//
// Words. A *client* is a worker process on this GPU. A *turn* is the time in which one client alone submits. A *change*
// is what the GPU needs to go from one process to another (146 us on an H200). A *wait* is a call that waited for the
// GPU: the driver pays a change for each as soon as two processes have work.
//
// Two regimes. *Slices*: every client is Open and the driver shares the GPU by time slices, which is best where
// programs keep a queue or use the GPU now and then. *Turns*: where waits are so many that changes would eat more than
// a sixth of the time. docs/design/028-turns.md has the measurements behind each number.
//
// Fairness. Each VM has a virtual time, which advances by the time of its turns over its weight; the waiting VM that is
// furthest behind goes next. A VM that comes back after a pause starts no further behind than one quantum.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "ring/turns.h"

namespace host::turns {

using Time = std::chrono::nanoseconds;  // since any beginning that does not change

// The operator's numbers.
struct Limits {
  Time quantum = std::chrono::milliseconds(1);
  // How long a turn that was ended may still have work running. Then the next begins, and the driver slices.
  Time longest = std::chrono::milliseconds(20);

  bool operator==(const Limits&) const = default;
};

// What a client's page says, copied once. Nothing in it is believed beyond its own client's harm.
struct Request {
  bool waits_for_turn = false;
  std::uint32_t given_back = 0;
  std::uint64_t submitted = 0, waits = 0;
};

// A VM's account, since it came.
struct Account {
  Time held{};                 // turns, together
  std::uint64_t turns = 0;     // how many
  std::uint64_t overlong = 0;  // of these, how many had work running beyond `longest`

  Account& operator+=(const Account& other) {
    held += other.held, turns += other.turns, overlong += other.overlong;
    return *this;
  }
};

class Policy {
 public:
  using Client = std::uint64_t;
  using Vm = std::uint64_t;

  explicit Policy(Limits limits = {}) : limits_(limits) {}

  void set_limits(Limits limits) { limits_ = limits; }
  // Off: every client stays Open, and nobody is looked at. On at first.
  void set_on(bool on) { on_ = on; }
  // `weight`: above 0. A VM of the latency class ends others' turns at once.
  void set_share(Vm vm, double weight, bool latency) {
    vms_[vm].weight = weight;
    vms_[vm].latency = latency;
  }
  void add(Client client, Vm vm);
  void remove(Client client, Time now);
  void forget(Vm vm) { vms_.erase(vm); }

  using Ask = std::function<Request(Client)>;
  using Give = std::function<void(Client, ring::Grant)>;
  // Looks at all clients and gives the grants that change. Returns when it must be called again at the latest; zero:
  // as soon as possible, since somebody holds a turn or waits for one; Time::max(): when a client comes.
  Time step(Time now, const Ask& ask, const Give& give);

  bool takes_turns() const { return regime_ == Regime::Turns; }
  Account account(Vm vm) const;

 private:
  enum class Regime : std::uint8_t { Slices, Turns };

  struct VmState {
    double weight = 1;
    bool latency = false;
    Time behind{};  // its virtual time
    Account account;
  };
  struct ClientState {
    Vm vm = 0;
    ring::Grant grant;
    Request said;
    std::uint64_t served = 0;  // when it had its last turn, in turns
    // Of the newest sample.
    std::uint64_t waits = 0;
    double waits_per_second = 0;
    std::optional<Time> last_active;
  };
  struct Holder {
    Client client = 0;
    std::uint32_t turn = 0;  // the grant's number
    Time since{};
    std::optional<Time> ended;  // when it was told to end
  };

  void sample(Time now);
  bool is_active(const ClientState& client, Time now) const;
  std::size_t active(Time now) const;
  double share_of_changes(Time now) const;

  void begin_turns(Time now, const Give& give);
  void end_turns(Time now, const Give& give);
  Time let_everybody(Time now, const Give& give);
  Time in_slices(Time now, const Give& give);
  Time in_turns(Time now, const Give& give);

  void watch_holder(Time now, const Give& give);
  bool must_end(const ClientState& waiting, Time now) const;
  void charge(Time now);
  void next_turn(Time now, const Give& give);
  bool settled(Time now) const;
  std::optional<Client> best_waiting() const;
  bool goes_before(const ClientState& a, const ClientState& b) const;
  void read(Time now, const Ask& ask);
  void set_all(ring::GrantMode mode, const Give& give);
  void set(ClientState& state, Client client, ring::GrantMode mode, const Give& give);

  Limits limits_;
  bool on_ = true;
  Regime regime_ = Regime::Slices;
  std::map<Client, ClientState> clients_;
  std::map<Vm, VmState> vms_;
  std::optional<Holder> holder_;
  std::optional<Time> sampled_;
  Time may_change_{};  // no other regime before this
  Time paid_{};        // when turns were last seen to pay
  Time settles_{};     // the first turn waits so long for work of the time before
  Time floor_{};       // the virtual time of the VM that had the newest turn, at its begin
  std::uint64_t turns_ = 0;
  std::uint32_t number_ = 0;
};

}  // namespace host::turns
