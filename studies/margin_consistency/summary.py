"""tmp"""
import numpy as np
from brittle.analysis import margin_consistency
def tau_of(points):
    r = points[points["right"]]
    return margin_consistency(r["margin"], r["logit_margin"]).tau
def summarise(kept, seed):
    return {}
