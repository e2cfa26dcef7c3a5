"""Networks that other programs wrote: archives of `torch.export`, and ONNX files."""
