"""Many tiles: the host loop, its working sets, and the kernel rows they need."""
