#pragma once

#include <mutex>
#include <vector>

// The host functions that ran, in order, for tests of the simulated GPU.
class Notes {
 public:
  void add(int entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }
  std::vector<int> entries() {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::vector<int> entries_;
};

struct Note {
  Notes* notes;
  int number;
};

inline void write_note(void* data) {
  const auto* note = static_cast<Note*>(data);
  note->notes->add(note->number);
}
