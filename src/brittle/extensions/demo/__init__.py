"""`brittle demo`: a small network on real digits, scored and reported."""
