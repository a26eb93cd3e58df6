"""Run the command line as a module: `python -m kubewright`."""

from kubewright.cli import main

if __name__ == "__main__":
    main()
