// The commands of `ivgpu`, each in a file of its own. Each returns the exit code to pass on, or throws an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/ivgpu/support/broker.h"
#include "tools/ivgpu/support/child.h"

namespace ivgpu {

struct RunOptions {
  BrokerOptions broker;
  bool own_broker = false;  // starts a private broker even if a broker already runs
  std::vector<std::string> program;
};
int run(const RunOptions& options);

// Runs a program as a guest of the broker of `region`. Throws an Error if the guest library is missing.
Command loopback_command(const Install& install, const std::vector<std::string>& program, const std::string& region);

struct SimOptions {
  std::vector<std::string> program;
};
int sim(const SimOptions& options);

struct VmOptions {
  BrokerOptions broker;
  bool vsock = false;  // transmits the doorbells of "pmem" over vsock
  std::string memory = "1G";
  int cpus = 2;
  std::filesystem::path kernel;                     // empty: a stock Debian cloud kernel
  std::vector<std::filesystem::path> program_dirs;  // each appears in the guest as /programs/NAME
  std::vector<std::string> environment;             // NAME=VALUE for the guest's command
  int timeout_s = 0;                                // seconds; 0: none
  bool keep = false;                                // open a shell on the terminal after the command
  bool steps = false;                               // report each step on stderr
  std::vector<std::string> command;                 // empty: a shell
};
int vm(const VmOptions& options);

struct StatusOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  bool json = false;
  double watch_s = 0;  // 0: once; else repeatedly, with rates, until the broker ends
};
int status(const StatusOptions& options);

struct EndOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string target;                                // VM, or VM/SESSION
};
int end_sessions(const EndOptions& options);

struct ReloadOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
};
int reload(const ReloadOptions& options);

struct AddOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string vm;
  std::vector<std::string> lines;  // of the VM's configuration table
  std::string owner;               // who uses the VM; empty: unspecified
};
int add_vm_file(const AddOptions& options);

struct RemoveOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string vm;
  std::string owner;  // removes the VM only if the file has this owner; empty: any owner
};
int remove_vm_file(const RemoveOptions& options);

struct TopOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  double interval_s = 1;
  bool once = false;  // print one view and exit
  bool json = false;
  std::string sort = "name";  // one of top::sort_names()
};
int live_view(const TopOptions& options);

// The status document (JSON) of the broker of that runtime_dir.
std::string read_status(const std::filesystem::path& runtime_dir);
// Same, for a broker that has answered before.
std::string read_status_again(const std::filesystem::path& runtime_dir);

// The status document as text, with rates if `before` is an earlier document, `seconds` old. Throws an Error if the
// document has another format version.
std::string status_as_text(const std::string& document, const std::string& before = {}, double seconds = 0);

struct TraceOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";  // of the broker's configuration
  std::string vm;                                    // empty: all
  std::uint32_t slot = ~0U;                          // ~0: all
  std::uint32_t process = 0;                         // 0: all
  bool summary = false;
  std::filesystem::path perfetto;    // the output file
  double seconds = 0;                // 0: until a signal arrives or the broker ends
  BrokerOptions broker;              // the private broker's options, if a program is given
  bool own_broker = false;           // starts a private broker even if a broker already runs
  std::vector<std::string> program;  // empty: watch sessions that other processes start
};
int trace_calls(const TraceOptions& options);

struct CheckOptions {
  std::filesystem::path runtime_dir = "/run/ivgpu";
  std::filesystem::path root;  // empty: this machine
  bool host = false, guest = false, json = false;
};
int check(const CheckOptions& options);

struct CoverageOptions {
  BrokerOptions broker;
  bool files_only = false;  // examine the program's files without running it
  bool json = false;
  std::vector<std::string> program;
};
int coverage(const CoverageOptions& options);

struct BenchOptions {
  BrokerOptions broker;             // an empty region_size: the largest useful size
  std::vector<std::string> groups;  // names of groups as in --help; empty: all
  bool quick = false;               // few samples
  std::vector<std::string> mixes;   // names of mixes of the group share; empty: all
  int pairs = 0;                    // rounds of share; 0: the default
  double round_s = 0;               // seconds per round of share; 0: the default
  bool no_alone = false;            // skip share's measurements of each load alone
  bool mps = false;                 // start an MPS daemon for the benchmark
  bool markdown = false;            // print Markdown tables
  double idle_s = 0;                // seconds for which a session stays idle; 0: 10, or 0.5 with `quick`
  double margin_percent = 20;       // the slowdown that `against` tolerates
  std::filesystem::path json, plot, against;
};
int benchmark(const BenchOptions& options);

}  // namespace ivgpu
