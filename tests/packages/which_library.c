// usage: which_library NAME
// Prints the path of the library that the loader gives to a program that requests NAME, or "none".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

int main(int argc, char** argv) {
  struct link_map* map = NULL;
  void* library = argc == 2 ? dlopen(argv[1], RTLD_LAZY) : NULL;
  if (library != NULL) dlinfo(library, RTLD_DI_LINKMAP, &map);
  puts(map != NULL ? map->l_name : "none");
  return 0;
}
