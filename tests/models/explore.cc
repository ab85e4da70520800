// The explorer's machine: threads are fibers, memory is a set of histories, and a depth-first search covers all
// choices. An execution is a list of choices. The next execution changes the last choice that has an untried
// alternative.
#include "tests/models/explore.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <set>
#include <utility>

namespace explore {
namespace {

constexpr unsigned max_threads = 6, max_places = 36;
constexpr std::size_t stack_bytes = 256 << 10, granule = 16;

// How much of each place's history a thread has seen, and which steps of each thread happened before the thread's
// present step.
struct Knowledge {
  std::array<std::uint16_t, max_places> seen{};
  std::array<std::uint32_t, max_threads> clock{};
  void learn(const Knowledge& other) {
    for (unsigned i = 0; i < max_places; ++i) seen[i] = std::max(seen[i], other.seen[i]);
    for (unsigned i = 0; i < max_threads; ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
};

struct Message {
  std::uint64_t value;
  Knowledge released;  // the knowledge that an acquiring reader gains
};

struct Place {
  const void* address;
  std::vector<Message> history;
};

struct Cell {  // plain bytes, `granule` of them
  unsigned writer = 0;
  std::uint32_t written = 0;
  std::array<std::uint32_t, max_threads> read{};
};

struct Bytes {
  const std::byte* from;
  std::size_t bytes;
  std::vector<Cell> cells;
};

struct Failed {};  // leaves finish(); threads stay at their present step

enum class State { Ready, Paused, Waiting, Asleep, Done };

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  std::function<void()> body;
  State state;
  Knowledge knows, pending, fenced;  // pending: to gain at an acquire fence; fenced: at the last release fence
  const void* futex;
  std::uint64_t stores_when_paused;
  bool must_look;  // another thread's process fence has shown this thread stores that its loop has not looked at
  unsigned place;  // the place whose value a waiting thread needs to be at least `wanted`
  std::uint64_t wanted;
};

bool acquires(Order o) { return o != Order::relaxed && o != Order::release; }
bool releases(Order o) { return o == Order::release || o == Order::acq_rel || o == Order::seq_cst; }

std::string name_of(const Site& site) {
  const std::string file = site.file;
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(site.line);
}

class Machine {
 public:
  Verdict run(const std::function<void(std::vector<std::function<void()>>&, std::function<void()>&)>& make,
              const Options& options) {
    options_ = options;
    path_.clear();
    sites_.clear();
    Verdict verdict;
    do {
      ++verdict.executions;
      execute(make);
    } while (error_.empty() && next_path() && verdict.executions < options.executions);
    verdict.complete = !error_.empty() || path_.empty();
    verdict.error = error_;
    if (!error_.empty()) {
      tracing_ = true;
      execute(make);
      tracing_ = false;
      verdict.trace = trace_;
    }
    verdict.sites.assign(sites_.begin(), sites_.end());
    return verdict;
  }

  // ---- the schedule

  Order step(const char* what, Order order, const Site& site) {
    if (!running_) return order;
    const std::string* name = order == Order::relaxed && !tracing_ ? nullptr : &site_name(site);
    if (order != Order::relaxed) {
      sites_.insert(*name);
      if (*name == options_.weaken) order = Order::relaxed;
    }
    reschedule();
    if (tracing_) note(std::string(what) + " at " + *name);
    ++self().knows.clock[current_];
    return order;
  }

  [[noreturn]] void fail(const std::string& what) {
    error_ = what;
    if (tracing_) note(what);
    if (!running_) throw Failed{};
    setcontext(&main_);
    std::abort();
  }

  void pause() {
    reschedule();
    Thread& t = self();
    t.state = State::Paused;
    t.stores_when_paused = up_to_date(t) && !t.must_look ? stores_ : ~std::uint64_t{0};
    t.must_look = false;
    leave();
    for (unsigned p = 0; p < places_.size(); ++p) t.knows.seen[p] = last(p);
  }

