"""The change of the predicted probability under noise: `laplacian`, `probability_change`, its first order, a bound."""
