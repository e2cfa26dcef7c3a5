"""The expected change of the predicted probability under noise, and what its Laplacian says of it."""
