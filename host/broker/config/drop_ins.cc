#include "host/broker/config/drop_ins.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace host::broker {
namespace {

namespace fs = std::filesystem;

bool is_named_as_one(const fs::path& file) {
  return file.extension() == ".toml" && !file.filename().string().starts_with('.');
}

void look_into(const fs::path& folder, DropIns& found) {
  std::error_code failed;
  std::vector<fs::path> files;
  for (auto entry = fs::directory_iterator(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed))
    if (is_named_as_one(entry->path())) files.push_back(entry->path());
  if (failed) found.refused.push_back({"", fmt::format("{}: cannot be read: {}", folder.string(), failed.message())});
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    // Opening a pipe would block until it has a writer.
    if (fs::is_regular_file(file, failed))
      found.files.push_back({file.stem().string(), file.string()});
    else
      found.refused.push_back({file.stem().string(), fmt::format("{}: this is no file", file.string())});
  }
}

}  // namespace

std::string in_words(const RefusedFile& file, bool served) {
  if (file.vm.empty()) return file.sentence;
  return fmt::format("{}; {}", file.sentence, served ? "the VM stays as it is" : "the file is not taken");
}

DropIns find_drop_ins(const std::string& path, const std::string& runtime_dir) {
  std::vector<fs::path> folders = {fs::path(path).parent_path() / "vms.d", fs::path(runtime_dir) / "vms.d"};
  std::error_code failed;
  if (fs::equivalent(folders[0], folders[1], failed)) folders.pop_back();
  DropIns found;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder, failed) && !failed) continue;
    ++found.folders;
    look_into(folder, found);
  }
  return found;
}

Result<std::vector<VmGpus>> take_possible(Config& config, const Possible& possible) {
  auto gpus = possible(config);
  if (gpus) return gpus;
  Config fits = config;
  std::erase_if(fits.vms, [](const VmOptions& vm) { return !vm.file.empty(); });
  if (fits.vms.size() == config.vms.size()) return gpus;
  gpus = possible(fits);
  if (!gpus) return gpus;
  for (const VmOptions& vm : config.vms) {
    if (vm.file.empty()) continue;
    Config with = fits;
    with.vms.push_back(vm);
    auto its = possible(with);
    if (!its) {
      fits.refused.push_back({vm.name, vm.file + ": " + its.error().message});
      continue;
    }
    fits = std::move(with);
    gpus = std::move(its);
  }
  config = std::move(fits);
  return gpus;
}

}  // namespace host::broker
