// Prints docs/configuration.md from the table of keys (config.cc). A test holds the page to this.
#include <fmt/format.h>

#include "host/broker/config.h"

namespace {

constexpr const char* head = R"(# Configuration

`ivgpud --config FILE` reads one TOML file. This page is made from the table that parses it: `host/broker/config.cc`, by
`build/host/broker/configuration`. `ivgpud --print-config` prints the same as a file with every default in place,
`ivgpud --check --config FILE` says whether a file is good, and a mistake gets one sentence that names the file, the key
and what is allowed.

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
`<runtime_dir>/NAME.sock`. What a VM's table does not say is as in `[defaults]`, and what that does not say is as below.
Sizes are texts with a unit, KiB to TiB. The file is read once: a change needs a new start of `ivgpud`, and of its VMs.
)";

constexpr const char *title_broker = "[broker]", *title_gpu = "[gpu]", *title_vm = "[defaults] and each [vm.NAME]";

// A page would take <this> for a tag.
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
      fmt::print("\n## {}\n\n| key | type | default | takes | meaning |\n|---|---|---|---|---|\n", title_of(table));
    }
    fmt::print("| `{}` | {} | {} | {} | {} |\n", key.name, key.type, key.fallback, key.allowed, escaped(key.help));
  }
}
