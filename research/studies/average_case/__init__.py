"""The tables and figures of two papers on average-case robustness: estimators, noise, classes, images, curvature."""
