// A word of shared memory that a test owns. The test accesses the word through ring::Shared, as in a region.
#pragma once

#include "ring/shared/shared.h"

template <class T>
class SharedWord {
 public:
  SharedWord(T value = 0) { place().store(value, std::memory_order_relaxed); }
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;

  ring::Shared<T> place() { return ring::Shared<T>(&value_); }
  operator ring::Shared<T>() { return place(); }
  T load(std::memory_order order = std::memory_order_seq_cst) { return place().load(order); }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) { place().store(value, order); }
  const void* address() const { return &value_; }

 private:
  T value_;
};
