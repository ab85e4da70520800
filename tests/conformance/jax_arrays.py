"""JAX: compiled functions, gradients, maps, scans, sorts, transforms, linear algebra, random numbers."""
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax
import jax.numpy as jnp
import numpy
from show import exact, near, rounded

print("platform", jax.devices()[0].platform)
values = jax.random.normal(jax.random.PRNGKey(0), (512, 512))
exact("random", values)
mine = numpy.asarray(values)
near("product", jnp.matmul(values, values.T, precision="highest"), mine @ mine.T, 1e-5)
rounded("compiled", jax.jit(lambda a: jnp.tanh(a @ a.T / 100))(values))
rounded("gradient", jax.grad(lambda w: jnp.sum(jnp.square(jnp.dot(values, w))))(jnp.ones((512,))))
rounded("mapped", jax.vmap(lambda row: jnp.cumsum(row) / jnp.linalg.norm(row))(values))
near("scan", jax.lax.scan(lambda sum, x: (sum + x, sum), 0.0, jnp.arange(1000.0))[0], numpy.float32(499500), 1e-6)
print("sorted", float(jnp.sort(values.ravel())[100]))
near("fft", jnp.fft.fft(values[0]), numpy.fft.fft(mine[0]), 1e-5)
definite = mine @ mine.T / 512 + numpy.eye(512, dtype=numpy.float32)
near("cholesky", jnp.linalg.cholesky(jnp.asarray(definite)), numpy.linalg.cholesky(definite), 1e-4)
picture = jax.random.uniform(jax.random.PRNGKey(1), (2, 32, 32, 8))
rounded("convolution", jax.lax.conv(picture.transpose(0, 3, 1, 2), jnp.ones((4, 8, 3, 3)), (1, 1), "SAME"))


@jax.jit
def step(w):
    loss, slope = jax.value_and_grad(lambda v: jnp.mean((jnp.tanh(values @ v) - 0.5) ** 2))(w)
    return w - 0.1 * slope, loss


weights = jnp.zeros((512,))
losses = []
for _ in range(20):
    weights, loss = step(weights)
    losses.append(float(loss))
assert losses[-1] < losses[0]
print("losses", [f"{value:.2f}" for value in losses[::5]])
