"""Published corruptions of test images: CIFAR-10-C and MNIST-C."""
