"""How noise changes the predicted probability: `laplacian`, `probability_change` and its first order, a bound."""
