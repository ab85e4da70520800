// Files of single VMs beside the broker's file: allowed keys, and which file takes precedence. A bad file affects only
// its own VM: at the start, at a reload and for --check. `ivgpu add` and `ivgpu remove` write the files. The tests use
// a real ivgpud and fake workers.
#include "host/broker/config/drop_ins.h"

#include <sys/stat.h>

#include "tests/error_of.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using namespace host::broker;
namespace fs = std::filesystem;

// The folder of the broker's file and vms.d, and the folder of the broker's sockets.
struct Place {
  Folder config, runtime;
  Place() {
    fs::create_directory(config / "vms.d");
    fs::create_directory(runtime / "vms.d");
    config.write("libcuda.so.1", "");
  }
  std::string file(const std::string& vms, const std::string& keys = "", const std::string& gpu_keys = "") const {
    return config.write("c.toml", "[broker]\nruntime_dir = \"" + runtime.path() + "\"\nworker = \"" FAKE_WORKER "\"\n" +
                                      keys + "[gpu]\nlibrary = \"" + (config / "libcuda.so.1") + "\"\n" + gpu_keys +
                                      "[defaults]\nregion_size = \"128MiB\"\nslots = 3\n" + vms);
  }
  std::string permanent(const std::string& name, const std::string& text) const {
    return config.write("vms.d/" + name, text);
  }
  std::string added(const std::string& name, const std::string& text) const {
    return runtime.write("vms.d/" + name, text);
  }
  Config read(const std::string& vms, const std::string& keys = "") const {
    return read_config(file(vms, keys), 8).value();
  }
};

std::string names(const Config& config) {
  std::string all;
  for (const VmOptions& vm : config.vms) all += vm.name + " ";
  return all;
}

std::string refusals(const Config& config) {
  std::string all;
  for (const RefusedFile& file : config.refused) {
    EXPECT_EQ(file.sentence.find('\n'), std::string::npos) << "one sentence: " << file.sentence;
    all += file.sentence + "\n";
  }
  return all;
}

// ---- reading the files ---------------------------------------------------------------------------------------------

TEST(DropIns, AreVmsLikeThoseOfTheBrokersFile) {
  const Place place;
  place.permanent("b.toml", "[vm.b]\nslots = 2\n");
  place.permanent("a.toml", "# a comment\n[vm.a]\n");
  place.added("c.d.toml", "[vm.\"c.d\"]\nweight = 7\n");
  for (const char* none : {"x.toml~", ".y.toml", "z.toml.dpkg-dist", "README"}) place.permanent(none, "nonsense");
  const Config config = place.read("[vm.z]\n");
  EXPECT_EQ(names(config), "z a b c.d ");
  EXPECT_EQ(refusals(config), "");
  EXPECT_EQ(config.vms[1].slots, 3) << "[defaults] hold for them";
  EXPECT_EQ(config.vms[2].slots, 2);
  EXPECT_EQ(config.vms[3].weight, 7);
  EXPECT_EQ(config.vms[0].file, "");
  EXPECT_EQ(config.vms[2].file, place.config / "vms.d/b.toml");
}

TEST(DropIns, HaveUsersBehindThoseOfTheFile) {
  const Place place;
  place.permanent("a.toml", "[vm.a]\n");
  place.permanent("b.toml", "\n\n\n[vm.b]\nworker_uid = 9\n");
  place.added("c.toml", "[vm.c]\n");
  const Config config = place.read("[vm.z]\n[vm.y]\n", "worker_uids = \"70000-70002\"\n");
  std::map<std::string, std::int64_t> users;
  for (const VmOptions& vm : config.vms) users[vm.name] = vm.worker_uid;
  EXPECT_EQ(users, (std::map<std::string, std::int64_t>{{"z", 70000}, {"y", 70001}, {"a", 70002}, {"b", 9}}));
  EXPECT_EQ(refusals(config), place.runtime /
                                  "vms.d/c.toml: [broker] worker_uids = \"70000-70002\" has 3 user(s), and "
                                  "4 VMs are to have one each\n");
}

