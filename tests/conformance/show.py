"""The lines that show a result: to the bit, or in four digits where two runs may add in another order."""
import hashlib

import numpy


def on_host(values):
    """An array of any framework."""
    for way in ("detach", "cpu", "get"):
        if hasattr(values, way) and not isinstance(values, numpy.ndarray):
            values = getattr(values, way)()
    if hasattr(values, "resolve_conj"):
        values = values.resolve_conj()
    if type(values).__module__ == "torch" and str(values.dtype) == "torch.bfloat16":
        values = values.float()
    return numpy.asarray(values)


def norm(array):
    return float(numpy.linalg.norm(array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64).ravel()))


def exact(name, values):
    array = numpy.ascontiguousarray(on_host(values))
    print(f"{name}: {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}, norm {norm(array):.9g}", flush=True)


def rounded(name, values):
    array = on_host(values)
    assert numpy.isfinite(array).all(), f"{name}: not every value is finite"
    print(f"{name}: {array.shape} norm {norm(array):.3e}", flush=True)


def near(name, got, expected, tolerance):
    got, expected = on_host(got), on_host(expected)
    off = float(numpy.abs(got - expected).max() / max(float(numpy.abs(expected).max()), 1e-30))
    assert off <= tolerance, f"{name}: off by {off:.3g} of the largest value"
    print(f"{name}: right", flush=True)
