# Models of the protocols, and the mistakes that the models and other tests must catch (docs/models.md,
# ring/verify/mutants.def). Label: models. The models are built without sanitizers, since the explorer switches stacks
# and finds data races itself.
#
# The build stores the result of each check in RESULT.txt, and repeats the check only if a dependency is newer. The test
# models.run makes missing and failed results. One test per check reads the check's result, and depends on models.run.
# Thus no check runs twice, and no result is outdated.
find_program(IVGPU_SPIN spin)
set(models ${CMAKE_CURRENT_LIST_DIR})
set(model_results ${CMAKE_BINARY_DIR}/models)
file(MAKE_DIRECTORY ${model_results})
add_custom_target(model_results)
add_test(NAME models.run COMMAND ${IVGPU_LIMITED} ${models}/run ${CMAKE_COMMAND} ${CMAKE_BINARY_DIR} ${model_results})
set_tests_properties(models.run PROPERTIES LABELS "models;thorough" TIMEOUT 1800 PROCESSORS 2 FIXTURES_SETUP model_results)

# model_test(name DEPENDS file... COMMAND word...)
function(model_test name)
  cmake_parse_arguments(PARSE_ARGV 1 CHECK "" "" "DEPENDS;COMMAND")
  set(result ${model_results}/${name}.txt)
  add_custom_command(OUTPUT ${result} COMMAND ${models}/checked ${result} ${CHECK_COMMAND}
                     DEPENDS ${CHECK_DEPENDS} ${models}/checked COMMENT "checking models.${name}" VERBATIM)
  add_custom_target(model_result.${name} DEPENDS ${result})
  add_dependencies(model_results model_result.${name})
  add_test(NAME models.${name} COMMAND ${IVGPU_LIMITED} ${models}/checked --read ${result})
  set_tests_properties(models.${name} PROPERTIES LABELS "models;thorough" FIXTURES_REQUIRED model_results)
endfunction()

# spin_test(name model argument...): one run of a model.
function(spin_test name model)
  set(text ${models}/${model}.pml)
  model_test(${name} DEPENDS ${text} ${models}/memory.pml ${models}/check $<$<BOOL:${IVGPU_SPIN}>:${IVGPU_SPIN}>
             COMMAND ${models}/check ${text} ${ARGN})
endfunction()

foreach(model parking awaited doorbell ring order callback_slots slots pins)
  spin_test(${model} ${model})
endforeach()
spin_test(parking_loopback parking -- LOOPBACK)
spin_test(callback_slots_two callback_slots -- SLOTS=2)
# Mistakes of the guest's kernel module, which has no switch for mistakes.
foreach(mutant pinned_late pinned_at_binding)
  spin_test(pins.wrong.${mutant} pins --wrong ${mutant})
endforeach()

add_executable(models_explore ${models}/explore.cc ${models}/explore_test.cc ${models}/explore_addresses.cc ${models}/explore_callback_slots.cc
               ${models}/explore_channel_mutex.cc
               ${models}/explore_order.cc ${models}/explore_parking.cc ${models}/explore_ring.cc
               ${models}/explore_slots.cc)
set_target_properties(models_explore PROPERTIES IVGPU_MERGE OFF)
target_compile_definitions(models_explore PRIVATE IVGPU_MUTANTS)
target_link_libraries(models_explore PRIVATE ivgpu_api GTest::gtest_main)
target_compile_options(models_explore PRIVATE ${IVGPU_OPTIMISED})
# All scenarios, mutants and orderings run at once, since they share results.
model_test(explorer DEPENDS models_explore COMMAND $<TARGET_FILE:models_explore>)

# Existing tests with real threads, on the product's code with mutants. The files with mutants come first, so that the
# linker prefers them to the libraries' files.
add_executable(models_stress ${models}/tried_mutant.cc
               ${models}/../unit/ring/parking_test.cc ${models}/../unit/ring/queue_test.cc
               ${models}/../loopback/order.cc ${models}/../loopback/in_process.cc ${models}/../loopback/entry_points.cc
               ${models}/../loopback/backend_fake.cc
               ${CMAKE_SOURCE_DIR}/guest/session/channel.cc ${CMAKE_SOURCE_DIR}/guest/objects/objects.cc
               ${CMAKE_SOURCE_DIR}/guest/session/order.cc
               ${CMAKE_SOURCE_DIR}/host/untrusted/channel.cc ${CMAKE_SOURCE_DIR}/host/untrusted/serve.cc)
set_target_properties(models_stress PROPERTIES IVGPU_MERGE OFF)
target_compile_definitions(models_stress PRIVATE IVGPU_MUTANTS)
target_link_libraries(models_stress PRIVATE ivgpu_guest ivgpu_untrusted ivgpu_fake_driver GTest::gtest_main Threads::Threads)
target_compile_options(models_stress PRIVATE ${IVGPU_OPTIMISED})
set(stress_parking Parking.SleeperOrWakerSeesTheOther)
set(stress_ring RecordRing.OneProducerOneConsumer)
set(stress_handover Order.OfAStreamThatIsHandedOver)
set(stress_threads Order.OfTwoThreadsOnOneStreamNeitherIsForgotten)
foreach(part parking ring handover threads)
  model_test(stress.${part} DEPENDS models_stress COMMAND $<TARGET_FILE:models_stress> --gtest_filter=${stress_${part}})
endforeach()

# Adds a test per mistake and per check that must catch the mistake. explore_test.cc has the explorer's tests.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ring/verify/mutants.def)
file(STRINGS ${CMAKE_SOURCE_DIR}/ring/verify/mutants.def mutants REGEX "^MUTANT\\(")
foreach(mutant IN LISTS mutants)
  string(REGEX MATCH "^MUTANT\\(([a-z_]+), \".*\", ([a-z_]+), ([a-z_]+), ([a-z_]+)\\)$" line "${mutant}")
  set(name ${CMAKE_MATCH_1})
  set(model ${CMAKE_MATCH_2})
  set(stress ${CMAKE_MATCH_4})
  if(NOT name)
    message(FATAL_ERROR "ring/verify/mutants.def: this line is not understood: ${mutant}")
  endif()
  if(NOT model STREQUAL none)
    spin_test(${model}.wrong.${name} ${model} --wrong ${name})
  endif()
  if(NOT stress STREQUAL none)
    model_test(stress.wrong.${name} DEPENDS models_stress ${models}/fails
               COMMAND ${models}/fails ${name} $<TARGET_FILE:models_stress> --gtest_filter=${stress_${stress}})
  endif()
endforeach()
