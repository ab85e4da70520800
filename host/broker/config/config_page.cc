// Prints docs/configuration.md from the table of keys (config_keys.cc). A test checks that the page is current.
#include <fmt/format.h>

#include "host/broker/config/config.h"

namespace {

constexpr const char* head = R"(# Configuration

`ivgpud --config FILE` reads one TOML file. `ivgpud --print-config` prints a file with every key and its default. `ivgpud --check
--config FILE` tells whether a file is good and this machine can serve it. An error names the file, the key and the allowed values.
`build/host/broker/configuration` prints this page from the table that parses the file (`host/broker/config/config_keys.cc`).

```toml
[broker]
socket_group = "libvirt-qemu"

[defaults]          # for all VMs
region_size = "2GiB"

[vm.build]          # one table for each VM; it may be empty
[vm.train]
region_size = "16GiB"
slots = 4
```

A VM's name has 1 to 63 letters, digits, `-`, `_` and `.`, and begins with a letter or digit. Its socket is
`<runtime_dir>/NAME.sock`. A VM's table may also lie in [a file of its own](#a-file-for-each-vm). A key that the table lacks has its
value from `[defaults]`, or else the default below. Sizes are texts with a unit, KiB to TiB.

`ivgpud` reads the file at the start, at SIGHUP (`systemctl reload`) and for `ivgpu reload`. The last column tells when a change of
a key counts: at once, for new sessions, for new VMs, or after a restart of `ivgpud` and then of its VMs
([more](#reading-the-file-again)).
)";

constexpr const char* tail = R"(
## A file for each VM

A VM may have a file of its own, so that VMs can come and go, or another program than an editor adds them:

| | |
|---|---|
| `vms.d/NAME.toml` in the file's folder, as `/etc/ivgpu/vms.d/vm1.toml` | stays |
| `<runtime_dir>/vms.d/NAME.toml`, as `/run/ivgpu/vms.d/vm1.toml` | is gone after a restart of the machine. `ivgpu add` and `ivgpu remove` write and remove it, called by libvirt's [hook](host.md#giving-a-vm-the-device) or by hand |

Such a file has only the table `[vm.NAME]`, with the file's name. `[defaults]` and the other tables belong to the broker's file.
`ivgpud` reads these files whenever it reads its own. It ignores hidden files, and names that do not end in `.toml`.

* A mistake in such a file concerns only its VM. `ivgpud` serves the other VMs, the log and `ivgpu reload` name the mistake, and a
  running VM stays as it is. The same holds for GPUs, a quota or a user that conflict with other VMs. `ivgpud --check`, and so
  `systemctl reload`, fail for it.
* A VM has one table. If two files have it, the error names both, and the first counts: the broker's file, then the folder beside
  it, then the folder in `runtime_dir`.
* `worker_uids` counts these VMs after those of the broker's file.
* If one of the two folders exists, `ivgpud` starts without a VM, and goes on after the last VM is gone. The packages make both.

## Reading the file again

At SIGHUP and for `ivgpu reload`, `ivgpud` reads its file and those of single VMs again. The log has a line for each change, and for
each key that needs a restart. `ivgpu reload` prints these lines, waits until removed VMs are gone and `ivgpud` serves new ones, and
fails if a VM cannot be served. A file with a mistake changes nothing; the log names the mistake, as `ivgpud --check --config FILE`
does before.

* `ivgpud` serves a new VM from then on.
* It removes a VM that the file no longer has. Connections end, programs' calls return CUDA_ERROR_DEVICE_UNAVAILABLE, and the VM's
  memory, also pinned memory, goes back to the machine. Huge pages stay until the VM's QEMU ends. New VMs come after that, so they
  may have the same name, file or user.
* For keys that count for new sessions, `ivgpud` replaces spare workers. Running sessions keep their values.
* A VM keeps its user of `worker_uids`, even if its place in the file changes.
* `ivgpud` tries again to serve a VM that failed before. One such VM does not keep others from being served. At the start, if the
  file has VMs and all fail, `ivgpud` ends with exit code 1.

A closed terminal also sends SIGHUP; `ivgpud` goes on. Brokers that `ivgpu run` and `ivgpu vm` start end with these commands.

## A VM's GPUs

```toml
[vm.build]
gpus = [1]                                  # by index
[vm.train]
gpus = ["GPU-1a2b3c4d", "0000:81:00.0"]     # by how a UUID begins, by PCI address
```

A guest sees only its VM's GPUs, in the order of the array: the first is its device 0. UUID, PCI address and name are those of the
real GPU. Several VMs may have the same GPU. `ivgpu status` shows each VM's GPUs.

* An index counts in the order of PCI addresses, as in `nvidia-smi`, not by speed, as in CUDA by default. UUIDs stay the same when a
  GPU is added. `ivgpu check` lists the GPUs with all three.
* Workers can open only the device files of their VM's GPUs, such as `/dev/nvidia0`, and the three that all GPUs share: `nvidiactl`,
  `nvidia-uvm`, `nvidia-uvm-tools`. Landlock enforces this. On a kernel without Landlock a guest still sees only its own GPUs, and
  the log says that the jail is incomplete.
* With `"all"`, workers obey `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` of the broker's environment, and can open the device
  files of all GPUs. With an array, `ivgpud` replaces these two variables, and the log says so.
* `ivgpud` asks the kernel when it starts (`/proc/driver/nvidia/gpus`). The kernel does not know the UUID of an unused GPU;
  `nvidia-persistenced`, or one run of `nvidia-smi`, changes that.
* A MIG device has its UUID as name (`"MIG-..."`, from `nvidia-smi -L`), and is the only entry, since CUDA shows a process one MIG
  device. The kernel does not tell its GPU. Its workers can therefore open the device files of all GPUs, and the log warns of that.
* With `placement = "least-loaded"` or `"packed"` a VM gets one GPU of `gpus` that has room for its `gpu_memory`: the one with the
  least memory promised by `gpu_memory`, or the one with the most VMs. `gpus` may then name several MIG devices. `ivgpud` chooses
  when the VM is added, shows the choice in `ivgpu status` and the log, and keeps it while it serves the VM. VMs choose in the order
  of their names, after those with fixed GPUs ([why](design/032-placement.md)).
* The devices of the simulated GPU, a test double (`library = "sim"`, `IVGPU_SIM_DEVICES`), have the same kinds of names.

## MPS

```toml
[gpu]
policy = "mps"
[vm.a]
gpus = [0]
[vm.b]
gpus = [0]
active_threads = 50     # percent of the GPU's multiprocessors
```

For each GPU that a VM uses, `ivgpud` starts one of NVIDIA's MPS control daemons before the first worker, and ends it with itself.
Kernels of several VMs then run at the same time: beside one other process a launch and its wait took 9 us on an H200, against 274
us by time slices. The price: the VMs of a GPU are one trust domain. A fault in one VM's kernel ends the sessions of all of them.
Their workers run as one user, and only NVIDIA's MPS server separates the memory of the VMs. A program that makes its own contexts
needs a host with Linux 5.9 or later, or gets CUDA_ERROR_MPS_CONNECTION_FAILED ([how it works](design/031-mps.md)).

* A VM has one GPU; on a host with several, `gpus` names it or `placement` chooses it. The VMs of a GPU share one `worker_uid`;
  `worker_uids` must be empty.
* After a fault, a crash of a worker, or the end of the daemon, the log has a line for each VM of the GPU. For 5 s programs get the
  driver's own error. Then their sessions end, and fresh workers start.
* `ivgpud` restarts a daemon that ended or did not start, after 250 ms and then twice as long each time, up to 30 s. The log has its
  messages; the daemon's own log is in `<runtime_dir>/mps/<UUID>/log`. If another daemon runs there, as one of a killed `ivgpud`,
  the log names the command that ends it, and `ivgpud` does not serve its VMs.
* `active_threads` does not bind a subverted worker.

## Bounds of a VM

| bound | counts | when reached | needs |
|---|---|---|---|
| `session_image_bytes`, `session_objects` | a program's loaded images and its objects, until it unloads, destroys, frees or resets them | the call returns CUDA_ERROR_OUT_OF_MEMORY | nothing |
| `memory_max` | pages of the VM's workers: the driver's own, and those of the region that a worker touches or registers before QEMU does | the kernel kills the largest worker, and its program gets an error; the others go on | a control group |
| `gpu_memory` | the memory of each GPU that the VM's workers hold, spare ones too, with the driver's own | the call returns CUDA_ERROR_OUT_OF_MEMORY; `ivgpud` ends a worker that holds more all the same | nothing; for measuring, NVML |
| `pids_max` | threads of the VM's workers | the kernel makes no further thread; a starting worker may fail | a control group; or root, and a `worker_uid` of this VM alone |
| `cpu_max` | processor time of the VM's workers | they wait for the next tenth of a second | a control group |

With `gpu_memory` a VM's guests see GPUs of that size, and what is free of it. The quotas of a GPU may not add up to more than its
memory, unless `overcommit = true`. VMs without a quota share the rest. Each worker takes some memory before its program does
anything (523 MiB on an H200), and `ivgpud` keeps 64 MiB for its driver's later needs. A VM whose quota is full therefore starts no
spare worker, and a program that needs one waits. `ivgpu-nvml` asks NVIDIA's library twice a second how much each process holds. If
the library cannot tell, quotas rely on the workers' own counts, and the log and `ivgpu status` say so. A broker with CAP_SYS_PTRACE
learns from the kernel how much managed memory a worker has; without it the log says that this is unknown ([how it
works](design/029-memory-quotas.md)).

`ivgpud` makes a control group (version 2) for each VM below its own group. That group must be delegated to it, must hold no other
process, and needs the controllers `memory`, `pids` and `cpu`. [The service's](host.md#the-service) unit has the line `Delegate=cpu
memory pids`.

If it cannot make groups, the log says once what is missing, and `ivgpu check` names the remedy; with `cgroups = "required"` it does
not start. `ivgpu status` shows each VM's bounds and their use. The workers of a VM with a `memory_max` have no swap. When the whole
machine is short of memory, the kernel ends workers first (`oom_score_adj` 900) and a root broker last (-900).
)";

constexpr const char *title_broker = "[broker]", *title_gpu = "[gpu]", *title_vm = "[defaults] and each [vm.NAME]";

// Markdown would read <this> as a tag.
std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 4) text.replace(at, 1, "&lt;");
  return text;
}

std::string title_of(const std::string& table) {
  return table == "broker" ? title_broker : table == "gpu" ? title_gpu : title_vm;
}

}  // namespace

int main() {
  fmt::print("{}", head);
  std::string table;
  for (const host::broker::KeyInWords& key : host::broker::keys_in_words()) {
    if (key.table != table) {
      table = key.table;
      fmt::print("\n## {}\n\n| key | type | default | takes | meaning | a change counts |\n|---|---|---|---|---|---|\n",
                 title_of(table));
    }
    fmt::print("| `{}` | {} | {} | {} | {} | {} |\n", key.name, key.type, key.fallback, key.allowed, escaped(key.help),
               key.reload);
  }
  fmt::print("{}", tail);
}
