"""What holds a run: its budget of time and memory, threads and executors, progress, seeds, options."""
