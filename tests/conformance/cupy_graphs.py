"""CuPy and CUDA graphs: captures of ufuncs and kernels that are replayed, forks into other streams, host functions."""
import cupy
import numpy

SIZE = 10000
scale = cupy.RawKernel(
    r"""extern "C" __global__ void scale(double* p, int n, double factor) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) p[i] = p[i] * factor + i;
    }""",
    "scale",
)
first, second, third = (cupy.cuda.Stream(non_blocking=True) for _ in range(3))
given, work, other, total = (cupy.zeros(SIZE) for _ in range(4))
places = numpy.arange(SIZE, dtype=numpy.float64)


def chain():
    """Arrays that exist before the capture and after it: a replay works on the same memory."""
    cupy.add(given, 3, out=work)
    cupy.multiply(work, 2, out=work)
    scale((SIZE // 256 + 1,), (256,), (work, numpy.int32(SIZE), numpy.float64(5)))
    cupy.subtract(work, given, out=total)


def chain_here(values):
    return ((values + 3) * 2) * 5 + places - values


def check(name, got, expected):
    got = got.get()
    assert numpy.array_equal(got, expected), f"{name}: {got[:4]} is not {expected[:4]}"
    print(name, float(got.sum()))


chain()  # compiles the kernels
cupy.cuda.Device().synchronize()
with first:
    first.begin_capture()
    assert first.is_capturing()
    chain()
    graph = first.end_capture()
assert not first.is_capturing()
graph.upload(first)
for turn in range(4):
    values = numpy.random.RandomState(turn).randint(0, 1000, SIZE).astype(numpy.float64)
    given.set(values)
    cupy.cuda.Stream.null.synchronize()
    graph.launch(first)
    first.synchronize()
    check(f"replay {turn}", total, chain_here(values))

# Launches in other streams come one after the other.
work[...] = 1
with first:
    first.begin_capture()
    scale((SIZE // 256 + 1,), (256,), (work, numpy.int32(SIZE), numpy.float64(3)))
    one_step = first.end_capture()
cupy.cuda.Stream.null.synchronize()
expected = numpy.ones(SIZE)
for turn in range(9):
    one_step.launch((first, second, third)[turn % 3])
    expected = expected * 3 + places
cupy.cuda.Device().synchronize()
check("one graph in three streams", work, expected)

# A fork and a join by events.
forked, joined = cupy.cuda.Event(disable_timing=True), cupy.cuda.Event(disable_timing=True)
with first:
    first.begin_capture()
    cupy.add(given, 1, out=work)
    forked.record(first)
    second.wait_event(forked)
    with second:
        cupy.multiply(work, 7, out=other)
        joined.record(second)
    cupy.multiply(work, 2, out=total)
    first.wait_event(joined)
    cupy.add(total, other, out=total)
    fork = first.end_capture()
assert not second.is_capturing()
for turn in range(3):
    values = numpy.random.RandomState(10 + turn).randint(0, 1000, SIZE).astype(numpy.float64)
    given.set(values)
    cupy.cuda.Stream.null.synchronize()
    fork.launch(third)
    third.synchronize()
    check(f"fork {turn}", total, (values + 1) * 9)

# Host functions between launches, in the order of their streams.
called = []
lanes = [(stream, cupy.zeros(SIZE)) for stream in (first, second, third)]
cupy.cuda.Stream.null.synchronize()
for turn in range(5):
    for lane, (stream, values) in enumerate(lanes):
        with stream:
            scale((SIZE // 256 + 1,), (256,), (values, numpy.int32(SIZE), numpy.float64(lane + 1)))
            stream.launch_host_func(called.append, (lane, turn))
            graph.launch(stream)
for stream, _ in lanes:
    stream.synchronize()
for lane, (_, values) in enumerate(lanes):
    assert [turn for which, turn in called if which == lane] == list(range(5)), called
    expected = numpy.zeros(SIZE)
    for _ in range(5):
        expected = expected * (lane + 1) + places
    check(f"lane {lane}", values, expected)
check("the graph between host functions", total, chain_here(given.get()))

# A capture that fails, and a good one behind it.
with first:
    first.begin_capture()
    try:
        first.synchronize()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        print("synchronize a captured stream", str(error).split(":")[0])
    try:
        first.end_capture()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        print("its end", str(error).split(":")[0])
    first.begin_capture()
    chain()
    again = first.end_capture()
    again.launch()
first.synchronize()
check("a capture again", total, chain_here(given.get()))
