"""``python -m dualfield``: the command line, where the script is not on the path."""

from dualfield.cli import main

if __name__ == "__main__":
    main()
