"""The expected change of the predicted probability under noise, and its prediction by the Laplacian."""
