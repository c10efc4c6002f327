"""`python -m diptych` is the command line."""

from diptych.cli import main

main()
