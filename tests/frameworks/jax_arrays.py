"""JAX: compiled functions, a gradient, sorting."""
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax
import jax.numpy as jnp

print("platform", jax.devices()[0].platform)
values = jax.random.normal(jax.random.PRNGKey(0), (512, 512))
print("compiled", round(float(jax.jit(lambda a: jnp.tanh(a @ a.T).sum())(values)), 2))
slope = jax.grad(lambda w: jnp.sum(jnp.square(jnp.dot(values, w))))(jnp.ones((512,)))
print("gradient", round(float(slope[0]), 1))
print("sorted", float(jnp.sort(values.ravel())[100]))
