"""Models that read texts: embeddings of tokens, functions of texts, noise of characters and of tokens."""