  void wait_for(const void* address, std::uint64_t wanted) {
    reschedule();
    Thread& t = self();
    t.state = State::Waiting;
    t.place = find(address);
    t.wanted = wanted;
    if (!can_go_on(t)) leave();
    t.state = State::Ready;
    const auto& history = places_[t.place].history;
    unsigned enough = 0;  // the number of choices after which only the latest values are read
    for (unsigned i = last(t.place); i >= t.knows.seen[t.place] && history[i].value >= wanted; --i) {
      ++enough;
      if (i == 0) break;
    }
    see(t.place, last(t.place) - choose(std::max(enough, 1u)), Order::acquire);
    if (tracing_) note("waited");
  }

  void futex_wait(const void* word, std::uint32_t expected) {
    reschedule();
    full_fence();
    const std::uint64_t value = load(word, Order::relaxed);
    if (tracing_) note("futex_wait finds " + std::to_string(value));
    if (value != expected) return;
    self().state = State::Asleep;
    self().futex = word;
    leave();
  }

  void futex_wake(const void* word) {
    if (!running_) return;  // the call comes from a world's constructor or from finish()
    reschedule();
    full_fence();
    if (tracing_) note("futex_wake");
    for (unsigned i = 0; i < count_; ++i)
      if (threads_[i].state == State::Asleep && threads_[i].futex == word) threads_[i].state = State::Ready;
  }

  // ---- the memory

  void create(const void* place, std::uint64_t value) {
    for (Place& p : places_)
      if (p.address == place) {
        p.history.assign(1, {value, {}});
        return;
      }
    if (places_.size() == max_places) std::abort();
    places_.push_back({place, {{value, {}}}});
  }

  std::uint64_t load(const void* address, Order order) {
    const unsigned p = find(address);
    if (!running_) return places_[p].history.back().value;
    Thread& t = self();
    if (order == Order::seq_cst) t.knows.seen[p] = std::max(t.knows.seen[p], consistent_.seen[p]);
    const unsigned behind = choose(last(p) - t.knows.seen[p] + 1u);  // 0 chooses the latest value
    return see(p, last(p) - behind, order);
  }

  std::uint64_t read_last(const void* address, Order order) {
    const unsigned p = find(address);
    return running_ ? see(p, last(p), order) : places_[p].history.back().value;
  }

  void store(const void* address, std::uint64_t value, Order order, bool after_read = false) {
    if (!running_) return create(address, value);
    const unsigned p = find(address);
    Thread& t = self();
    Knowledge released = releases(order) ? t.knows : t.fenced;
    if (after_read) released.learn(places_[p].history.back().released);  // the store continues a release sequence
    places_[p].history.push_back({value, released});
    t.knows.seen[p] = last(p);
    if (releases(order)) places_[p].history.back().released.seen[p] = last(p);
    if (order == Order::seq_cst) consistent_.seen[p] = last(p);
    ++t.knows.clock[current_];  // later steps do not belong to that release
    ++stores_;
    if (tracing_) note("  = " + std::to_string(value));
  }

  void fence(Order order) {
    if (order == Order::relaxed || !running_) return;
    if (order == Order::seq_cst) return full_fence();
    if (acquires(order)) self().knows.learn(self().pending);
    if (releases(order)) self().fenced = self().knows;
  }

  // The kernel interrupts each thread at an unknown step during the call. The explorer interrupts all threads at one
  // step, since any other thread may run before that step and after it.
  void process_fence() {
    reschedule();
    if (tracing_) note("process fence");
    full_fence(self());
    for (unsigned i = 0; i < count_; ++i) {
      full_fence(threads_[i]);
      threads_[i].must_look = true;
    }
    full_fence(self());
  }

  void share(const void* at, std::size_t bytes) {
    bytes_.push_back({static_cast<const std::byte*>(at), bytes, std::vector<Cell>((bytes + granule - 1) / granule)});
  }

  void touch(const void* at, std::size_t bytes, bool write) {
    if (!running_) return;
    for (Bytes& b : bytes_) {
      const auto* from = static_cast<const std::byte*>(at);
      if (from < b.from || from >= b.from + b.bytes) continue;
      const auto first = static_cast<std::size_t>(from - b.from);
      if (bytes > b.bytes - first) fail("an access runs over the end of the shared bytes");
      for (std::size_t c = first / granule; c < (first + bytes + granule - 1) / granule; ++c) touch(b.cells[c], write);
    }
  }

