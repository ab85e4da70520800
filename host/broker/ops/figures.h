// Where each figure of ring/ops/figures.h is read. The status document (status.cc) and the metrics (metrics.cc) are made of
// these lists, so a figure that is added to one of them is in both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "host/broker/ops/status.h"
#include "ring/ops/figures.h"

namespace host::broker {

using Number = std::variant<std::uint64_t, double>;

template <class Of>
struct Reading {
  const ring::Figure& figure;
  Number (*of)(const Of&);
};

template <class Of>
struct FigureGroup {
  const char* key;     // of the object in the document that holds them; "": they stand beside each other in the owner's
  const char* prefix;  // of their metrics, behind "ivgpu_"
  std::span<const Reading<Of>> readings;
  bool (*there)(const Of&);  // false: this one has none of them
};

std::span<const FigureGroup<BrokerStatus>> groups_of_broker();
std::span<const FigureGroup<VmStatus>> groups_of_vm();
std::span<const FigureGroup<SlotStatus>> groups_of_slot();

// Of a VM on one GPU.
std::span<const Reading<QuotaStatus>> quota_figures();
// What workers have done: of one, or of all that a VM has had.
std::span<const Reading<Counters>> work_figures();
// What a session has now.
std::span<const Reading<Counters>> held_figures();
// By the ways in which a worker can end.
std::span<const Reading<WorkerEnds>> end_figures();

}  // namespace host::broker
