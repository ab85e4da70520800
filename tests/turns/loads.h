// What programs do with a GPU, as pieces of work that they repeat: some kernels, a wait for them, some time of their
// own. loads.cc has the numbers of each, with their source.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/turns/timeline.h"
#include "tests/turns/worker.h"

namespace turns_world {

struct Load {
  std::string name;
  int kernels = 1;      // or copies, a piece
  Time kernel{};        // on the GPU, each
  Time issue{};         // the guest's own time before each
  Time cost{};          // of the worker's thread, each
  bool copies = false;  // by a copy engine instead
  bool waits = true;    // after the last of a piece; else the next piece follows at once
  Time think{};         // after the wait
  Time every{};         // a piece begins so long after the one before it began, at the earliest
  double varies = 0;    // its times are this much longer or shorter, at random
  Time hiccup{};        // before every 50th piece or so, as a busy machine makes them
};

Load launch_and_wait();
Load burst(int kernels, Time kernel);  // and a wait
Load long_kernels();                   // four of 0.5 ms, and a wait
Load trainer();
Load inference();  // every 10 ms
Load products();   // of large matrices, without an end
Load copies();     // of 16 MiB

// A program that runs a load on a worker.
class Program {
 public:
  struct Place {
    Timeline& timeline;
    SharedGpu& gpu;
  };
  Program(const Place& place, Load load, std::uint32_t seed, std::function<void()> requested);

  void start() { begin_piece(); }
  // After the piece at hand it does nothing any more, or goes on.
  void pause() { paused_ = true; }
  void resume();

  const Load& load() const { return load_; }
  Worker& worker() { return worker_; }
  const Worker& worker() const { return worker_; }
  const std::vector<Time>& pieces() const { return pieces_; }  // how long each took
  void forget() { pieces_.clear(), worker_.forget(); }

 private:
  void begin_piece();
  void issue();
  void post();
  void if_blocked();
  void end_piece();
  Time varied(Time time);

  Timeline& timeline_;
  const Load load_;
  std::minstd_rand random_;
  Worker worker_;
  int left_ = 0;
  bool blocked_ = false, paused_ = false, stopped_ = false;
  Time began_{};
  std::vector<Time> pieces_;
};

}  // namespace turns_world
