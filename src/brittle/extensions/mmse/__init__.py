"""Linear models averaged over noise, and the multivariate sigmoid: `mmse`, `mmse_mvs`, `taylor_mvs`."""
