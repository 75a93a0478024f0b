"""Kernel machines: classifiers of points, and structures with kernels on partitions."""