TEST(DropIns, AMistakeIsOneSentenceAndConcernsOneVm) {
  struct Row {
    std::string name, text, sentence;
  };
  const std::string form = ": it takes one table, [vm.v], which is named as the file is";
  for (const Row& row : std::vector<Row>{
           {"v", "", ": cannot be read or is empty"},
           {"v", "[vm.w]", form},
           {"v", "[vm.v]\n[vm.w]", form},
           {"v", "[vm]", form},
           {"v", "vm = 3", form},
           {"v", "[broker]\nlog_level = \"debug\"\n[vm.v]", form},
           {"v", "[defaults]\nslots = 2\n[vm.v]", form},
           {"v", "slots = 2", form},
           {"v", "vm.v = 3", ": [vm] v must be a table, as in [vm.v]"},
           {"v", "[vm.v]\nslots = 0", ": [vm.v] slots = 0: slots takes an integer from 1 to 64"},
           {"v", "[vm.v]\nregion_size = \"32MiB\"",
            ": [vm.v] region_size of 32 MiB is too small for 3 slots, which "
            "need 80 MiB at least"},
           {"v", "[vm.v\n", ":1:6: "},
           {"v", "[vm.v]\n'''x'''", ":2: a string of several lines is taken by no key"},
           {"v", "[vm.v]\nplain_file = \"/dev/shm/p\"\ntransport = \"plain\"",
            ": [vm.v] plain_file = \"/dev/shm/p\" is that of [vm.p]"},
           {"-v", "[vm.-v]",
            ": it is named as its VM is: a VM's name has 1 to 63 letters, digits, '-', '_' and '.', and "
            "begins with a letter or digit"},
       }) {
    const Place place;
    const std::string file = place.added(row.name + ".toml", row.text);
    place.added("u.toml", "[vm.u]");
    place.added("w.toml", "[vm.w]");
    const Config config = place.read("[vm.p]\ntransport = \"plain\"\nplain_file = \"/dev/shm/p\"\n");
    EXPECT_EQ(names(config), "p u w ") << row.text;
    ASSERT_EQ(config.refused.size(), 1U) << row.text << refusals(config);
    EXPECT_EQ(config.refused[0].vm, row.name);
    EXPECT_EQ(refusals(config).rfind(file + row.sentence, 0), 0U) << row.text << "\n" << refusals(config);
  }
}

TEST(DropIns, ADuplicateNamesBothFilesAndTheFirstOneCounts) {
  const Place place;
  const std::string first = place.permanent("a.toml", "[vm.a]\nslots = 2\n"), second = place.added("a.toml", "[vm.a]"),
                    third = place.added("z.toml", "[vm.z]\nslots = 1");
  const Config config = place.read("[vm.z]\n");
  EXPECT_EQ(names(config), "z a ");
  EXPECT_EQ(config.vms[0].slots, 3);
  EXPECT_EQ(config.vms[1].slots, 2);
  EXPECT_EQ(refusals(config), second + ": [vm.a] stands in " + first + ", too\n" + third + ": [vm.z] stands in " +
                                  (place.config / "c.toml") + ", too\n");
}

TEST(DropIns, WhatIsNoFileIsRefusedAndHoldsNobodyUp) {
  const Place place;
  fs::create_directory(place.config / "vms.d/folder.toml");
  ASSERT_EQ(mkfifo((place.config / "vms.d/pipe.toml").c_str(), 0600), 0);
  fs::create_symlink("/nowhere", place.config / "vms.d/link.toml");
  fs::create_symlink(place.config.write("real", "[vm.good]\n"), place.config / "vms.d/good.toml");
  const Config config = place.read("[vm.t]\n");
  EXPECT_EQ(names(config), "t good ");
  EXPECT_EQ(refusals(config), place.config / "vms.d/folder.toml: this is no file\n" +
                                  (place.config / "vms.d/link.toml") + ": this is no file\n" +
                                  (place.config / "vms.d/pipe.toml") + ": this is no file\n");
}

