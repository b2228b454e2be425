"""A helper, which compiles kernels for the process that has started it, see `ahead`."""

from .ahead import help_out

if __name__ == "__main__":
    help_out()
