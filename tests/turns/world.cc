#include "tests/turns/world.h"

namespace turns_world {
namespace {

using namespace std::chrono_literals;

constexpr Time scheduler_sees = 1us;   // while it polls
constexpr Time scheduler_tick = 20us;  // the same, for what only time changes

}  // namespace

World::World(const Options& options)
    : options_(options), gpu_(timeline_), policy_(options.limits), alarm_(timeline_, [this] { look(); }) {
  policy_.set_on(options.turns);
}

World::Vm World::add_vm(Share share) {
  policy_.set_share(++vms_, share.weight, share.latency);
  return vms_;
}

Program& World::add(Vm vm, const Load& load) {
  const auto seed = options_.seed + static_cast<std::uint32_t>(7919 * programs_.size());
  programs_.push_back(std::make_unique<Program>(Program::Place{timeline_, gpu_}, load, seed, [this] { look_soon(); }));
  policy_.add(programs_.size() - 1, vm);
  programs_.back()->start();
  look_soon();
  return *programs_.back();
}

void World::look() {
  next_look_.reset();
  const Time next = policy_.step(
      timeline_.now(), [this](auto client) { return programs_[client]->worker().request(); },
      [this](auto client, ring::Grant grant) { programs_[client]->worker().give(grant, policy_.most_under_way()); });
  if (next == Time::max()) return;
  const Time when = timeline_.now() + (next == Time::zero() ? scheduler_tick : next);
  if (next_look_ && *next_look_ <= when) return;
  next_look_ = when;
  alarm_.set(when);
}

void World::look_soon() {
  const Time when = timeline_.now() + scheduler_sees;
  if (next_look_ && *next_look_ <= when) return;
  next_look_ = when;
  alarm_.set(when);
}

void World::forget() {
  for (const auto& program : programs_) program->forget();
}

double alone(const Load& load) {
  World world({.turns = false, .limits = {}, .seed = 1});
  Program& program = world.add(load);
  world.run_for(20ms);
  world.forget();
  world.run_for(500ms);
  return static_cast<double>(program.worker().done()) * 2;
}

}  // namespace turns_world
