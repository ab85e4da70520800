# Fuzzing with libFuzzer under AddressSanitizer and UndefinedBehaviorSanitizer, with one target for each reader of
# untrusted bytes. The targets are built with clang and these sanitizers (preset asan), from the libraries that the
# tests link. The coverage counters in these libraries hardly slow the tests. Label: fuzz.
#
# A merge run replays each corpus. tools/test --all also searches with each target, from a fixed seed and for a fixed
# number of executions, so each search is reproducible. A search takes at most two minutes on a busy processor.
# tools/fuzz searches longer, with a new seed each time.

# Coverage is counted in the code that reads untrusted bytes.
function(fuzz_count)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endfunction()
fuzz_count(ivgpu_abi ivgpu_base ivgpu_session ivgpu_untrusted ivgpu_worker_start ivgpu_guest ivgpu_broker ivgpu_tools simgpu_image)
# Of the simulated GPU's engine only the code that reads text is counted. The interpreter is hot, and other tests need
# its speed.
set(vm ${CMAKE_SOURCE_DIR}/host/simgpu/vm)
file(GLOB read_ptx ${CMAKE_SOURCE_DIR}/host/simgpu/ptx/*.cc ${vm}/link/*.cc ${vm}/lower/*.cc)
list(APPEND read_ptx ${vm}/form.cc ${vm}/registers.cc)
set_property(SOURCE ${read_ptx} TARGET_DIRECTORY simgpu_engine
             APPEND PROPERTY COMPILE_OPTIONS -fsanitize=fuzzer-no-link)

find_package(nlohmann_json REQUIRED)
add_custom_target(fuzzers)

# fuzz_target(name executions libraries...): compiles NAME_target.cc. The corpus is corpus/NAME; NAME.dict, if present,
# has words for mutations.
function(fuzz_target name runs)
  set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(corpus ${here}/corpus/${name})
  file(GLOB seeds ${corpus}/*)
  if(NOT seeds)
    message(FATAL_ERROR "${corpus} holds nothing: a replay of it would test nothing.")
  endif()
  add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/models/tried_mutant.cc)
  string(REGEX REPLACE "_moving$" "" still ${name})
  if(TARGET fuzz_${still}_object)
    target_sources(fuzz_${name} PRIVATE ${here}/memory_moves.cc $<TARGET_OBJECTS:fuzz_${still}_object>)
    string(COMPARE NOTEQUAL ${name} ${still} moves)
    target_compile_definitions(fuzz_${name} PRIVATE FUZZ_MEMORY_MOVES=${moves})
  else()
    target_sources(fuzz_${name} PRIVATE ${here}/${name}_target.cc)
  endif()
  target_link_libraries(fuzz_${name} PRIVATE ${ARGN} ivgpu_options Threads::Threads)
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers fuzz_${name})

  set(work ${CMAKE_BINARY_DIR}/fuzz/${name})
  file(MAKE_DIRECTORY ${work}/found)
  set(options -timeout=60 -rss_limit_mb=2560 -print_final_stats=1 -artifact_prefix=${work}/)
  if(EXISTS ${here}/${name}.dict)
    list(APPEND options -dict=${here}/${name}.dict)
  endif()
  add_test(NAME fuzz.${name}.replay COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:fuzz_${name}> ${options} -runs=0 ${corpus})
  add_test(NAME fuzz.${name}.search
           COMMAND ${IVGPU_LIMITED} ${here}/search ${runs} $<TARGET_FILE:fuzz_${name}> ${options} ${work}/found ${corpus})
  set_tests_properties(fuzz.${name}.replay fuzz.${name}.search PROPERTIES LABELS "fuzz;thorough")
  # A merge run replays all corpora except the simulated GPU's, which a merge run does not build with a sanitizer.
  if(NOT name STREQUAL ptx)
    set_tests_properties(fuzz.${name}.replay PROPERTIES LABELS "fuzz;merge")
    set_target_properties(fuzz_${name} PROPERTIES IVGPU_MERGE ON)
  endif()
  # tools/fuzz reads this list of the targets' names and options.
  set_property(GLOBAL APPEND_STRING PROPERTY IVGPU_FUZZ_LIST "${name} ${options}\n")
endfunction()

# fuzz_object(name libraries...): compiles NAME_target.cc once for the targets NAME and NAME_moving. The second target's
# memory may change before each read.
function(fuzz_object name)
  add_library(fuzz_${name}_object OBJECT ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}_target.cc)
  target_link_libraries(fuzz_${name}_object PRIVATE ${ARGN} ivgpu_options)
  target_compile_options(fuzz_${name}_object PRIVATE -fsanitize=fuzzer)
endfunction()

fuzz_target(ring 150000 ivgpu_api)
fuzz_object(dispatch ivgpu_untrusted ivgpu_fake_driver)
fuzz_target(dispatch 3000 ivgpu_untrusted ivgpu_fake_driver)
# The corpus makes each call about captures and graphs succeed, so that replays get past the handlers' first refusals.
set_property(TEST fuzz.dispatch.replay APPEND PROPERTY ENVIRONMENT IVGPU_FUZZ_REACH=1)
fuzz_target(dispatch_moving 4000 ivgpu_untrusted ivgpu_fake_driver)
fuzz_object(guest ivgpu_guest)
fuzz_target(guest 4000 ivgpu_guest)
fuzz_target(guest_moving 4000 ivgpu_guest)
# One channel runs at a time; the linker's --wrap lets the target switch channels at each lock.
fuzz_target(channels 1000 ivgpu_untrusted ivgpu_fake_driver)
target_sources(fuzz_channels PRIVATE ${CMAKE_CURRENT_LIST_DIR}/locks.cc)
foreach(lock pthread_mutex_lock pthread_rwlock_rdlock pthread_rwlock_wrlock)
  target_link_options(fuzz_channels PRIVATE -Wl,--wrap=${lock})
endforeach()
# A worker's start with a fake jail. The target intercepts mmap(), so that one process can start many workers.
fuzz_target(starting 8000 ivgpu_worker_start ivgpu_untrusted)
target_sources(fuzz_starting PRIVATE ${CMAKE_CURRENT_LIST_DIR}/played_jail.cc)
target_link_options(fuzz_starting PRIVATE -Wl,--wrap=mmap)
fuzz_target(slots 6000 ivgpu_broker)
fuzz_target(sockets 9000 ivgpu_broker)
fuzz_target(memory 25000 ivgpu_broker)
fuzz_target(trace 9000 ivgpu_broker)
fuzz_target(image 500000 simgpu_image)
fuzz_target(ptx 130000 simgpu_engine)
fuzz_target(config 190000 ivgpu_broker)
fuzz_target(status 8000 ivgpu_tools nlohmann_json::nlohmann_json)
fuzz_target(text 900 ivgpu_tools ivgpu_broker ivgpu_api nlohmann_json::nlohmann_json)

# MISTAKE(name, what, target): the target must find each mistake of these files.
function(fuzz_catches file word promise)
  set(path ${CMAKE_SOURCE_DIR}/ring/verify/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(STRINGS ${path} lines REGEX "^${word}\\(")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^${word}\\(([a-z_]+), \".*\", ([a-z_]+)\\)$")
      message(FATAL_ERROR "ring/verify/${file}: this line is not understood: ${line}")
    endif()
    set(test fuzz.${CMAKE_MATCH_2}.catches.${CMAKE_MATCH_1})
    add_test(NAME ${test} COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/caught.sh $<TARGET_FILE:fuzz_${CMAKE_MATCH_2}>
             ${CMAKE_MATCH_1} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/corpus/${CMAKE_MATCH_2} ${promise})
    set_tests_properties(${test} PROPERTIES LABELS "fuzz;thorough" TIMEOUT 1200)
  endforeach()
endfunction()
fuzz_catches(double_fetches.def DOUBLE_FETCH "a byte of shared memory is read once")
fuzz_catches(races.def RACE "the driver|is the driver.s|counted|only the arena may be named")

get_property(list GLOBAL PROPERTY IVGPU_FUZZ_LIST)
string(REPLACE ";" " " list "${list}")
file(WRITE ${CMAKE_BINARY_DIR}/fuzz/targets.txt "${list}")
