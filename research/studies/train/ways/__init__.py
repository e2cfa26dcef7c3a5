"""Ways of training, one a file: each says what is minimised."""
