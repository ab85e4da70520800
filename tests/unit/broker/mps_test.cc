// policy = "mps": the daemons of ivgpud, the environment of its workers, and the loss of a client, the server or the
// daemon. The tests use the simulated GPU's devices and a fake control program (tests/fake/nvidia-cuda-mps-control).
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "host/broker/mps/mps.h"
#include "tests/unit/broker/mps_harness.h"

namespace {

using namespace broker_test;
using ring::SlotState;

// An environment variable of a worker or a daemon; "" if unset.
std::string variable_of(pid_t process, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ");
  for (std::string text; std::getline(file, text, '\0');)
    if (text.starts_with(name + "=")) return text.substr(name.size() + 1);
  return "";
}

std::vector<pid_t> workers_with(const Broker& broker, const std::string& name, const std::string& value) {
  std::vector<pid_t> all = workers_of(broker);
  std::erase_if(all, [&](pid_t worker) { return variable_of(worker, name) != value; });
  return all;
}

std::vector<pid_t> workers_on(const Broker& broker, int device) {
  return workers_with(broker, "CUDA_VISIBLE_DEVICES", gpu(device));
}

// ---- the daemon -----------------------------------------------------------------------------------------------------

TEST(Mps, AGpuThatSomeVmUsesHasOneDaemon) {
  const Control control;
  MpsBroker broker(control, "[vm.u]\ngpus = [0]\n[vm.w]\ngpus = [2]\n");
  EXPECT_EQ(broker.ready, "ready\n");
  EXPECT_EQ(control.times("daemon "), 2U) << control.told();
  for (const int device : {0, 2}) {
    const std::string folder = broker.folder_of(device);
    EXPECT_EQ(control.times("daemon " + gpu(device) + " pipe=" + folder + "/pipe log=" + folder + "/log\n"), 1U)
        << control.told();
    for (const char* below : {"/pipe", "/log"}) {
      struct stat status {};
      ASSERT_EQ(stat((folder + below).c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 07777, 0700U);
      EXPECT_EQ(status.st_uid, geteuid() == 0 ? workers_user : geteuid());
    }
  }
  const std::string log = broker.log();
  for (const auto* worker : {" t: slot 0: worker ", " u: slot 0: worker "})
    EXPECT_LT(log.find("the MPS daemon of " + gpu(0) + " is up, for t, u;"), log.find(worker))
        << "a worker that was there before its daemon";
  EXPECT_EQ(broker.terminate(), 0);
  EXPECT_EQ(control.times("ends by quit"), 2U) << control.told();
}

TEST(Mps, WorkersAreTheirDaemonsClients) {
  const Control control;
  MpsBroker broker(control, "active_threads = 40\n[vm.u]\ngpus = [2]\n");
  ASSERT_TRUE(eventually([&] { return workers_on(broker, 0).size() == 1 && workers_on(broker, 2).size() == 1; }));
  const pid_t t = workers_on(broker, 0).front(), u = workers_on(broker, 2).front();
  EXPECT_EQ(variable_of(t, "CUDA_MPS_PIPE_DIRECTORY"), broker.folder_of(0) + "/pipe");
  EXPECT_EQ(variable_of(t, "CUDA_MPS_LOG_DIRECTORY"), broker.folder_of(0) + "/log");
  EXPECT_EQ(variable_of(t, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "40");
  EXPECT_EQ(variable_of(u, "CUDA_MPS_PIPE_DIRECTORY"), broker.folder_of(2) + "/pipe");
  EXPECT_EQ(variable_of(u, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "100");
  const std::string told = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker.folder.path()}).text;
  EXPECT_NE(told.find(R"("gpu_time":{"had_s":0.0,"leases":0,)"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("sharing":"time slices")"), std::string::npos) << told;
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Mps, WithAnotherPolicyThereIsNone) {
  const Control control;
  Broker broker(
      "gpus = [0]\n", "", [] {}, "sim", "", "mps_control = \"" + control.path() + "\"\n");
  ASSERT_TRUE(eventually([&] { return workers_of(broker).size() == 1; }));
  EXPECT_EQ(variable_of(workers_of(broker).front(), "CUDA_MPS_PIPE_DIRECTORY"), "");
  EXPECT_EQ(variable_of(workers_of(broker).front(), "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "");
  EXPECT_EQ(broker.terminate(), 0);
  EXPECT_EQ(control.told(), "");
}

TEST(Mps, ADaemonThatDoesNotQuitIsSignalled) {
  for (const bool stubborn : {false, true}) {
    const Control control;
    control.misbehave("deaf");
    if (stubborn) control.misbehave("stubborn");
    MpsBroker broker(control);
    const pid_t daemon = broker.daemon_of(0);
    ASSERT_TRUE(lives(daemon));
    EXPECT_EQ(broker.terminate(), 0);
    EXPECT_EQ(control.last_line(), stubborn ? "SIGTERM is ignored" : "ends by SIGTERM") << control.told();
    EXPECT_FALSE(lives(daemon));
  }
}

TEST(Mps, ADaemonThatEndsAtOnceIsReportedAndTriedAgain) {
  const Control control;
  control.misbehave("broken");
  const auto begin = std::chrono::steady_clock::now();
  MpsBroker broker(control);
  EXPECT_EQ(broker.ready, "ready\n") << "who waits for the broker must not wait for ever";
  EXPECT_TRUE(broker.eventually_logged("the MPS daemon of " + gpu(0) +
                                       " exited with code 1: this one is broken; it is started again in 250 ms, and "
                                       "until it is up these VMs get no workers: t"));
  // The delay doubles with each start.
  EXPECT_TRUE(broker.eventually_logged("it is started again in 500 ms"));
  EXPECT_TRUE(broker.eventually_logged("it is started again in 1000 ms"));
  const std::size_t starts = control.times("daemon ");
  EXPECT_GE(seconds_since(begin), 0.25 * ((1 << (starts - 1)) - 1)) << starts;
  EXPECT_TRUE(workers_of(broker).empty());
  control.behave("broken");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
  EXPECT_EQ(broker.terminate(), 0);
  EXPECT_EQ(control.last_line(), "ends by quit");
}

TEST(Mps, ADaemonThatNeverListensIsGivenUp) {
  const Control control;
  control.misbehave("silent");
  MpsBroker broker(control);
  EXPECT_TRUE(broker.eventually_logged(gpu(0) + " does not listen after 10 s; it is started again"));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Mps, ADaemonThatAKilledBrokerHasLeftIsReported) {
  Control control;
  MpsBroker broker(control);
  const pid_t daemon = broker.daemon_of(0);
  ASSERT_TRUE(lives(daemon));
  control.kill_at_the_end(daemon);
  broker.terminate(SIGKILL);
  setenv("IVGPU_SIM_DEVICES", "3", 1);
  const Outcome next = run_ivgpud({"--config", broker.folder / "c.toml"});
  unsetenv("IVGPU_SIM_DEVICES");
  EXPECT_EQ(next.code, 1);
  const std::string pipe = broker.folder_of(0) + "/pipe";
  EXPECT_NE(
      next.text.find("policy = \"mps\": an MPS daemon, process " + std::to_string(daemon) + ", has " + pipe +
                     " already: end it by `echo quit | CUDA_MPS_PIPE_DIRECTORY=" + pipe + " " + control.path() + "`\n"),
      std::string::npos)
      << next.text;
  EXPECT_TRUE(lives(daemon)) << "it may be somebody's";
}

TEST(Mps, ADaemonThatHasEndedAndThatNobodyHasWaitedForIsNone) {
  Control control;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // this process adopts the orphan and does not reap it
  MpsBroker broker(control);
  const pid_t daemon = broker.daemon_of(0);
  ASSERT_TRUE(lives(daemon));
  broker.terminate(SIGKILL);
  kill(daemon, SIGKILL);
  const auto said = [&](const char* file) {
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(daemon) + "/" + file), line);
    return line;
  };
  ASSERT_TRUE(eventually([&] { return said("cmdline").empty(); }));
  ASSERT_EQ(said("comm"), "nvidia-cuda-mps") << "it is a zombie";
  broker.again([] {});
  EXPECT_TRUE(broker.eventually_logged("the MPS daemon of " + gpu(0) + " is up"));
  EXPECT_FALSE(broker.logged("already: end it by")) << broker.log();
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// The folder belongs to the workers' user, who can put any file into the folder.
TEST(Mps, ItsFolderIsReadWithoutWaitingOrFollowingALink) {
  Control control;
  MpsBroker broker(control);
  const pid_t daemon = broker.daemon_of(0);
  ASSERT_TRUE(lives(daemon));
  control.kill_at_the_end(daemon);
  broker.terminate(SIGKILL);
  const std::string name = broker.folder_of(0) + "/pipe/nvidia-cuda-mps-control.pid";
  const auto is_up_without = [&](const char* what, const std::function<bool()>& put) {
    std::filesystem::remove(name);
    ASSERT_TRUE(put()) << what;
    const std::size_t before = broker.times_logged("the MPS daemon of " + gpu(0) + " is up");
    broker.again([] {
      setenv("IVGPU_SIM_DEVICES", "3", 1);
      setenv("IVGPU_SIM_SHM", "", 1);
    });
    EXPECT_TRUE(eventually([&] { return broker.times_logged("the MPS daemon of " + gpu(0) + " is up") > before; }))
        << what;
    control.kill_at_the_end(broker.daemon_of(0));
    broker.terminate(SIGKILL);
  };
  is_up_without("a pipe", [&] { return mkfifo(name.c_str(), 0666) == 0; });
  const std::string elsewhere = broker.folder.write("elsewhere", std::to_string(daemon) + "\n");
  is_up_without("a link", [&] { return symlink(elsewhere.c_str(), name.c_str()) == 0; });
  is_up_without("a folder", [&] { return mkdir(name.c_str(), 0777) == 0; });
  is_up_without("a long line", [&] {
    broker.folder.write("mps/" + gpu(0) + "/pipe/nvidia-cuda-mps-control.pid", std::string(1 << 20, '7'));
    return true;
  });
}

// ---- clients --------------------------------------------------------------------------------------------------------

// Makes the worker of slot `k` send an impossible message, after which the broker kills the worker.
void provoke_a_kill(const Client& guest, std::uint32_t k) { guest.tell(k, 'm'); }

TEST(Mps, AClientIsLetGoBeforeItIsKilled) {
  const Control control;
  MpsBroker broker(control);
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const pid_t worker = workers_of(broker).front();
  const auto slot = guest.claim();
  ASSERT_TRUE(slot);
  provoke_a_kill(guest, *slot);
  EXPECT_TRUE(guest.becomes(*slot, SlotState::Dead));
  EXPECT_EQ(control.times("terminate_client 4711 " + std::to_string(worker) + " alive"), 1U) << control.told();
  EXPECT_FALSE(lives(worker));
  EXPECT_TRUE(broker.logged("killed: it said something that no worker says"));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Mps, AControlThatDoesNotAnswerDelaysAKillByASecond) {
  for (const char* how : {"mute", "no-server"}) {
    const Control control;
    control.misbehave(how);
    MpsBroker broker(control);
    Client guest(broker.socket_path());
    ASSERT_TRUE(guest.greet(3));
    const auto slot = guest.claim();
    ASSERT_TRUE(slot);
    provoke_a_kill(guest, *slot);
    EXPECT_TRUE(guest.becomes(*slot, SlotState::Dead)) << how;
    EXPECT_EQ(control.times("get_server_list"), 1U) << how;
    EXPECT_EQ(control.times("terminate_client"), 0U) << how;
    EXPECT_EQ(broker.terminate(), 0);
  }
}

// Expects that `lose` restarts the sessions of VMs t and u on GPU 0, but not those of VM w on GPU 2. `sentence`: the
// reason in the log.
void expect_all_of_a_gpu_begin_anew(MpsBroker& broker, const Client& t, const std::function<void(std::uint32_t)>& lose,
                                    const std::string& sentence) {
  Client u(broker.folder / "u.sock"), w(broker.folder / "w.sock");
  ASSERT_TRUE(u.greet(3) && w.greet(3));
  ASSERT_TRUE(eventually([&] { return workers_on(broker, 0).size() == 2; }));
  const std::vector<pid_t> with_sessions = workers_on(broker, 0);
  const auto guilty = t.claim(), innocent = u.claim(), elsewhere = w.claim();
  ASSERT_TRUE(guilty && innocent && elsewhere);
  ASSERT_TRUE(eventually([&] { return workers_on(broker, 0).size() == 4 && workers_on(broker, 2).size() == 2; }));
  const std::vector<pid_t> before = workers_on(broker, 0), others = workers_on(broker, 2);
  const auto begin = std::chrono::steady_clock::now();
  lose(*guilty);
  for (const char* vm : {"t", "u"})
    EXPECT_TRUE(
        broker.eventually_logged(std::string(vm) + ": all clients of MPS on " + gpu(0) + " are lost: " + sentence))
        << vm;
  const auto is_spare = [&](pid_t worker) { return std::ranges::count(with_sessions, worker) == 0; };
  EXPECT_TRUE(eventually([&] {
    return std::ranges::none_of(before, [&](pid_t w) { return is_spare(w) && lives(w); });
  })) << "a spare worker is lost, too, and a program may claim it";
  EXPECT_TRUE(u.becomes(*innocent, SlotState::Dead)) << "an idle session would keep the server from new clients";
  EXPECT_GE(seconds_since(begin), std::chrono::duration<double>(host::broker::MpsRegistration::grace).count())
      << "its program has time to learn the driver's error";
  EXPECT_TRUE(broker.eventually_logged("MPS has lost all clients of its GPU"));
  for (const pid_t old : before) EXPECT_TRUE(eventually([&] { return !lives(old); }));
  EXPECT_TRUE(t.claim() && u.claim()) << "fresh workers";
  EXPECT_FALSE(broker.logged("w: all clients")) << broker.log();
  EXPECT_EQ(w.word(*elsewhere).state, SlotState::Claimed);
  for (const pid_t other : others) EXPECT_TRUE(lives(other));
  EXPECT_EQ(broker.times_logged(": all clients of MPS on "), 2U) << "one line for each VM";
}

constexpr const char* three_vms = "[vm.u]\ngpus = [0]\n[vm.w]\ngpus = [2]\n";

TEST(Mps, AFaultOfOneEndsAllOfItsGpuAndNoOthers) {
  const Control control;
  MpsBroker broker(control, three_vms);
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  expect_all_of_a_gpu_begin_anew(
      broker, guest, [&](std::uint32_t slot) { EXPECT_TRUE(guest.tell(slot, 'e')); },
      "session 0 of VM t has had CUDA's error 700; 1 session(s) get the driver's error");
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Mps, AWorkerThatCrashesEndsAllOfItsGpu) {
  const Control control;
  MpsBroker broker(control, three_vms);
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  expect_all_of_a_gpu_begin_anew(
      broker, guest,
      [&](std::uint32_t slot) {
        guest.command(slot)[0] = 'a';
        guest.ring_peer(ring::peer_of_slot(slot));
      },
      "a worker of VM t was killed by signal 6 (ABRT)");
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Mps, ADaemonThatDiesIsStartedAgain) {
  const Control control;
  MpsBroker broker(control, three_vms);
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const pid_t first = broker.daemon_of(0);
  expect_all_of_a_gpu_begin_anew(
      broker, guest, [&](std::uint32_t) { kill(first, SIGKILL); }, "its MPS daemon was killed by signal 9");
  EXPECT_NE(broker.daemon_of(0), first);
  EXPECT_EQ(control.times("daemon " + gpu(0)), 2U);
  EXPECT_EQ(control.times("daemon " + gpu(2)), 1U);
  EXPECT_EQ(broker.terminate(), 0);
}

// ---- the jail -------------------------------------------------------------------------------------------------------

// A file in /dev/shm like the files that the MPS server makes for its clients.
class SharedFile {
 public:
  SharedFile() : name_("ivgpu-mps-test-" + std::to_string(getpid())) {
    std::ofstream(path()) << "x";
    chmod(path().c_str(), 0666);
  }
  ~SharedFile() { std::filesystem::remove(path()); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  const std::string& name() const { return name_; }
  std::string path() const { return "/dev/shm/" + name_; }

 private:
  std::string name_;
};

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(socket, 4), 0);
  chmod(path.c_str(), 0666);
  return socket;
}

TEST(Mps, TheJailLetsAWorkerReachItsServer) {
  const Control control;
  const SharedFile shared;
  MpsBroker broker(control, "", "mps", shared.name());
  const int server = listen_at(broker.folder_of(0) + "/pipe/test");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3) && guest.claim());  // the claim starts another worker, and the socket exists now
  EXPECT_TRUE(broker.eventually_logged("as a client of MPS: the socket connects, the shared memory opens"))
      << broker.log();
  close(server);
  EXPECT_EQ(broker.terminate(), 0);
}

// ---- the file -------------------------------------------------------------------------------------------------------

// The outcome of ivgpud with these tables, on a machine with three simulated devices.
Outcome outcome_of(const std::string& gpu_keys, const std::string& vms, const std::vector<std::string>& more = {}) {
  const Folder folder;
  folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                             "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"sim\"\n" + gpu_keys + "\n" + vms);
  setenv("IVGPU_SIM_DEVICES", "3", 1);
  std::vector<std::string> arguments = {"--config", folder / "c.toml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_ivgpud(arguments);
  unsetenv("IVGPU_SIM_DEVICES");
  return outcome;
}

void expect_mistake(const Outcome& outcome, const std::string& sentence) {
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find(sentence + "\n"), std::string::npos) << outcome.text;
}

TEST(Mps, AProgramThatIsNotThereIsReported) {
  expect_mistake(outcome_of("policy = \"mps\"\nmps_control = \"/nowhere/mps\"", "[vm.a]\ngpus = [0]"),
                 "[gpu] mps_control: /nowhere/mps: No such file or directory");
  const char* path = std::getenv("PATH");
  const std::string before = path != nullptr ? path : "";
  setenv("PATH", "/nowhere", 1);
  const Outcome without = outcome_of("policy = \"mps\"", "[vm.a]\ngpus = [0]");
  setenv("PATH", before.c_str(), 1);
  expect_mistake(without,
                 "[gpu] policy = \"mps\" needs nvidia-cuda-mps-control, which is not in the PATH: install it (it comes "
                 "with NVIDIA's driver), or name its path as mps_control");
}

TEST(Mps, AVmHasOneGpuAndAGpuOneUser) {
  const Control control;
  expect_mistake(
      outcome_of(mps_keys(control), "[vm.a]"),
      "[gpu] policy = \"mps\": a VM has one GPU, since each has an MPS daemon of its own: [vm.a] has 3; name "
      "one by gpus, or let placement choose one");
  if (geteuid() != 0) return;  // without root, all workers run as the broker's user
  const std::string users = "[vm.a]\ngpus = [0]\nworker_uid = 1001\n[vm.b]\nworker_uid = 1002\n";
  expect_mistake(outcome_of(mps_keys(control), users + "gpus = [0]"),
                 "[gpu] policy = \"mps\": an MPS server has the clients of one user: [vm.a] has worker_uid 1001 and "
                 "[vm.b] 1002 on " +
                     gpu(0) + "; give them one, and leave [broker] worker_uids out");
  EXPECT_EQ(outcome_of(mps_keys(control), users + "gpus = [1]", {"--check"}).code, 0);
}

TEST(Mps, TheCheckReportsWhatIsGivenUp) {
  const Control control;
  const Outcome checked = outcome_of(mps_keys(control), "[vm.a]\ngpus = [0]", {"--check"});
  EXPECT_EQ(checked.code, 0) << checked.text;
  EXPECT_NE(
      checked.text.find("note: policy = \"mps\": the VMs of a GPU are one trust domain: a fault in one VM's kernel "
                        "ends the sessions of all of them"),
      std::string::npos)
      << checked.text;
  EXPECT_EQ(control.told(), "") << "a check starts nothing";
  EXPECT_EQ(outcome_of("policy = \"shared\"", "[vm.a]\ngpus = [0]", {"--check"}).text.find("trust domain"),
            std::string::npos);
}

// ---- a reload -------------------------------------------------------------------------------------------------------

std::string file_of(const Broker& broker, const std::string& gpu_keys, const std::string& vms) {
  return "[broker]\nruntime_dir = \"" + broker.folder.path() +
         "\"\nlog_level = \"debug\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"sim\"\n" + gpu_keys +
         "[defaults]\nregion_size = \"128MiB\"\nslots = 3\n" + vms;
}

void reload(const Broker& broker, const std::string& text) {
  broker.folder.write("c.toml", text);
  kill(broker.pid, SIGHUP);
}

TEST(Mps, ThePolicyStaysUntilARestart) {
  const Control control;
  MpsBroker broker(control);
  reload(broker, file_of(broker, "policy = \"time-slice\"\nmps_control = \"" + control.path() + "\"\n",
                         "[vm.t]\ngpus = [0]\n[vm.u]\ngpus = [0]\n[vm.v]\n"));
  EXPECT_TRUE(broker.eventually_logged("[gpu] policy needs a restart of ivgpud"));
  EXPECT_TRUE(broker.eventually_logged("VM u: added"));
  EXPECT_TRUE(broker.eventually_logged(
      "VM v is not served: policy = \"mps\": a VM has one GPU whose UUID is known; name one by gpus"));
  EXPECT_TRUE(eventually([&] {
    return workers_with(broker, "CUDA_MPS_PIPE_DIRECTORY", broker.folder_of(0) + "/pipe").size() == 2;
  })) << "the new VM's workers are clients, too";
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Mps, AShareOfThreadsCountsForNewSessions) {
  const Control control;
  MpsBroker broker(control);
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3) && guest.claim());
  const auto with = [&](const char* threads) {
    return workers_with(broker, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", threads).size();
  };
  ASSERT_TRUE(eventually([&] { return with("100") == 2; }));
  reload(broker, file_of(broker, mps_keys(control), "[vm.t]\ngpus = [0]\nactive_threads = 30\n"));
  EXPECT_TRUE(broker.eventually_logged("VM t: active_threads 100 -> 30 for sessions that start from now on"));
  EXPECT_TRUE(eventually([&] { return with("100") == 1 && with("30") == 1; }));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Mps, AVmKeepsItsGpuUntilARestart) {
  const Control control;
  MpsBroker broker(control);
  reload(broker, file_of(broker, mps_keys(control), "[vm.t]\ngpus = [1]\n"));
  EXPECT_TRUE(broker.eventually_logged("VM t: gpus needs a restart of ivgpud"));
  EXPECT_TRUE(eventually([&] { return workers_on(broker, 0).size() == 1; }));
  EXPECT_TRUE(workers_on(broker, 1).empty());
  EXPECT_EQ(broker.terminate(), 0);
}

}  // namespace
