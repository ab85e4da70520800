// Who may give one GPU work, and when: the scheduler's decisions, without a thread, a clock or shared memory. The
// thread (host/turns/scheduler.h) calls step() with what the workers' pages say, and writes the grants that come back;
// tests call it in virtual time.
//
// Words. A *client* is a worker process on this GPU. A *turn* is the time in which one client alone submits. A *change*
// is what the GPU needs to go from one process to another (146 us on an H200). A *wait* is a call that waited for the
// GPU: the driver pays a change for each as soon as two processes have work.
//
// Regimes. *Slices*: every client is Open and the driver shares the GPU by time slices, which is best where programs
// keep a queue or use the GPU now and then. *Turns*: where slices make a program lose much of its time in waits,
// where a VM of the latency class has company, or where a *light* VM, which uses little of the GPU, has a heavy one
// beside it. *Settling* leads from one to the other: work that was queued before must end first, which takes a second
// where a program has queued a thousand long kernels. Meanwhile everybody else is Open. docs/design/028-turns.md has
// the measurements behind each number.
//
// Fairness. Each VM has a virtual time, which advances by the time of its turns over its weight; the waiting VM that is
// furthest behind goes next. A VM that comes back after a pause starts no further behind than one quantum. Under slices
// each VM has a debt instead: what it had of the GPU beyond its part, as far as that can be told. A VM whose debt grows
// too large is Closed for a moment (policy_debt.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "host/turns/wait_times.h"
#include "ring/turn_patience.h"
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
  std::uint64_t waited_ns = 0;  // in these waits, together
  std::uint64_t busy_ns = 0;    // with some call under way, while it was asked to tell
  bool under_way = false;       // a call that the guest waits for
  std::uint32_t heard = 0;      // the newest grant with `copies` that it has seen
  std::uint32_t held_up = 0;    // the grant under which what is left waits for values in memory
};

// A VM's account, since it came.
struct Account {
  Time held{};                 // turns, together
  std::uint64_t turns = 0;     // how many
  std::uint64_t overlong = 0;  // of these, how many had work running beyond `longest`
  std::uint64_t held_up = 0;   // and how many ended with work that waited for a value in memory
  Time waited{};               // for turns, together
  WaitTimes waits;             // each, of late
  std::uint64_t sliced = 0;    // of its processes, how many stand aside now, since their work does not end

  Account& operator+=(const Account& other) {
    held += other.held, turns += other.turns, overlong += other.overlong, held_up += other.held_up;
    waited += other.waited, waits += other.waits, sliced += other.sliced;
    return *this;
  }
};

// By what right a client may have used a GPU.
struct Right {
  Time until{};  // now, but where turns are taken, it has none, and it has answered that its work is done
  std::optional<Time> no_copies_since;  // where it was suspected, and has answered that none is under way
  unsigned unanswered = 0;  // how often in a row it has not answered for far too long, while it was suspected
  bool is_deaf = false;     // nor seen for far too long that it was suspected, as a keeper does at once
  // Where its gate is open beside others' turns, or its work waits for a value in memory: the part of the GPU's time that its VM
  // is charged with, of late.
  std::optional<double> charged{};
};

// So often in a row may a client that was suspected be silent, for 1 s, 4 s and 16 s. No queue of copies is as long.
constexpr unsigned most_unanswered = 3;

class Policy {
 public:
  using Client = std::uint64_t;
  using Vm = std::uint64_t;

  explicit Policy(Limits limits = {});

  void set_limits(Limits limits) { limits_ = limits; }
  // Off: every client stays Open, and nobody is looked at. On at first.
  void set_on(bool on) { on_ = on; }
  // On: somebody looks for clients that submit without a turn (host/turns/suspicion.h). Off at first.
  void set_watched(bool watched) { watched_ = watched; }
  // `weight`: above 0. A VM of the latency class ends others' turns at once.
  void set_share(Vm vm, double weight, bool latency) {
    vms_[vm].weight = weight;
    vms_[vm].latency = latency;
  }
  // `makes_context`: its worker begins with a context on this GPU. That, and its end, cost others time, with which its VM
  // is charged.
  void add(Client client, Vm vm, bool makes_context = false);
  // It was added, and comes from an earlier scheduler: `shown` is the grant that it sees, `said` what it has said until
  // now. Numbers go on behind `shown`, so that no answer to a grant of that scheduler's answers one of this one's.
  void take_over(Client client, ring::Grant shown, const Request& said);
  void remove(Client client, Time now);
  void forget(Vm vm);  // as soon as it has no clients

