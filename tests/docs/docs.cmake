# Tests of the pages and of the examples in headers: links, paths, pasted commands, the mutants of docs/models.md, and
# the bytes in docs/one-call.md.
add_executable(docs_test ${CMAKE_CURRENT_LIST_DIR}/links_test.cc ${CMAKE_CURRENT_LIST_DIR}/models_test.cc
                         ${CMAKE_CURRENT_LIST_DIR}/generated_test.cc ${CMAKE_CURRENT_LIST_DIR}/adding_a_call_test.cc
                         ${CMAKE_CURRENT_LIST_DIR}/wire_format_test.cc ${CMAKE_CURRENT_LIST_DIR}/pasted_test.cc
                         ${CMAKE_CURRENT_LIST_DIR}/environment_test.cc
                         ${CMAKE_CURRENT_LIST_DIR}/compatibility_test.cc ${CMAKE_CURRENT_LIST_DIR}/capture_test.cc
                         ${CMAKE_CURRENT_LIST_DIR}/index_test.cc)
target_link_libraries(docs_test PRIVATE ivgpu_api ivgpu_ring ivgpu_broker GTest::gtest_main)
target_compile_definitions(docs_test PRIVATE IVGPU_CUDA_INCLUDE="${IVGPU_CUDA_INCLUDE}")
add_executable(one_call_test ${CMAKE_CURRENT_LIST_DIR}/one_call_test.cc)
target_link_libraries(one_call_test PRIVATE ivgpu_guest ivgpu_untrusted GTest::gtest_main)
foreach(name docs_test one_call_test)
  target_compile_definitions(${name} PRIVATE IVGPU_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  ivgpu_discover(${name} PREFIX unit. LABELS unit)
endforeach()

# The broker's table of keys generates docs/configuration.md. After a change of host/broker/config/config_keys.cc:
# `build/host/broker/configuration > docs/configuration.md`.
add_test(NAME unit.docs.configuration_is_current
         COMMAND ${IVGPU_LIMITED} sh -c "$<TARGET_FILE:configuration> | cmp - ${CMAKE_SOURCE_DIR}/docs/configuration.md")
set_tests_properties(unit.docs.configuration_is_current PROPERTIES LABELS unit)

# The broker's lists generate docs/metrics.md. After a change of ring/ops/metrics.h or host/broker/ops/metric_groups.cc:
# `build/host/broker/metrics > docs/metrics.md`.
add_test(NAME unit.docs.metrics_is_current
         COMMAND ${IVGPU_LIMITED} sh -c "$<TARGET_FILE:metrics> | cmp - ${CMAKE_SOURCE_DIR}/docs/metrics.md")
set_tests_properties(unit.docs.metrics_is_current PROPERTIES LABELS unit)

# The table generates docs/calls.md. After a change of ring/api/*.def: `build/tools/calls > docs/calls.md`.
add_test(NAME unit.docs.calls_is_current COMMAND ${IVGPU_LIMITED} sh -c "set -e; page=$($<TARGET_FILE:calls>); echo \"$page\" | cmp - ${CMAKE_SOURCE_DIR}/docs/calls.md")
set_tests_properties(unit.docs.calls_is_current PROPERTIES LABELS unit)

add_test(NAME unit.docs.guest_wait COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/guest_wait_test.sh ${CMAKE_SOURCE_DIR})
set_tests_properties(unit.docs.guest_wait PROPERTIES LABELS unit)

add_test(NAME unit.docs.header_examples COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/header_examples_test.sh
         ${CMAKE_CXX_COMPILER} ${CMAKE_C_COMPILER} ${CMAKE_SOURCE_DIR} ${IVGPU_CUDA_INCLUDE})
set_tests_properties(unit.docs.header_examples PROPERTIES LABELS "unit;sources")

# `tools/dev/pictures bench` makes docs/pictures/bench.svg from bench.json. Run it after a change of bench.json or of
# the script.
add_test(NAME unit.docs.pictures COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/pictures_test.sh ${CMAKE_SOURCE_DIR})
set_tests_properties(unit.docs.pictures PROPERTIES LABELS "unit;sources")

# Compares the man pages and the completion with the commands' own help.
if(NOT IVGPU_SANITIZE)
  add_test(NAME unit.docs.man_pages COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/man_test.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(unit.docs.man_pages PROPERTIES LABELS unit)
endif()