TEST(DropIns, AFolderThatIsNoneIsReported) {
  const Place place;
  fs::remove(place.runtime / "vms.d");
  place.runtime.write("vms.d", "a file");
  const Config config = place.read("[vm.t]\n");
  EXPECT_EQ(names(config), "t ");
  EXPECT_EQ(refusals(config), place.runtime / "vms.d: cannot be read: Not a directory\n");
}

TEST(DropIns, OneFolderForBothIsReadOnce) {
  const Folder folder;
  fs::create_directory(folder / "vms.d");
  folder.write("vms.d/a.toml", "[vm.a]");
  const DropIns found =
      find_drop_ins(folder / "c.toml", folder.path() + "/../" + fs::path(folder.path()).filename().string());
  EXPECT_EQ(found.folders, 1);
  EXPECT_EQ(found.files.size(), 1U);
}

TEST(DropIns, WithoutAFolderAFileNeedsAVm) {
  const Place place;
  fs::remove(place.config / "vms.d");
  const auto config = read_config(place.file(""), 8);
  ASSERT_TRUE(config) << config.error().message << ": one of the two folders is there";
  EXPECT_TRUE(config->may_be_empty);
  fs::remove(place.runtime / "vms.d");
  EXPECT_EQ(error_of(read_config(place.file(""), 8)),
            place.config / "c.toml: there is no VM; add a table [vm.NAME], which may be empty");
}

// Stands in for the check of all VMs together: refuses if the sum of their weights exceeds 10.
TEST(DropIns, WhatIsNotPossibleTogetherIsTakenOneByOne) {
  const Possible possible = [](Config& config) -> host::Result<std::vector<VmGpus>> {
    std::int64_t sum = 0;
    for (const VmOptions& vm : config.vms) sum += vm.weight;
    if (sum > 10) return host::Error{"too much"};
    return std::vector<VmGpus>(config.vms.size());
  };
  const auto vm = [](const char* name, const char* file, std::int64_t weight) {
    VmOptions options;
    options.name = name;
    options.file = file;
    options.weight = weight;
    return options;
  };
  Config config;
  config.vms = {vm("a", "", 3), vm("b", "/b", 8), vm("c", "/c", 5), vm("d", "/d", 3), vm("e", "/e", 2)};
  const auto gpus = take_possible(config, possible);
  ASSERT_TRUE(gpus) << gpus.error().message;
  EXPECT_EQ(names(config), "a c e ");
  EXPECT_EQ(gpus->size(), 3U);
  EXPECT_EQ(refusals(config), "/b: too much\n/d: too much\n");
  config.vms[0].weight = 11;
  EXPECT_FALSE(take_possible(config, possible)) << "the broker's own file is no matter of a drop-in";
  config.vms = {vm("a", "", 11)};
  EXPECT_FALSE(take_possible(config, possible));
}

// ---- a broker ------------------------------------------------------------------------------------------------------