 private:
  struct Choice {
    unsigned taken, of;
  };

  Thread& self() { return threads_[current_]; }
  std::uint16_t last(unsigned p) const { return static_cast<std::uint16_t>(places_[p].history.size() - 1); }

  unsigned find(const void* address) const {
    for (unsigned p = 0; p < places_.size(); ++p)
      if (places_[p].address == address) return p;
    std::abort();
  }

  std::uint64_t see(unsigned p, unsigned index, Order order) {
    Thread& t = self();
    const Message& m = places_[p].history[index];
    t.knows.seen[p] = std::max(t.knows.seen[p], static_cast<std::uint16_t>(index));
    (acquires(order) ? t.knows : t.pending).learn(m.released);
    if (tracing_) note("  sees " + std::to_string(m.value) + (index == last(p) ? "" : " (stale)"));
    return m.value;
  }

  void full_fence() { full_fence(self()); }
  void full_fence(Thread& t) {
    t.knows.learn(t.pending);
    for (unsigned p = 0; p < max_places; ++p)
      t.knows.seen[p] = consistent_.seen[p] = std::max(t.knows.seen[p], consistent_.seen[p]);
    t.fenced = t.knows;
  }

  void touch(Cell& cell, bool write) {
    Thread& t = self();
    if (cell.written > t.knows.clock[cell.writer]) fail("a data race: bytes are used that nobody has handed over");
    if (!write) {
      cell.read[current_] = t.knows.clock[current_];
      return;
    }
    for (unsigned i = 0; i < max_threads; ++i)
      if (i != current_ && cell.read[i] > t.knows.clock[i]) fail("a data race: bytes are written that are still read");
    cell.writer = current_;
    cell.written = t.knows.clock[current_];
  }

  bool up_to_date(const Thread& t) const {
    for (unsigned p = 0; p < places_.size(); ++p)
      if (t.knows.seen[p] != last(p)) return false;
    return true;
  }

  bool can_go_on(const Thread& t) const {
    if (t.state == State::Waiting) return places_[t.place].history.back().value >= t.wanted;
    return t.state == State::Ready || (t.state == State::Paused && t.stores_when_paused != stores_);
  }

  unsigned choose(unsigned of) {
    if (of == 1) return 0;
    if (depth_ == path_.size()) path_.push_back({0, of});
    if (path_[depth_].of != of) std::abort();  // the scenario is not deterministic
    return path_[depth_++].taken;
  }

  bool next_path() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().of) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  // The running thread could continue. Chooses this thread or another one.
  void reschedule() {
    if (preemptions_ >= options_.preemptions) return;
    std::array<unsigned, max_threads> able{current_};
    unsigned n = 1;
    for (unsigned i = 0; i < count_; ++i)
      if (i != current_ && can_go_on(threads_[i])) able[n++] = i;
    if (const unsigned to = able[choose(n)]; to != current_) {
      ++preemptions_;
      go_to(to);
    }
  }

  // The running thread is blocked. Chooses another thread.
  void leave() {
    std::array<unsigned, max_threads> able{};
    unsigned n = 0;
    for (unsigned i = 0; i < count_; ++i)
      if (can_go_on(threads_[i])) able[n++] = i;
    if (n != 0) return go_to(able[choose(n)]);
    for (unsigned i = 0; i + options_.daemons < count_; ++i)
      if (threads_[i].state != State::Done)
        fail("a deadlock: thread " + std::to_string(i) + " sleeps and nobody wakes it");
    setcontext(&main_);
  }

  void go_to(unsigned to) {
    const unsigned from = std::exchange(current_, to);
    threads_[to].state = State::Ready;
    if (from != to) swapcontext(&threads_[from].context, &threads_[to].context);
  }

  static void enter();

