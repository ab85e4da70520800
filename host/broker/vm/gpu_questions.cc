#include "host/broker/vm/gpu_questions.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace host::broker {
namespace {

template <std::size_t n>
void put(char (&to)[n], const std::string& text) {
  text.copy(to, n - 1);
}

// NVML writes eight digits for the domain.
std::string long_address(const std::string& pci) { return pci.size() == 12 ? "0000" + pci : pci; }

}  // namespace

GpuQuestions::GpuQuestions(const VmContext& context, const Region& region, const SlotTable& slots,
                           const WorkerGpus& gpus, const VmMemory& memory, const VmMps& mps)
    : context_(context),
      region_(region),
      slots_(slots),
      gpus_(gpus),
      memory_(memory),
      mps_(mps),
      answers_(answers_per_second, answers_at_once, Clock::now()) {}

GpuQuestions::~GpuQuestions() {
  stop();
  if (context_.program.facts != nullptr) context_.program.facts->forget(facts_asked_);
}

// Nothing if the VM's time on the GPU is not measured.
std::optional<Clock::duration> GpuQuestions::had_of(const std::string& gpu) const {
  // A cached report: the scheduler's thread is not asked for each VM and GPU.
  const auto& accounts = context_.program.scheduler->report_of(Utilization::between).gpus;
  const auto of_gpu = accounts.find(gpu);
  if (of_gpu == accounts.end()) return std::nullopt;
  const auto its = of_gpu->second.find(context_.scheduled_as);
  return its != of_gpu->second.end() ? std::optional<Clock::duration>(its->second.had) : std::nullopt;
}

// Samples while the VM has sessions, so that a program's first question has an answer.
void GpuQuestions::note_utilization() {
  const Clock::time_point now = Clock::now();
  if (!has_utilization() || now - utilization_noted_ < Utilization::between) return;
  utilization_noted_ = now;
  for (const Gpu& gpu : gpus_.of_guests())
    if (const auto had = had_of(name_of(gpu))) utilization_[name_of(gpu)].note(now, *had);
}

bool GpuQuestions::has_utilization() const {
  return context_.program.facts != nullptr && context_.program.scheduler != nullptr && !mps_.is_client();
}

void GpuQuestions::go_on() {
  answered_ = region_.gpu_answers().answered();
  look();
}

void GpuQuestions::look() {
  note_utilization();
  const std::uint32_t asked = region_.header()[&ring::RegionHeader::gpu_questions].load(std::memory_order_acquire);
  if (context_.program.facts == nullptr || asked == answered_ || timer_ != 0 || facts_asked_ != 0) return;
  const Span wait = answers_.take(Clock::now());
  timer_ = context_.loop.after(wait, [this, wait] {
    timer_ = 0;
    if (wait > Span::zero()) return look();
    ask_for_facts();
  });
}

void GpuQuestions::ask_for_facts() {
  std::vector<std::string> gpus;
  for (const Gpu& gpu : gpus_.of_guests()) gpus.push_back(name_of(gpu));
  facts_asked_ = context_.program.facts->ask(std::move(gpus), [this] {
    facts_asked_ = 0;
    answer();
  });
}

void GpuQuestions::answer() {
  // Read before collecting facts, so that the answer includes what a program did before its question.
  answered_ = region_.header()[&ring::RegionHeader::gpu_questions].load(std::memory_order_acquire);
  ring::VmPage page{};
  page.version = ring::vm_page_version;
  page.answered = answered_;
  std::vector<ring::VmGpu> gpus;
  for (const Gpu& gpu : gpus_.of_guests())
    if (gpus.size() < ring::max_devices) gpus.push_back(answer_for(gpu, page));
  page.gpu_count = static_cast<std::uint32_t>(gpus.size());
  region_.gpu_answers().publish(page, gpus);
  look();  // one may have come meanwhile
}

ring::VmGpu GpuQuestions::answer_for(const Gpu& gpu, ring::VmPage& page) {
  ring::VmGpu to{};
  put(to.uuid, gpu.uuid);
  put(to.bus_id, long_address(gpu.pci));
  const GpuFacts* facts = context_.program.facts->of(name_of(gpu));
  report_memory(gpu, facts, to);
  if (facts == nullptr) return to;
  to.state = IVGPU_GPU_THERE;
  put(to.name, facts->name);
  if (!facts->bus_id.empty()) put(to.bus_id, facts->bus_id);
  put(to.vbios, facts->vbios);
  put(page.driver, facts->driver);
  page.cuda_version = facts->cuda;
  for (std::size_t i = 0; i < ring::facts; ++i) {
    if (!facts->fact[i]) continue;
    to.fact[i] = *facts->fact[i];
    to.known |= std::uint64_t{1} << i;
  }
  if (const auto had = has_utilization() ? had_of(name_of(gpu)) : std::nullopt) {
    // Before there are two samples, the VM has used nothing.
    const auto percent = utilization_[name_of(gpu)].percent(Clock::now(), *had);
    to.fact[ring::number_of(ring::Fact::utilization)] = percent.value_or(0);
    to.known |= ring::bit_of(ring::Fact::utilization);
  }
  return to;
}

// The total is the VM's quota, or the GPU's memory. All that the VM's sessions do not hold counts as free: the GPU's
// real free memory would reveal the use of other VMs.
void GpuQuestions::report_memory(const Gpu& gpu, const GpuFacts* facts, ring::VmGpu& to) const {
  const std::vector<std::uint64_t> held = memory_.held(name_of(gpu));
  const std::uint64_t used = std::accumulate(held.begin(), held.end(), std::uint64_t{0});
  for (std::uint32_t k = 0; k < held.size(); ++k) to.used_by[k] = slots_.word(k).held() ? held[k] : 0;
  const std::uint64_t total = facts != nullptr ? facts->total : 0;
  const auto quota = static_cast<std::uint64_t>(context_.options.gpu_memory);
  if (quota == 0) {
    to.memory_total = total;
    to.memory_reserved = facts != nullptr ? facts->reserved : 0;
  } else {
    to.memory_total = total != 0 ? std::min(quota, total) : quota;
  }
  const std::uint64_t usable = to.memory_total - to.memory_reserved;
  to.memory_free = usable - std::min(usable, used);
}

}  // namespace host::broker
