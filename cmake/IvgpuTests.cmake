# How a test executable comes into ctest, and in which of a merge run's three builds its tests run.
#
# A merge run (tools/test) builds three times and runs each test once: what a sanitizer can be put under with
# AddressSanitizer, what has threads of its own with ThreadSanitizer too, and the rest with g++. Labels say it:
#   merge     a merge run has this test in this build
#   timing    a measurement: its verdict depends on how busy the machine is, so no merge run has it
#   thorough  only tools/test --all has it, in any build
# CONTRIBUTING.md has the table for people.
find_package(GTest REQUIRED)
include(GoogleTest)

# Seconds after which a test counts as hanging, unless it gives its own TIMEOUT. It is far from any test's time, since beside
# other work some take eight times what they take alone, 20 s with AddressSanitizer at most. tests/limited then ends the test
# and says where it stood; ctest's own limit, that much later, is for tests/limited itself.
set(IVGPU_TEST_TIMEOUT 600)
set(IVGPU_TEST_GRACE 30)

# What stands before the command of add_test().
set(IVGPU_LIMITED ${CMAKE_SOURCE_DIR}/tests/limited)

# ivgpu_discover(target LABELS label... [PREFIX text] [TIMEOUT seconds] [SANITIZED] [TSAN] [THOROUGH]
#                [PROPERTIES property value...])
# SANITIZED: a merge run has the tests with AddressSanitizer, and g++ does not repeat them.
# TSAN:      a merge run has them with ThreadSanitizer as well.
# THOROUGH:  no merge run has them.
# A property COST makes ctest start dear tests first, so that none is left alone at the end; it measures by itself only from
# its second run on. A test whose suite's name ends in Timing gets the label timing, runs alone, and never has the label merge.
function(ivgpu_discover target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SANITIZED;TSAN;THOROUGH" "PREFIX;TIMEOUT" "LABELS;PROPERTIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${IVGPU_TEST_TIMEOUT})
  endif()
  set(merge OFF)
  if(arg_THOROUGH)
    list(APPEND arg_LABELS thorough)
  elseif(IVGPU_SANITIZE MATCHES address)
    set(merge ${arg_SANITIZED})
  elseif(IVGPU_SANITIZE MATCHES thread)
    set(merge ${arg_TSAN})
  elseif(NOT arg_SANITIZED)
    set(merge ON)
  endif()
  if(arg_TSAN)
    list(APPEND arg_LABELS tsan)
  endif()
  set(measuring ${arg_LABELS} timing)
  if(merge)
    list(APPEND arg_LABELS merge)
  endif()
  set_target_properties(${target} PROPERTIES IVGPU_TSAN "${arg_TSAN}" IVGPU_MERGE "${merge}")
  ivgpu_unity(${target})

  # An emulator is what ctest puts before a test of a target; this one only watches.
  set_target_properties(${target} PROPERTIES CROSSCOMPILING_EMULATOR "${IVGPU_LIMITED};${arg_TIMEOUT}")
  math(EXPR last "${arg_TIMEOUT} + ${IVGPU_TEST_GRACE}")
  gtest_discover_tests(${target} TEST_PREFIX "${arg_PREFIX}" PROPERTIES TIMEOUT ${last} ${arg_PROPERTIES})
  # gtest_discover_tests cannot pass on a list, so the labels come afterwards.
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake)
  file(WRITE ${file} "foreach(test IN LISTS ${target}_TESTS)
  if(test MATCHES \"Timing[/.]\")
    set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${measuring}\" RUN_SERIAL ON)
  else()
    set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${arg_LABELS}\")
  endif()
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# For the tests that add_test() has made in this folder, once all are there: a TIMEOUT where none is given, and the label
# merge in g++'s build, where all but the thorough ones run. Under a sanitizer only those have it that were given it.
function(ivgpu_finish_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    get_test_property(${test} TIMEOUT timeout)
    if(NOT timeout)
      set(timeout ${IVGPU_TEST_TIMEOUT})
    endif()
    math(EXPR last "${timeout} + ${IVGPU_TEST_GRACE}")
    set_tests_properties(${test} PROPERTIES TIMEOUT ${last})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT IVGPU_TEST_LIMIT=${timeout})
    get_test_property(${test} LABELS labels)
    if(NOT IVGPU_SANITIZE AND NOT "${labels}" MATCHES "thorough|timing")
      set_property(TEST ${test} APPEND PROPERTY LABELS merge)
    endif()
  endforeach()
endfunction()