  void prepare(unsigned i, const std::function<void()>& body) {
    Thread& t = threads_[i];
    if (!t.stack) t.stack = std::make_unique<char[]>(stack_bytes);
    t.body = body;
    t.state = State::Ready;
    t.must_look = false;
    t.knows = t.pending = t.fenced = {};
    for (unsigned p = 0; p < places_.size(); ++p) t.knows.seen[p] = last(p);
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.get();
    t.context.uc_stack.ss_size = stack_bytes;
    t.context.uc_link = nullptr;
    makecontext(&t.context, &Machine::enter, 0);
  }

  void execute(const std::function<void(std::vector<std::function<void()>>&, std::function<void()>&)>& make) {
    places_.clear();
    bytes_.clear();
    consistent_ = {};
    depth_ = preemptions_ = 0;
    stores_ = 0;
    error_.clear();
    trace_.clear();
    std::vector<std::function<void()>> bodies;
    std::function<void()> finish;
    make(bodies, finish);
    count_ = static_cast<unsigned>(bodies.size());
    for (unsigned i = 0; i < count_; ++i) prepare(i, bodies[i]);
    running_ = true;
    current_ = choose(count_);
    swapcontext(&main_, &threads_[current_].context);  // returns when all threads are done or one has failed
    running_ = false;
    if (error_.empty()) {
      try {
        finish();
      } catch (const Failed&) {
      }
    }
  }

  const std::string& site_name(const Site& site) {
    const auto key = std::make_pair(static_cast<const void*>(site.file), site.line);
    for (const auto& [k, name] : names_)
      if (k == key) return name;
    return names_.emplace_back(key, name_of(site)).second;
  }

  void note(const std::string& what) { trace_ += "  thread " + std::to_string(current_) + ": " + what + "\n"; }

  Options options_;
  std::array<Thread, max_threads> threads_;
  unsigned count_ = 0, current_ = 0, preemptions_ = 0;
  ucontext_t main_;
  bool running_ = false, tracing_ = false;
  std::string error_, trace_;

  std::vector<Place> places_;
  std::vector<Bytes> bytes_;
  Knowledge consistent_;  // of all sequentially consistent fences so far
  std::uint64_t stores_ = 0;

  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::set<std::string> sites_;
  std::deque<std::pair<std::pair<const void*, unsigned>, std::string>> names_;
};

Machine the_machine;

void Machine::enter() {
  Machine& m = the_machine;
  m.self().body();
  m.self().state = State::Done;
  m.leave();
}

}  // namespace

void fail(const char* what) { the_machine.fail(what); }
void pause() { the_machine.pause(); }
void wait_for(const void* word, std::uint64_t at_least) { the_machine.wait_for(word, at_least); }
void futex_wait(const void* word, std::uint32_t expected) { the_machine.futex_wait(word, expected); }
void futex_wake(const void* word) { the_machine.futex_wake(word); }
void share(const void* at, std::size_t bytes) { the_machine.share(at, bytes); }
void reads(const void* at, std::size_t bytes) { the_machine.touch(at, bytes, false); }
void writes(void* at, std::size_t bytes) { the_machine.touch(at, bytes, true); }

void fence(Order order, Site site) { the_machine.fence(the_machine.step("fence", order, site)); }

void process_fence() { the_machine.process_fence(); }

void* copy(void* to, const void* from, std::size_t bytes) {
  the_machine.touch(from, bytes, false);
  the_machine.touch(to, bytes, true);
  return std::memcpy(to, from, bytes);
}

Verdict run(const std::function<void(std::vector<std::function<void()>>&, std::function<void()>&)>& make,
            const Options& options) {
  return the_machine.run(make, options);
}

namespace machine {
void create(const void* place, std::uint64_t value) { the_machine.create(place, value); }
Order step(const char* what, Order order, const Site& site) { return the_machine.step(what, order, site); }
std::uint64_t load(const void* place, Order order) { return the_machine.load(place, order); }
void store(const void* place, std::uint64_t value, Order order) { the_machine.store(place, value, order); }
std::uint64_t read_last(const void* place, Order order) { return the_machine.read_last(place, order); }
void store_after_read(const void* place, std::uint64_t value, Order order) {
  the_machine.store(place, value, order, true);
}
}  // namespace machine

}  // namespace explore