  using Ask = std::function<Request(Client)>;
  using Give = std::function<void(Client, ring::Grant)>;
  // Looks at all clients and gives the grants that change. Returns when it must be called again at the latest; zero:
  // as soon as possible, since somebody holds a turn or waits for one; Time::max(): when a client rings.
  Time step(Time now, const Ask& ask, const Give& give);

  bool takes_turns() const { return regime_ == Regime::Turns; }
  // How much GPU work a client may have under way in its turn.
  Time most_under_way() const { return limits_.quantum; }
  // By what right this client may have used the GPU. Precondition: it was added.
  Right right_of(Client client, Time now) const;
  // It has used the GPU without a turn, it seems. That may be large copies, which pass no gate: they do from now on. If its
  // gate is open, since its VM goes before others, the VM takes turns like others for a while. Nor is it believed for a
  // while that its work waits for values in memory.
  void suspect(Client client, Time now);
  Account account(Vm vm, Time now) const;

 private:
  enum class Regime : std::uint8_t { Slices, Settling, Turns };
  struct Part {  // of the GPU: by the VMs' weights, and if all of them were equal
    double by_weights, of_equals;
  };
  enum class Round : std::uint8_t { First, Others, Last };  // of settling

  struct VmState {
    double weight = 1;
    bool latency = false;
    bool forgotten = false;
    Time behind{};  // its virtual time
    Account account;
    // Of the GPU's time it wants, and costs others, this part, of late; in turns since the newest sample, in seconds.
    double part = 0, wanted = 0;
    int samples = 0;     // that `part` is of
    bool light = false;  // it wants little, now and then
    Time not_light_until{};
    Time not_first_until{};  // it has used more than it said, while it went first
    // Under slices.
    double debt = 0;           // in seconds; below 0: others have had what was its part
    double busy = 0;           // the part of its time, of late, in which one of its clients waits for the GPU
    bool shallow = false;      // its queues are kept short
    std::optional<Time> held;  // since when it is Closed
    std::optional<Time> idle;  // since when nothing of it is under way, then
    Time let_in{};             // when it was last let in again
    Time longest_hold{};       // how long it may be kept from the GPU
  };
  struct Use {           // of one VM, in one sample
    double had = 0;      // seconds of the GPU
    double busy = 0;     // and with work on it, of all clients together
    bool wants = false;  // all the time
  };
  struct Waits {
    int samples = 0;
    double each_second = 0;
    double part = 0;  // of its time that a client spends in them
  };
  struct Pieces {                           // of a client's work, in its turns: sums in which older turns weigh less
    double count = 0, waited = 0, had = 0;  // in seconds
    void add(double waits, std::uint64_t waited_ns, Time time);
    Time each(double sum) const;  // Precondition: something was added
  };
  struct ClientState {
    Vm vm = 0;
    ring::Grant grant;
    Request said;
    std::uint64_t served = 0;   // when it had its last turn, in turns
    std::optional<Time> asked;  // since when it waits for one
    Time wanted{};              // when it last waited for one or had one
    bool came_back = false;     // after a pause, and has had no turn since
    std::uint64_t let_in = 0;   // what it had submitted when its gate was opened, or in its last turn
    Request sampled;            // the newest sample
    Waits waits, in_slices;     // of late, and when it was last under slices
    std::optional<Time> last_active;
    // Learnt in its turns: from what it said and had since then.
    Request learnt;
    Time had{};
    Time learnt_at{};
    Pieces pieces;
    std::optional<Time> wait;   // how long a wait takes if the GPU is its own
    std::optional<Time> piece;  // of work: the time from one wait to the next
    bool gains = false;         // by turns
    std::optional<Time> tried;  // when turns were last tried, and paid for nobody
    // In a turn: since when it has waited for all that it has submitted, and how long such a pause may last.
    std::optional<Time> waited_for_all;
    ring::TurnPatience patience;
    std::optional<Time> done_at;  // when it last had no work any more, after its gate was closed
    bool was_watched = false;     // at the newest sample
    std::optional<Time> idle;     // since when nothing of it is under way, while its VM is held back
    // Work that does not end.
    unsigned overlong_in_a_row = 0;
    Time sliced_until{};
    Time at_work_until{};      // whatever it says, its work is not held up
    bool was_held_up = false;  // some of what is under way
    Time ended{};              // when it last had nothing to end
    Time barred_until{};
    Time by_right{};  // when it last might use the GPU
    // Suspected: its large copies need turns until then, and since when it has none under way.
    std::optional<Time> suspected_until;
    std::optional<Time> no_copies_since;
    unsigned unanswered = 0;      // how often in a row it has not said that none is under way
    std::optional<Time> unheard;  // since when it has not seen that it is suspected
    bool hears = true;            // its worker is one that says so
    bool makes_context = false;
  };
  struct Holder {
    Client client = 0;
    std::uint32_t turn = 0;       // the grant's number
    Time since{}, charged{};      // `charged`: its VM's virtual time has what was before
    std::optional<Time> ended{};  // when it was told to end
    bool gave_up = false;         // it was told since what it has waits for a value in memory
    // When it was last seen to have waited, and what it had submitted until then.
    std::optional<Time> waited{};
    std::uint64_t submitted = 0;
    Time worked{};                 // when it was last seen to submit, or in a call that it waits for
    std::optional<Client> woke{};  // who goes next, as was thought when somebody was last woken
    Time woke_at{};
  };

