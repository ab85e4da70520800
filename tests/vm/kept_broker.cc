// A stand-in for systemd in a restart, for shell tests (own_broker.sh). It runs an ivgpud, stores its descriptors, and
// passes them to the next ivgpud. It is as strict as the stand-in of the other tests
// (tests/unit/broker/fake_fd_store.h).
//
// usage: kept_broker IVGPUD OPTION...
// SIGUSR1 restarts the broker with SIGTERM. SIGUSR2 kills it with SIGKILL and soon starts the next broker. SIGTERM or
// SIGINT stops it with all sessions. Exit codes: the broker's code after a stop; 1 if the broker exited by itself, sent
// a message that systemd would refuse, or left descriptors.
#include <sys/resource.h>

#include "tests/unit/broker/fake_fd_store.h"

namespace {

using broker_test::FakeFdStore;

// systemd's delay plus some time. A guest's program that starts in this time tolerates 0.7 s, of which the broker's
// start takes a part.
constexpr auto pause_after_kill = std::chrono::milliseconds(200);

sigset_t signals_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

class Service {
 public:
  explicit Service(char** command) : command_(command) { start(); }

  void restart(int signal, std::chrono::milliseconds pause) {
    end(signal);
    std::this_thread::sleep_for(pause);
    start();
  }
  // Ends the broker and returns its exit status.
  int end(int signal) {
    kill(process_, signal);
    int status = 0;
    waitpid(process_, &status, 0);
    return status;
  }
  bool ended_by_itself() const { return waitpid(process_, nullptr, WNOHANG) == process_; }
  bool left_anything() { return !fd_store_.names().empty(); }

 private:
  void start() {
    const auto environment = fd_store_.environment();
    process_ = fork();
    if (process_ != 0) return;
    const sigset_t none = signals_of({});
    sigprocmask(SIG_SETMASK, &none, nullptr);
    environment();
    execv(command_[0], command_);
    _exit(126);
  }

  char** const command_;
  FakeFdStore fd_store_;
  pid_t process_ = 0;
};

int stop(Service& service) {
  const int status = service.end(SIGINT);
  EXPECT_FALSE(service.left_anything()) << "the broker has left descriptors";
  if (::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed()) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(char** command) {
  const sigset_t heard = signals_of({SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGCHLD});
  sigprocmask(SIG_BLOCK, &heard, nullptr);  // the stand-in's thread inherits the mask
  Service service(command);
  for (;;) {
    switch (sigwaitinfo(&heard, nullptr)) {
      case SIGUSR1: service.restart(SIGTERM, std::chrono::milliseconds(0)); break;
      case SIGUSR2: service.restart(SIGKILL, pause_after_kill); break;
      case SIGTERM:
      case SIGINT: return stop(service);
      case SIGCHLD:  // also the signal of a broker that this program ended itself
        if (service.ended_by_itself()) return fprintf(stderr, "kept_broker: the broker has ended\n"), 1;
        break;
      default: break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return 2;
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  return run(argv + 1);
}