// An ivgpud that serves a Place. The test reads the broker's log and pid.
struct Served {
  const Place& place;
  pid_t pid = -1;
  explicit Served(const Place& where) : place(where) {
    const std::string log = place.config.write("log", "");
    pid = fork();
    if (pid == 0) {
      dup2(open(log.c_str(), O_WRONLY | O_APPEND), 2);
      execl(IVGPUD, "ivgpud", "--config", (place.config / "c.toml").c_str(), nullptr);
      _exit(126);
    }
    EXPECT_TRUE(eventually([&] { return fs::exists(place.runtime / "ivgpud.control"); })) << place.config.read("log");
  }
  ~Served() {
    kill(pid, SIGTERM);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  bool eventually_logged(const std::string& text) const {
    return eventually([&] { return place.config.read("log").find(text) != std::string::npos; });
  }
  Outcome ivgpu(std::vector<std::string> words) const {
    words.insert(words.begin() + 1, {"--runtime-dir", place.runtime.path()});
    return run_program(IVGPU, words);
  }
  bool serves(const std::string& vm) const { return Client(place.runtime / (vm + ".sock")).connected; }
};

TEST(DropIns, ABadOneKeepsNoOtherVmFromBeingServed) {
  const Place place;
  place.file("[vm.t]\n");
  const std::string bad = place.permanent("bad.toml", "[vm.bad]\nslots = 0\n");
  place.permanent("good.toml", "[vm.good]\n");
  const Served broker(place);
  EXPECT_TRUE(broker.serves("t") && broker.serves("good"));
  EXPECT_TRUE(broker.eventually_logged(
      bad + ": [vm.bad] slots = 0: slots takes an integer from 1 to 64; the file is not taken"));
  const Outcome check = run_ivgpud({"--check", "--config", place.config / "c.toml"});
  EXPECT_EQ(check.code, 2);
  EXPECT_EQ(check.text.rfind("ivgpud: " + bad + ": [vm.bad] slots = 0", 0), 0U) << check.text;

  const Outcome same = broker.ivgpu({"reload"});
  EXPECT_EQ(same.code, 1) << "something of the files is not served";
  EXPECT_EQ(same.text,
            "ivgpu: " + bad + ": [vm.bad] slots = 0: slots takes an integer from 1 to 64; the file is not taken\n");
  place.permanent("bad.toml", "[vm.bad]\n");
  const Outcome mended = broker.ivgpu({"reload"});
  EXPECT_EQ(mended.text, "VM bad: added\n");
  EXPECT_EQ(mended.code, 0);
}

TEST(DropIns, AVmThatIsServedStaysWhenItsFileBreaks) {
  const Place place;
  place.file("[vm.t]\n");
  const std::string file = place.added("u.toml", "[vm.u]\nspare = 2\n");
  const Served broker(place);
  Client guest(place.runtime / "u.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.claim());
  place.added("u.toml", "[vm.u]\nspare = 1\nnonsense = 3\n");
  place.added("v.toml", "[vm.v]\n");
  const Outcome broken = broker.ivgpu({"reload"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_EQ(broken.text.rfind("ivgpu: " + file + ": [vm.u] has no key 'nonsense'; it takes ", 0), 0U) << broken.text;
  EXPECT_NE(broken.text.find("; the VM stays as it is\nVM v: added\n"), std::string::npos) << broken.text;
  EXPECT_TRUE(guest.tell(0, 'c')) << "its session goes on";
  fs::remove(file);
  EXPECT_EQ(broker.ivgpu({"reload"}).text,
            "VM u: removed, its 1 session(s) end\nVM u: its workers and its memory have gone\n");
}

TEST(DropIns, AGpuThatIsNotThereConcernsItsVmAlone) {
  const Place place;
  setenv("IVGPU_SIM_DEVICES", "2", 1);
  std::string file = place.config.read(fs::path(place.file("[vm.t]\n")).filename());
  file.replace(file.find("library = \""), file.find("\n[defaults]") - file.find("library = \""), "library = \"sim\"");
  place.config.write("c.toml", file);
  const std::string ninth = place.permanent("ninth.toml", "[vm.ninth]\ngpus = [8]\n");
  place.permanent("second.toml", "[vm.second]\ngpus = [1]\n");
  const Served broker(place);
  EXPECT_TRUE(broker.serves("t") && broker.serves("second"));
  EXPECT_TRUE(broker.eventually_logged(ninth + ": [vm.ninth] gpus: ")) << place.config.read("log");
  place.permanent("second.toml", "[vm.second]\ngpus = [7]\n");
  const Outcome moved = broker.ivgpu({"reload"});
  EXPECT_EQ(moved.code, 1);
  EXPECT_NE(moved.text.find("second.toml: [vm.second] gpus: "), std::string::npos) << moved.text;
  EXPECT_NE(moved.text.find("; the VM stays as it is"), std::string::npos) << moved.text;
  EXPECT_TRUE(broker.serves("second"));
  unsetenv("IVGPU_SIM_DEVICES");
}

TEST(DropIns, ABrokerMayHaveNoVmYet) {
  const Place place;
  const Outcome check = run_ivgpud({"--check", "--config", place.file("")});
  EXPECT_EQ(check.code, 0) << check.text;
  const Served broker(place);
  EXPECT_EQ(broker.ivgpu({"status"}).code, 0);
  place.added("a.toml", "[vm.a]\n");
  EXPECT_EQ(broker.ivgpu({"reload"}).text, "VM a: added\n");
  EXPECT_TRUE(broker.serves("a"));
  fs::remove(place.runtime / "vms.d/a.toml");
  EXPECT_EQ(broker.ivgpu({"reload"}).code, 0) << "and have none any more";
  EXPECT_FALSE(broker.serves("a"));
}

// ---- ivgpu add, ivgpu remove ---------------------------------------------------------------------------------------

TEST(Add, AddsAVmUntilItIsRemoved) {
  const Place place;
  place.file("");
  fs::remove(place.runtime / "vms.d");
  const Served broker(place);
  const Outcome added = broker.ivgpu({"add", "a.b", "--set", "slots = 2", "--set", "weight = 7"});
  EXPECT_EQ(added.text, "VM a.b: added\n");
  EXPECT_EQ(added.code, 0);
  EXPECT_EQ(place.runtime.read("vms.d/a.b.toml"), "[vm.\"a.b\"]\nslots = 2\nweight = 7\n");
  EXPECT_TRUE(Client(place.runtime / "a.b.sock").greet(2));
  const Outcome twice = broker.ivgpu({"add", "a.b"});
  EXPECT_EQ(twice.code, 1);
  EXPECT_EQ(twice.text, "ivgpu: VM a.b is there already: `ivgpu remove a.b` takes it away\n");
  EXPECT_EQ(broker.ivgpu({"remove", "a.b"}).text, "VM a.b: removed\n");
  EXPECT_FALSE(broker.serves("a.b"));
  EXPECT_EQ(broker.ivgpu({"remove", "a.b"}).code, 1);
  EXPECT_EQ(broker.ivgpu({"remove", "a.b", "--owner", "me"}).code, 0) << "nothing of its own is nothing to do";
}

TEST(Add, AnOwnersVmIsTheOwnersAlone) {
  const Place place;
  place.file("");
  const Served broker(place);
  ASSERT_EQ(broker.ivgpu({"add", "a", "--owner", "one", "--set", "slots = 2"}).code, 0);
  EXPECT_EQ(place.runtime.read("vms.d/a.toml"), "# for one\n[vm.a]\nslots = 2\n");
  const Outcome other = broker.ivgpu({"add", "a", "--owner", "another"});
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(other.text, "ivgpu: VM a is there already, for one: `ivgpu remove a` takes it away\n");
  EXPECT_EQ(broker.ivgpu({"remove", "a", "--owner", "another"}).text, "");
  EXPECT_TRUE(broker.serves("a"));
  Client left(place.runtime / "a.sock");
  ASSERT_TRUE(left.greet(2));
  EXPECT_EQ(broker.ivgpu({"add", "a", "--owner", "one"}).code, 0);
  Client fresh(place.runtime / "a.sock");
  ASSERT_TRUE(fresh.greet(3));
  struct stat before {
  }, after{};
  ASSERT_TRUE(fstat(left.memfd, &before) == 0 && fstat(fresh.memfd, &after) == 0);
  EXPECT_NE(before.st_ino, after.st_ino) << "the same owner's next VM has memory of its own";
  EXPECT_EQ(broker.ivgpu({"remove", "a"}).code, 0) << "a person need not know the owner";
}

TEST(Add, WhatTheBrokerRefusesIsNotKept) {
  const Place place;
  const std::string main = place.file("[vm.t]\n");
  const Served broker(place);
  const std::string file = place.runtime / "vms.d/a.toml";
  const Outcome bad = broker.ivgpu({"add", "a", "--set", "slots = 0"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_EQ(bad.text,
            "ivgpu: " + file + ": [vm.a] slots = 0: slots takes an integer from 1 to 64; the file is not taken\n");
  const Outcome table = broker.ivgpu({"add", "a", "--set", "[vm.b] # ="});
  EXPECT_EQ(table.text,
            "ivgpu: " + file + ": it takes one table, [vm.a], which is named as the file is; the file is not taken\n");
  const std::string stale = place.runtime.write("stale", "no memory of ours");
  const Outcome unserved =
      broker.ivgpu({"add", "a", "--set", "transport = \"plain\"", "--set", "plain_file = \"" + stale + "\""});
  EXPECT_EQ(unserved.code, 1);
  EXPECT_EQ(unserved.text.rfind("ivgpu: VM a is not served: plain_file = ", 0), 0U) << unserved.text;
  EXPECT_EQ(broker.ivgpu({"add", "t"}).text,
            "ivgpu: VM t is served already, by a table of the configuration: take it out there first\n");
  place.config.write("c.toml", "nonsense");
  const Outcome broken = broker.ivgpu({"add", "a"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_NE(broken.text.find("; nothing is changed\n"), std::string::npos) << broken.text;
  EXPECT_TRUE(fs::is_empty(place.runtime / "vms.d"));
}

TEST(Add, AnothersMistakeIsNoObstacle) {
  const Place place;
  place.file("[vm.t]\n");
  const std::string bad = place.permanent("bad.toml", "[vm.bad]\nslots = 0\n");
  const Served broker(place);
  const Outcome added = broker.ivgpu({"add", "a"});
  EXPECT_EQ(added.code, 0);
  EXPECT_EQ(added.text, "ivgpu: " + bad +
                            ": [vm.bad] slots = 0: slots takes an integer from 1 to 64; the file is not taken\n"
                            "VM a: added\n");
}

TEST(Add, StrangeWordsComeNowhere) {
  const Place place;
  place.file("");
  const Served broker(place);
  for (const std::string name : {"../a", "a/b", "", ".a", "a b", "a\nb", "-", "$(touch x)"})
    EXPECT_EQ(broker.ivgpu({"add", "--", name}).code, 2) << name;
  EXPECT_EQ(broker.ivgpu({"add", std::string(64, 'a')}).code, 2);
  for (const std::string line : {"", "slots", "slots = 2\nspare = 3", "a = '\x1b'"})
    EXPECT_EQ(broker.ivgpu({"add", "a", "--set", line}).code, 2) << line;
  EXPECT_EQ(broker.ivgpu({"add", "a", "--owner", "one\n[broker]"}).code, 2);
  EXPECT_EQ(broker.ivgpu({"add"}).code, 2);
  EXPECT_EQ(broker.ivgpu({"remove", "../a"}).code, 2);
  EXPECT_TRUE(fs::is_empty(place.runtime / "vms.d"));
}

TEST(Add, WithoutABrokerNothingIsWritten) {
  const Place place;
  const Outcome none = run_program(IVGPU, {"add", "--runtime-dir", place.runtime.path(), "a"});
  EXPECT_EQ(none.code, 3);
  EXPECT_EQ(none.text,
            "ivgpu: no ivgpud answers at " + (place.runtime / "ivgpud.status") + ": No such file or directory\n");
  EXPECT_TRUE(fs::is_empty(place.runtime / "vms.d"));
  const std::string file = place.added("a.toml", "[vm.a]\n");
  EXPECT_EQ(run_program(IVGPU, {"remove", "--runtime-dir", place.runtime.path(), "a"}).code, 3);
  EXPECT_FALSE(fs::exists(file)) << "the next broker does not serve it";
}

}  // namespace
