// Undefines the macros of ring/nvml/facts.def. Included after each use of that file.
#undef NUMBER
#undef OF_KIND
#undef PAIR
#undef WIDE
#undef ERRORS
#undef APART
