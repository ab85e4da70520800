// Prints docs/configuration.md from the table of keys (config_keys.cc). A test checks that the page is current.
#include <fmt/format.h>

#include "host/broker/config/config.h"

namespace {

constexpr const char* head = R"(# Configuration

`ivgpud --config FILE` reads one TOML file. This page is made from the table that parses it: `host/broker/config/config_keys.cc`, by
`build/host/broker/configuration`. `ivgpud --print-config` prints the same as a file with every default in place,
`ivgpud --check --config FILE` says whether a file is good and could be served here, and a mistake gets one sentence that
names the file, the key and what is allowed.

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
`<runtime_dir>/NAME.sock`. Its table may stand in [a file of its own](#a-file-for-each-vm) instead. What the table does not say
is as in `[defaults]`, and what that does not say is as below. Sizes are texts with a unit, KiB to TiB.

The file is read at the start, and again at SIGHUP (`systemctl reload`) or `ivgpu reload`. The last column says of each key when a change of
it counts then: at once, for sessions or VMs that are new from then on, or not before a restart of `ivgpud`, after which
its VMs must be started again. [More of that](#reading-the-file-again).
)";

constexpr const char* tail = R"(
## A file for each VM

A VM that somebody else adds than who writes the file, or that comes and goes while the machine runs, has a file of its own:

| | |
|---|---|
| `vms.d/NAME.toml` beside the file, as `/etc/ivgpu/vms.d/vm1.toml` | stays, as the file does |
| `<runtime_dir>/vms.d/NAME.toml`, as `/run/ivgpu/vms.d/vm1.toml` | goes when the machine restarts; `ivgpu add` and `ivgpu remove` write and remove it, by libvirt's [hook](host.md#giving-a-vm-the-device) and by hand |

It has the table `[vm.NAME]`, named as the file is, and no other: `[defaults]` and the rest are the broker's file's. Files
that are not called `*.toml` are not looked at, nor hidden ones. They are read when the broker's file is read, at the start
and at a reload.

* A mistake in such a file concerns its VM alone: the other VMs are served, the log and `ivgpu reload` give the sentence,
  and a VM that is served already stays as it is. So it is where a VM's GPUs, quota or user are not possible beside those
  of the broker's file and of the VMs that are there. `ivgpud --check`, and so `systemctl reload`, fail for it.
* A VM has one table. Where another file has it as well, that is a mistake that names both, and the first counts: the
  broker's file, then the folder beside it, then that in `runtime_dir`.
* With `worker_uids` these VMs are counted behind those of the broker's file.
* Where one of the two folders is there, `ivgpud` starts without a VM, and goes on when the last has gone. The packages bring
  both.

## Reading the file again

SIGHUP and `ivgpu reload` have `ivgpud` read its file again. The log has a line for each thing that changes, and for each
key that needs a restart; `ivgpu reload` prints these lines, waits until what is removed has gone and what is new is
served, and fails where something is not. A file with a mistake changes nothing, and the log says where the mistake is.
`ivgpud --check --config FILE` says it before. Files of single VMs are read again with it.

* A VM that is new in the file is served from then on.
* A VM that is not in it any more is removed: nobody connects any more, its sessions end (their programs' calls return
  CUDA_ERROR_DEVICE_UNAVAILABLE), and its memory goes back to the machine, what its programs had pinned included. Huge
  pages stay until its QEMU ends. New VMs come after that, so that they may have the same name, file or user.
* Where a key counts for new sessions, workers that were started ahead are replaced. Sessions that run keep what they
  have.
* VMs keep the user of `worker_uids` that they have, wherever they stand in the file by then.
* A VM that could not be served at the start, or the last time, is tried again. One such VM keeps no other from being
  served; where the file has VMs and none can be, `ivgpud` ends with exit code 1.

A closed terminal sends SIGHUP as well: `ivgpud` goes on. Brokers that `ivgpu run` and `ivgpu vm` start end with them.

## A VM's GPUs

```toml
[vm.build]
gpus = [1]                                  # by index
[vm.train]
gpus = ["GPU-1a2b3c4d", "0000:81:00.0"]     # by how a UUID begins, by PCI address
```

A guest sees the GPUs of its VM and no others, in the order of the array: the first is its device 0. What it learns of
each (UUID, PCI address, name) is the real one's. Several VMs may have the same GPU. `ivgpu status` shows each VM's.

* An index counts in the order of PCI addresses, as `nvidia-smi` does, and not by speed, as CUDA does where
  `CUDA_DEVICE_ORDER` is not set. UUIDs stay the same when a GPU is added. `ivgpu check` lists the GPUs with all three.
* Workers can open the device files of their VM's GPUs only (`/dev/nvidia0` of GPU 0, say, as the kernel numbers them),
  beside the three that all GPUs share: `nvidiactl`, `nvidia-uvm`, `nvidia-uvm-tools`. This is Landlock's work; where
  the kernel has none, a guest still sees its own GPUs only, and the log says that the jail is incomplete.
* With `"all"`, workers see what the broker's environment leaves them (`CUDA_VISIBLE_DEVICES`, `CUDA_DEVICE_ORDER`), and
  can open the device files of all GPUs. With an array, these two variables of the environment are replaced, and the log
  says so.
* The kernel is asked when `ivgpud` starts (`/proc/driver/nvidia/gpus`). It does not know the UUID of a GPU that nobody
  has used yet; `nvidia-persistenced` changes that, or `nvidia-smi`, once.
* A MIG device is named by its UUID (`"MIG-..."`, from `nvidia-smi -L`), alone: CUDA shows a process one of them. The
  kernel does not say on which GPU it lies, so its workers can open the device files of all GPUs, and the log warns
  of it.
* With `placement = "least-loaded"` or `"packed"` a VM gets one of the GPUs that `gpus` names, or of all: the one with the least
  memory promised by `gpu_memory`, or the one with the most VMs, of those with room for its own `gpu_memory`. Several MIG devices may
  be named then. The choice is made when the VM is added, `ivgpu status` and the log show it, and it stays while the VM is
  served. VMs choose in the order of their names, after those whose GPUs are fixed ([why](design/032-placement.md)).
* The simulated GPU's devices (`library = "sim"`, `IVGPU_SIM_DEVICES`) are named in the same way.

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

`ivgpud` starts an MPS control daemon of NVIDIA's for each GPU that some VM uses, before the first worker, and ends it when it
ends itself. Kernels of several VMs run side by side then: a launch and its wait took 9 us on an H200 beside one other process, and 274 us
in time slices. The price: the VMs
of a GPU are one trust domain. A fault in one VM's kernel ends the sessions of all of them. Their workers run as one user, and
one process of NVIDIA's, the MPS server, stands alone between the memory of one VM and that of another.
A program that makes contexts of its own needs a host with Linux 5.9 or later there, or gets CUDA_ERROR_MPS_CONNECTION_FAILED.
[How it works, and what a GPU has answered](design/031-mps.md).

* A VM has one GPU; on a host with several, `gpus` names it or `placement` chooses it. The VMs of a GPU have one `worker_uid`, so `worker_uids` stays out.
* After a fault, a crash of a worker, or the end of the daemon, the log has a line for each VM of the GPU. Programs get the driver's
  own error for 5 s, then their sessions end, and fresh workers start.
* A daemon that does not start, or ends, is started again, after 250 ms, and twice as long each time, up to 30 s. The log has its
  words; its own log is in `<runtime_dir>/mps/<UUID>/log`. A daemon that lives there already, as one that a killed `ivgpud` has left,
  is named with the command that ends it, and its VMs are not served.
* `active_threads` is no bound for a VM whose guest has subverted its worker.

## Bounds of a VM

| bound | counts | reached | needs |
|---|---|---|---|
| `session_image_bytes`, `session_objects` | what one program has loaded, made and allocated; what it unloads, destroys, frees or resets comes back | the call returns CUDA_ERROR_OUT_OF_MEMORY | nothing |
| `memory_max` | pages of the VM's workers: the driver's own, and those of the region that a worker touches or registers before QEMU does | the largest worker is killed, its program gets an error, the others go on | a control group |
| `gpu_memory` | of each GPU what the VM's workers hold, with all that the driver takes for them, unused ones included | the call returns CUDA_ERROR_OUT_OF_MEMORY; a worker that holds more all the same is ended | nothing; that it is measured, NVML |
| `pids_max` | threads of the VM's workers | no further thread is made; a worker that starts then may fail | a control group; or root, and a `worker_uid` of the VM's own |
| `cpu_max` | processor time of the VM's workers | they wait for the next tenth of a second | a control group |

With `gpu_memory` a VM's guests are told that their GPUs have so much memory, and how much of it is free. The sum of all VMs'
quotas of a GPU may not be above what it has, unless `overcommit = true`; VMs without a quota share the rest. Each worker
takes some before its program does anything (523 MiB on an H200), and 64 MiB are kept for what its driver takes later: a VM
whose quota is full starts no spare worker, and a program that needs one waits. `ivgpu-nvml`, which lies beside
`ivgpud`, asks NVIDIA's library twice a second who holds how much. Where that cannot tell, quotas count what workers
themselves count, and the log and `ivgpu status` say so. The kernel tells a broker with
CAP_SYS_PTRACE how much managed memory a worker has; the log says where nobody knows it. [How it works](design/029-memory-quotas.md).

Control groups are those of version 2. `ivgpud` makes one for each VM below its own where that is its alone and delegated
to it, with the controllers `memory`, `pids` and `cpu`. [The service](host.md#the-service) has it so, by the line
`Delegate=cpu memory pids` of its unit.

Where it may not make groups, it says once in the log what is missing, and `ivgpu check` says what to do; with
`cgroups = "required"` it does not start. `ivgpu status` shows each VM's bounds and what it uses of them. Nothing is
swapped out for a VM with a `memory_max`. When the whole machine is short of memory, the kernel ends workers first
(`oom_score_adj` 900) and a broker that is root last (-900).
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