  void read(Time now, const Ask& ask);
  void charge_work_beside_turns(ClientState& client, Time time);
  void watch_work(ClientState& holder, const Request& before, Time now);
  static void note_pause(ClientState& client, Time now);
  void sample(Time now);
  void begin_anew_in_other_company(Time now);
  void add(Waits& waits, const ClientState& client, double elapsed) const;
  ring::GrantMode without_turn(const ClientState& client) const;
  bool wants_turn(const ClientState& client) const;
  bool is_active(const ClientState& client, Time now) const;
  std::size_t active(Time now) const;
  Part part_of_vm(Vm vm, Time now) const;
  void weigh(Time now, double elapsed);
  std::optional<double> part_wanted(Vm vm, Time now, double elapsed) const;
  bool wants_latency(Time now) const;
  bool light_beside_heavy(Time now) const;
  bool somebody_goes_first(Time now) const { return wants_latency(now) || light_beside_heavy(now); }
  bool somebody_is_sliced(Time now) const;

  bool may_use(Client client, const ClientState& state) const;
  void note_right(ClientState& client, bool might_use, Time now) const;
  bool somebody_might_cheat(Time now) const;
  bool owes_an_answer(const ClientState& client) const;
  static bool copies_need_turns(const ClientState& client, ring::GrantMode mode);
  void close_who_is_not(const Give& give);
  void bar_who_does_not_end(Time now);
  void charge_for_context(const ClientState& client, Time cost);

  void keep_debts(Time now, double elapsed);
  std::map<Vm, Use> uses(Time now, double elapsed);
  bool has_known_use(const ClientState& client, Time now, double elapsed) const;
  double part_used(const ClientState& client, Time now, double elapsed) const;
  double busy_part(const ClientState& client, double elapsed) const;
  double ending_part(const ClientState& client, double elapsed) const;
  Time hold_of(Vm vm, double part) const;
  void charge_debts(const std::map<Vm, Use>& uses, double elapsed);
  void hold_back(Time now, const std::map<Vm, Use>& uses);
  bool may_be_held(Vm vm, Time now, const std::map<Vm, Use>& uses) const;
  bool is_held_enough(Vm vm, Time now, const std::map<Vm, Use>& uses);
  bool note_idle(Vm vm, Time now);
  bool has_waited_enough(const ClientState& client, Time now) const;
  void let_in(Vm number, Time now);
  void note_vain_hold(Time now);
  void judge_hold(const std::map<Vm, Use>& uses, double elapsed);
  bool held_in_vain() const;
  void forgive_debts();

