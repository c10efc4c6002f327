"""From resource classes to definitions, with all mistakes at once. `build` is the entry point."""
