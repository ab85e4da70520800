// The module's test in the guest. Runs all cases of a group, or the cases whose name contains a word. The cases of
// `binding` remove the device; they run only by name and as root. So does `hold`, which holds a slot. All other cases
// run as an ordinary user whose only privilege is the node's group (test.h).
// usage: module_test GROUP|all [WORD]
#include "test.h"

static int as_user;

static void run_case(void* argument) {
  // SIGALRM ends a hanging case, which then counts as failed.
  alarm((unsigned)(deadline_us() / 1e6) * 5);
  if (as_user) become_user(TEST_GROUP);
  ((const struct Case*)argument)->run();
}

static unsigned run_group(const char* group, const struct Case* cases, const char* word) {
  unsigned failed = 0;
  for (; cases->name != NULL; ++cases) {
    if (strstr(cases->name, word) == NULL) continue;
    printf("  %s.%s\n", group, cases->name);
    const double start = now_us();
    const int status = child(run_case, (void*)(uintptr_t)cases);
    printf("%s %s.%s %.0f ms\n", status == 0 ? "ok  " : "FAIL", group, cases->name, (now_us() - start) / 1e3);
    if (status > 0 && WIFSIGNALED(status)) printf("    signal %d\n", WTERMSIG(status));
    failed += status != 0;
  }
  return failed;
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    const struct Case* cases;
  } groups[] = {{"claim", claim_cases}, {"mapping", mapping_cases}, {"wake", wake_cases},
                {"death", death_cases}, {"binding", binding_cases}, {"hold", hold_cases}};
  unsigned failed = 0, found = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (unsigned k = 0; argc > 1 && k < sizeof groups / sizeof *groups; ++k) {
    as_user = k < 4;
    if (strcmp(argv[1], groups[k].name) != 0 && (strcmp(argv[1], "all") != 0 || !as_user)) continue;
    failed += run_group(groups[k].name, groups[k].cases, argc > 2 ? argv[2] : "");
    ++found;
  }
  if (found == 0) fprintf(stderr, "usage: module_test claim|mapping|wake|death|binding|hold|all [WORD]\n");
  return found == 0 ? 2 : failed != 0;
}
