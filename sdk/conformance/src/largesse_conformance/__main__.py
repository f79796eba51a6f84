"""`python -m largesse_conformance`, the same as `largesse-conformance`."""

from largesse_conformance.command import main

if __name__ == "__main__":
    main()
