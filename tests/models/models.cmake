# Models of the protocols, and the mistakes that they and other tests must catch (docs/models.md, ring/mutants.def).
# Labelled models. Built without sanitizers: the explorer switches stacks by itself, and finds data races by its own rules.
find_package(GTest REQUIRED)
include(GoogleTest)
set(models ${CMAKE_CURRENT_LIST_DIR})

function(model_test name)
  add_test(NAME models.${name} COMMAND ${ARGN})
  set_tests_properties(models.${name} PROPERTIES LABELS models TIMEOUT 120)
endfunction()

foreach(model parking awaited bell ring order slots)
  model_test(${model} ${models}/check ${models}/${model}.pml)
endforeach()
model_test(parking_loopback ${models}/check ${models}/parking.pml -- LOOPBACK)

add_executable(models_explore ${models}/explore.cc ${models}/explore_test.cc ${models}/explore_order.cc
               ${models}/explore_parking.cc ${models}/explore_ring.cc)
target_compile_definitions(models_explore PRIVATE IVGPU_MUTANTS)
target_link_libraries(models_explore PRIVATE ivgpu_api GTest::gtest_main)
gtest_discover_tests(models_explore TEST_PREFIX models. PROPERTIES LABELS models TIMEOUT 300)

# Tests with real threads that exist anyway, on shipping code built with its mistakes; those of the libraries' files that
# hold one come first, so that the linker takes these.
add_executable(models_stress ${models}/tried_mutant.cc
               ${models}/../unit/ring_parking.cc ${models}/../unit/ring_queue.cc
               ${models}/../loopback/order.cc ${models}/../loopback/in_process.cc ${models}/../loopback/backend_fake.cc
               ${CMAKE_SOURCE_DIR}/guest/channel/channel.cc ${CMAKE_SOURCE_DIR}/guest/objects/objects.cc
               ${CMAKE_SOURCE_DIR}/guest/session/session.cc
               ${CMAKE_SOURCE_DIR}/host/untrusted/channel.cc ${CMAKE_SOURCE_DIR}/host/untrusted/serve.cc)
target_compile_definitions(models_stress PRIVATE IVGPU_MUTANTS)
target_link_libraries(models_stress PRIVATE ivgpu_guest ivgpu_session ivgpu_fake_driver GTest::gtest_main Threads::Threads)
set(stress_parking Parking.SleeperOrWakerSeesTheOther)
set(stress_ring RecordRing.OneProducerOneConsumer)
set(stress_handover Order.OfAStreamThatIsHandedOver)
set(stress_threads Order.OfTwoThreadsOnOneStreamNeitherIsForgotten)
foreach(part parking ring handover threads)
  model_test(stress.${part} models_stress --gtest_filter=${stress_${part}})
endforeach()

# A test for each mistake and each that must catch it; the explorer's are in explore_test.cc.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ring/mutants.def)
file(STRINGS ${CMAKE_SOURCE_DIR}/ring/mutants.def mutants REGEX "^MUTANT\\(")
foreach(mutant IN LISTS mutants)
  string(REGEX MATCH "^MUTANT\\(([a-z_]+), \".*\", ([a-z]+), ([a-z]+), ([a-z]+)\\)$" line "${mutant}")
  set(name ${CMAKE_MATCH_1})
  set(model ${CMAKE_MATCH_2})
  set(stress ${CMAKE_MATCH_4})
  if(NOT name)
    message(FATAL_ERROR "ring/mutants.def: this line is not understood: ${mutant}")
  endif()
  if(NOT model STREQUAL none)
    model_test(${model}.wrong.${name} ${models}/check ${models}/${model}.pml --wrong ${name})
  endif()
  if(NOT stress STREQUAL none)
    model_test(stress.wrong.${name} ${models}/fails ${name} $<TARGET_FILE:models_stress> --gtest_filter=${stress_${stress}})
  endif()
endforeach()

# Mistakes of a model alone, without a switch in the shipping code.
foreach(mistake step_by_store epoch_kept end_unchecked)
  model_test(slots.wrong.${mistake} ${models}/check ${models}/slots.pml --wrong ${mistake})
endforeach()
