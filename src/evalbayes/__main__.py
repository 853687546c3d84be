"""`python -m evalbayes` is the command line."""

from evalbayes.cli import main

main()