  double gain(const ClientState& client, double part, Time now) const;
  static bool has_short_pieces(const ClientState& client);
  bool was_seen_in_slices(const ClientState& client, Time now) const;
  bool does_more(const ClientState& client, Time now) const;
  bool would_pay(Time now) const;
  bool pays(Time now) const;
  bool has_tried_all(Time now) const;
  Time patience(Time now) const;

  Time let_everybody(Time now, const Give& give);
  Time in_slices(Time now, const Give& give);
  Time in_settling(Time now, const Give& give);
  Time in_turns(Time now, const Give& give);
  void begin_settling(Time now, const Give& give);
  void close_all(Time now, const Give& give);
  void let_others(Time now, bool all, const Give& give);
  void begin_turns(Time now);
  void note_success(Time now, bool success);
  static bool is_ending(const ClientState& client);
  bool is_held_up(const ClientState& client) const;
  bool still_ends(const ClientState& client) const;
  bool has_work(const ClientState& client) const;
  void begin_slices(Time now, const Give& give);
  static void stand_aside(ClientState& client, Time now, Time lost);

  void watch_holder(Time now, const Give& give);
  void go_on_alone(Time now);
  void end_turn(Time now);
  void end_overlong(Time now);
  void end_held_up(Time now);
  bool must_end(const ClientState& waiting, Time now) const;
  bool holder_is_done(const ClientState& holder, Time now) const;
  bool has_waited_for_all(const ClientState& holder) const;
  bool may_be_done(const ClientState& holder, Time now) const;
  void wake(Client waiting, Time now, const Give& give);
  bool goes_in_beside(std::optional<Client> waiting) const;
  Time quantum_of(const ClientState& client, Time now) const;
  Time price(const ClientState& holder, Time now) const;
  Time cost_of_beginning(Time now) const;
  void charge(Time now);
  void learn(ClientState& client, Time now);
  void learn_anew(Time now);
  void next_turn(Time now, const Give& give);
  std::optional<Client> best_waiting() const;
  bool at_once(const VmState& vm) const;
  bool goes_before(const ClientState& a, const ClientState& b) const;
  void set_all(ring::GrantMode mode, const Give& give);
  void set_in_slices(bool quiet, Time now, const Give& give);
  void set_unless_it_has(ClientState& state, Client client, ring::Grant grant, const Give& give);
  void set(ClientState& state, Client client, ring::Grant grant, const Give& give);

  Limits limits_;
  bool on_ = true, watched_ = false;
  Regime regime_ = Regime::Slices;
  std::map<Client, ClientState> clients_;
  std::map<Vm, VmState> vms_;
  std::optional<Holder> holder_;
  std::optional<Time> sampled_;
  Time read_{};                        // when the clients were last asked
  Time may_begin_{};                   // turns do not begin before this
  Time dwell_;                         // how long slices last at least
  Time began_{};                       // this regime
  Time closed_{};                      // while settling: when everybody was told to end
  Time paid_{};                        // when turns were last seen to pay
  Time may_hold_{};                    // nobody is held back before this
  Time hold_dwell_{};                  // how long nobody is, if it is of no use once more
  double freed_ = 0, freed_used_ = 0;  // seconds of the GPU, while somebody was held back
  Round settling_ = Round::First;
  std::size_t company_ = 0;             // how many were active when turns began
  std::size_t sampled_company_ = 0;     // and when the samples of now began
  double costs_ = 0, gainers_had_ = 0;  // of late, in seconds: what turns cost, what those had who gain by them
  Time floor_{};                        // the virtual time of the VM that had the newest turn, at its begin
  std::uint64_t turns_ = 0;
  std::uint32_t number_ = 0;
};

}  // namespace host::turns
