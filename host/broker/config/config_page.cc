// Prints docs/configuration.md from the table of keys (config_keys.cc). A test checks that the page is current.
#include <fmt/format.h>

#include "host/broker/config/config.h"

namespace {

constexpr const char* head = R"(# Configuration

`ivgpud --config FILE` reads one TOML file. `ivgpud --print-config` prints a file with every key and its default. `ivgpud --check
--config FILE` checks whether a file is valid and this machine can serve it. An error names the file, the key and the allowed
values. `build/host/broker/configuration` prints this page from the table that parses the file
(`host/broker/config/config_keys.cc`).

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
`<runtime_dir>/NAME.sock`. A VM's table may also be in [a separate file](#a-file-for-each-vm). If the table lacks a key, the value
of `[defaults]` applies, or else the default in the tables below. Sizes are texts with a unit, KiB to TiB.

`ivgpud` reads the file at the start, at SIGHUP (`systemctl reload`) and for `ivgpu reload`. The last column states when a change of
a key takes effect: at once, for new sessions, for new VMs, or after a restart of `ivgpud` and then of its VMs
([details](#reading-the-file-again)).
)";

constexpr const char* tail = R"(
## A file for each VM

A VM may have its own file, so that commands and programs can add and remove VMs at any time:

| | |
|---|---|
| `vms.d/NAME.toml` beside the broker's file, for example `/etc/ivgpu/vms.d/vm1.toml` | the file persists |
| `<runtime_dir>/vms.d/NAME.toml`, for example `/run/ivgpu/vms.d/vm1.toml` | a restart of the machine removes the file. `ivgpu add` writes it and `ivgpu remove` removes it; libvirt's [hook](host.md#giving-a-vm-the-device) or a user calls these commands |

Such a file contains only the table `[vm.NAME]`, where NAME is the file's name without `.toml`. `[defaults]` and the other tables
belong into the broker's file. `ivgpud` reads the files of single VMs whenever it reads the broker's file. `ivgpud` ignores hidden
files, and names that do not end in `.toml`.

* A mistake in a VM's file affects only this VM. `ivgpud` serves the other VMs, the log and `ivgpu reload` name the mistake, and a
  running VM keeps its settings. GPUs, a quota or a user that conflict with other VMs are handled like a mistake. In these cases
  `ivgpud --check` and `systemctl reload` fail.
* A VM has one table. If two files have a table for the same VM, the error names both files, and the first of them applies, in this
  order: the broker's file, the folder beside it, the folder in `runtime_dir`.
* `worker_uids` counts the VMs of these files after the VMs of the broker's file.
* If one of the two folders exists, `ivgpud` starts without a VM, and keeps running after the last VM is removed. The packages
  create both folders.

## Reading the file again

At SIGHUP and for `ivgpu reload`, `ivgpud` reads its file and the files of single VMs again. The log has a line for each change, and
for each key that needs a restart. `ivgpu reload` prints these lines, waits until removed VMs have ended and `ivgpud` serves new
VMs, and fails if `ivgpud` cannot serve a VM. If the broker's file has a mistake, `ivgpud` changes nothing, and the log names the
mistake. `ivgpud --check --config FILE` finds the mistake before a reload.

* `ivgpud` begins to serve a new VM.
* `ivgpud` removes a VM that the files no longer contain. The VM's connections end, programs' calls return
  CUDA_ERROR_DEVICE_UNAVAILABLE, and the VM's memory, including pinned memory, returns to the machine. Huge pages stay in use until
  the VM's QEMU ends. `ivgpud` adds new VMs afterwards, so a new VM may have the name, file or user of a removed one.
* For keys that take effect for new sessions, `ivgpud` replaces spare workers. Running sessions keep their values.
* A VM keeps its user of `worker_uids`, even if its position in the file changes.
* `ivgpud` tries again to serve a VM that could not be served before. Such a VM does not prevent `ivgpud` from serving other VMs. If
  all VMs of the file fail at the start, `ivgpud` ends with exit code 1.

A closed terminal also sends SIGHUP, and `ivgpud` keeps running. Brokers that `ivgpu run` and `ivgpu vm` start end with these
commands.

## A VM's GPUs

```toml
[vm.build]
gpus = [1]                                  # by index
[vm.train]
gpus = ["GPU-1a2b3c4d", "0000:81:00.0"]     # by how a UUID begins, by PCI address
```

A guest sees only its VM's GPUs, in the order of the array: the first GPU is the guest's device 0. UUID, PCI address and name are
those of the real GPU. Several VMs may have the same GPU. `ivgpu status` shows each VM's GPUs.

* Indices follow the order of PCI addresses, as in `nvidia-smi`, not the order of speed, as in CUDA by default. UUIDs stay the same
  when a GPU is added. `ivgpu check` lists the GPUs with index, UUID and PCI address.
* Workers can open only the device files of their VM's GPUs, such as `/dev/nvidia0`, and the three device files that all GPUs share:
  `nvidiactl`, `nvidia-uvm`, `nvidia-uvm-tools`. Landlock enforces this. On a kernel without Landlock a guest still sees only its
  own GPUs, and the log reports that the jail is incomplete.
* With `"all"`, workers obey `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` of the broker's environment, and can open the device
  files of all GPUs. With an array, `ivgpud` replaces these two variables, and logs that.
* `ivgpud` reads the GPUs from the kernel when it starts (`/proc/driver/nvidia/gpus`). The kernel does not know the UUID of a GPU
  that has been unused since boot; run `nvidia-persistenced`, or `nvidia-smi` once, so that the kernel learns the UUID.
* A MIG device is named by its UUID (`"MIG-..."`, from `nvidia-smi -L`), and must be the only entry, since CUDA shows a process only
  one MIG device. The kernel does not report to which GPU a MIG device belongs. Workers of such a VM can therefore open the device
  files of all GPUs, and the log warns of that.
* With `placement = "least-loaded"` or `"packed"` a VM gets one GPU of `gpus` that has enough memory for the VM's `gpu_memory`.
  `least-loaded` chooses the GPU with the least memory promised by `gpu_memory`, and `packed` the GPU with the most VMs. `gpus` may
  then name several MIG devices. `ivgpud` chooses the GPU when it adds the VM, shows the choice in `ivgpu status` and the log, and
  keeps it while it serves the VM. `ivgpud` places VMs in the order of their names, after the VMs with fixed GPUs
  ([why](design/032-placement.md)).
* The devices of the simulated GPU, a test double (`library = "sim"`, `IVGPU_SIM_DEVICES`), also have an index, a UUID and a PCI
  address.

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

For each GPU that a VM uses, `ivgpud` starts one of NVIDIA's MPS control daemons before the first worker. When `ivgpud` ends, it
ends the daemons. Kernels of several VMs then run at the same time: beside one other process a launch and its wait took 9 us on an
H200, compared with 274 us with time slices. The disadvantage is that the VMs of a GPU are one trust domain. A fault in one VM's
kernel ends the sessions of all VMs of the GPU. Their workers run as one user, and only NVIDIA's MPS server separates the memory of
the VMs. A program that creates its own contexts needs a host with Linux 5.9 or later; otherwise it gets
CUDA_ERROR_MPS_CONNECTION_FAILED ([how it works](design/031-mps.md)).

* A VM has one GPU; on a host with several GPUs, `gpus` names the GPU or `placement` chooses it. The VMs of a GPU share one
  `worker_uid`; `worker_uids` must be empty.
* After a fault, a crash of a worker, or the end of the daemon, the log has a line for each VM of the GPU. For 5 s programs get the
  driver's own error. Then their sessions end, and new workers start.
* `ivgpud` restarts a daemon that ended or did not start, first after 250 ms, and then after a delay that doubles each time, up to
  30 s. The log of `ivgpud` has the daemon's messages; the daemon's own log is in `<runtime_dir>/mps/<UUID>/log`. If another daemon
  runs in this folder, for example one of a killed `ivgpud`, the log names the command that ends the daemon, and `ivgpud` does not
  serve the VMs of this GPU.
* `active_threads` does not bind a subverted worker.

## Bounds of a VM

| bound | counts | when reached | needs |
|---|---|---|---|
| `session_image_bytes`, `session_objects` | a program's loaded images and its objects, until the program unloads, destroys, frees or resets them | the call returns CUDA_ERROR_OUT_OF_MEMORY | nothing |
| `memory_max` | pages of the VM's workers: the driver's own pages, and pages of the region that a worker accesses or registers before QEMU does | the kernel kills the largest worker, and the worker's program gets an error; other programs continue | a control group |
| `gpu_memory` | the memory of each GPU that the VM's workers hold, including spare workers and the driver's own memory | the call returns CUDA_ERROR_OUT_OF_MEMORY; `ivgpud` ends a worker that exceeds the quota nevertheless | nothing; measuring needs NVML |
| `pids_max` | threads of the VM's workers | the kernel creates no further thread; a worker may fail to start | a control group; or root, and a `worker_uid` that no other VM has |
| `cpu_max` | processor time of the VM's workers | the workers wait for the next tenth of a second | a control group |

With `gpu_memory` a VM's guests see GPUs of that size, and the free part of the quota as free memory. The sum of the quotas of a GPU
may not exceed its memory, unless `overcommit = true`. VMs without a quota share the rest. Each worker uses some memory before its
program makes a call (523 MiB on an H200), and `ivgpud` reserves 64 MiB for later needs of the worker's driver. If a VM's quota is
used up, `ivgpud` therefore starts no spare worker for the VM, and a program that needs a worker waits. `ivgpu-nvml` asks NVIDIA's
library twice a second how much memory each process holds. If the library does not know, quotas rely on the workers' own counts, and
the log and `ivgpu status` report that. A broker with CAP_SYS_PTRACE learns from the kernel how much managed memory a worker has;
without this capability the log reports that the amount is unknown ([how it works](design/029-memory-quotas.md)).

`ivgpud` makes a control group (version 2) for each VM below its own group. The group of `ivgpud` must be delegated to it, must
contain no other process, and needs the controllers `memory`, `pids` and `cpu`. [The service's](host.md#the-service) unit has the
line `Delegate=cpu memory pids`.

If `ivgpud` cannot make control groups, the log names the missing feature once, and `ivgpu check` names the remedy; with `cgroups =
"required"` `ivgpud` does not start. `ivgpu status` shows each VM's bounds and their use. The workers of a VM with a `memory_max`
have no swap. When the whole machine is short of memory, the kernel ends workers first (`oom_score_adj` 900) and a root broker last
(-900).
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
