// After each use of ring/nvml/facts.def.
#undef NUMBER
#undef OF_KIND
#undef PAIR
#undef WIDE
#undef ERRORS
#undef APART
