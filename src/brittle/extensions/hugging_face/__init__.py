"""Models of Hugging Face and timm, of folders and of the Hub, and how they prepare images."""
