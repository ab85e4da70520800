// NVIDIA's MPS control daemon of one GPU: its folders, its start and end, and queries through its client program
// (docs/design/031-mps.md). It is the broker's child. If sessions outlive the broker, it is instead the child of a
// keeper process (host/broker/mps/mps_supervisor_main.cc), which the next broker adopts (docs/design/034-restart.md).
//
// Trust: NVIDIA's daemon is trusted. The workers' user owns its folders and may damage their contents.
//
// Threads: the broker's event loop only. Only prepare() uses the file system; no function waits for a process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/process/helper.h"
#include "host/base/result.h"
#include "host/broker/mps/mps_store.h"

namespace host::broker {

// Folders below the broker's runtime_dir, the same for daemon and workers.
struct MpsFolders {
  std::string gpu, pipe, log;
};
MpsFolders mps_folders(const std::string& runtime_dir, const std::string& gpu);

class MpsDaemon {
 public:
  struct Place {
    std::string program;      // the path of nvidia-cuda-mps-control
    std::string runtime_dir;  // the broker's
    std::string gpu;          // UUID
    uid_t uid = 0;            // of the workers; only root gives them its folders
    gid_t gid = 0;
    int priority = 0;  // as nice(1) counts
    // The daemon outlives the broker through this; null: it does not.
    FdStore* store = nullptr;
    std::string supervisor = {};  // path of ivgpu-mps
    int life_fd = -1;             // closes with the broker
    std::uint32_t outlive_ms = 0;
    bool waits = false;  // wait for another daemon in the folder to end
  };
  struct Events {
    std::function<void()> up;
    // The daemon has ended or did not start. `was_up`: it had been up.
    std::function<void(const std::string& why, bool was_up)> down;
  };
  using Answer = std::function<void(const std::optional<std::string>&)>;

  MpsDaemon(EventLoop& loop, Place place, Events events);
  // Ends the daemon within a second, unless end() has done so.
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

  // Adopts an earlier broker's daemon, which is up, or `up` follows. False if there is none. An error, half a sentence,
  // if the daemon cannot be adopted; it then ends.
  Result<bool> adopt();
  // True while another broker's daemon runs in the folder, and this one waits for its end.
  bool is_in_use() const { return place_.waits && !living_other().empty(); }
  // Makes the folders anew. The error, because another daemon runs there for example, is one sentence.
  Result<void> prepare() const;
  // Calls `up` or `down` later. Precondition: it does not run, and prepare() succeeded.
  void start();
  bool runs() const { return process_ != nullptr; }
  bool is_up() const { return up_; }

  // Sends `words` to the daemon and passes its answer to `answer`: nothing if none comes within `patience`.
  void ask(const std::string& words, Clock::duration patience, Answer answer);
  // Ends the daemon by `quit`, then SIGTERM, then SIGKILL, and calls `done` when it has gone, at once if it does not
  // run. `down` is not called any more.
  void end(std::function<void()> done);

  // Lets the daemon go on when the broker ends; open questions are dropped.
  void leave();
  // The state that the next broker reads.
  SavedMps& saved() { return store_.saved(); }

  const Place& place() const { return place_; }
  const MpsFolders& folders() const { return folders_; }

 private:
  struct Question {
    std::unique_ptr<Helper> client;
    EventLoop::Id timer = 0;
    Answer answer;
  };

  Helper::Command command(std::vector<std::string> arguments, const std::string& input) const;
  Helper::Command kept_command(int control) const;
  Result<std::unique_ptr<Helper>> run();
  Result<std::unique_ptr<Helper>> run_kept();
  Helper::Gone on_end();
  std::uint64_t mark() const;
  bool has_pipe() const;
  std::string living_other() const;
  void look_for_pipe(Clock::time_point until);
  void fail_later(const std::string& why);
  void on_exit(const Helper::Exit& exit);
  void answered(std::uint64_t question, const std::optional<std::string>& reported);
  void signal_next(int number);

  EventLoop& loop_;
  const Place place_;
  const MpsFolders folders_;
  const Events events_;
  MpsStore store_;
  Fd control_;  // to the keeper, if there is one
  std::unique_ptr<Helper> process_;
  std::map<std::uint64_t, Question> questions_;
  std::uint64_t next_question_ = 0;
  EventLoop::Id start_timer_ = 0, end_timer_ = 0;
  std::string given_up_;  // why it was killed while starting
  bool up_ = false;
  std::function<void()> ended_;  // called at its end
};

}  // namespace host::broker
