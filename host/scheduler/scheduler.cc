#include "host/scheduler/scheduler.h"

#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

namespace host::scheduler {
namespace {

using namespace std::chrono_literals;

constexpr Time report_patience = 20ms;

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::start(const Options& options) {
  std::unique_ptr<Scheduler> scheduler(new Scheduler());
  try {
    if (!scheduler->queues_.open()) throw std::system_error(errno, std::generic_category());
    scheduler->loop_ = std::make_unique<SchedulerLoop>(options, scheduler->queues_);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the broker's event loop handles signals
    scheduler->thread_ = std::thread([loop = scheduler->loop_.get()] { loop->run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } catch (const std::system_error& failed) {
    return Error{std::string("the scheduler of GPU time cannot be started: ") + failed.what()};
  }
  return scheduler;
}

Scheduler::~Scheduler() {
  if (!thread_.joinable()) return;
  queues_.send(SchedulerQueues::Stop{});
  thread_.join();
}

void Scheduler::change(const Options& options) { queues_.send(options); }

void Scheduler::set_switcher(std::unique_ptr<Switcher> switcher) {
  queues_.send(SchedulerQueues::NewSwitcher{std::make_shared<std::unique_ptr<Switcher>>(std::move(switcher))});
}

Scheduler::Vm Scheduler::add_vm(const Share& share) {
  queues_.send(SchedulerQueues::NewShare{++vms_, share});
  return vms_;
}

void Scheduler::change_vm(Vm vm, const Share& share) { queues_.send(SchedulerQueues::NewShare{vm, share}); }

void Scheduler::remove_vm(Vm vm) { queues_.send(SchedulerQueues::NoVm{vm}); }

Scheduler::Client Scheduler::add(Vm vm, std::shared_ptr<WorkerPages> pages) {
  queues_.send(SchedulerQueues::NewClient{++clients_, vm, std::move(pages)});
  return clients_;
}

void Scheduler::ready(Client client, pid_t process, std::uint32_t rm_client, std::vector<std::string> gpus) {
  queues_.send(SchedulerQueues::Ready{client, process, rm_client, std::move(gpus)});
}

void Scheduler::remove(Client client) { queues_.send(SchedulerQueues::NoClient{client}); }

const Scheduler::Report& Scheduler::report() {
  queues_.drop_reports();
  queues_.send(SchedulerQueues::ReportRequest{});
  for (const Time until = since_boot() + report_patience; !queues_.take_report(report_) && since_boot() < until;)
    std::this_thread::sleep_for(10us);
  return *report_;
}

const Scheduler::Report& Scheduler::report_of(Time age) {
  return since_boot() - report_->made <= age ? *report_ : report();
}

}  // namespace host::scheduler
