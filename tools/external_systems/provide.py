"""Install an external system and print its path: scripts/external-systems vcenter|pulsar [--cached]."""

import argparse
import sys

import pulsar_server
import vcenter_simulator

from cache import Unavailable, say

SYSTEMS = {"vcenter": vcenter_simulator, "pulsar": pulsar_server}


def main() -> int:
    """Provide a system and return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/external-systems", description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument(
        "--cached", action="store_true", help="build and fetch nothing; fail where that is needed"
    )
    arguments = parser.parse_args()
    system = SYSTEMS[arguments.system]
    try:
        found = system.cached() if arguments.cached else system.provide()
    except (Unavailable, OSError) as error:
        say(f"external-systems: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    if found is None:
        say(f"external-systems: not in the cache; scripts/external-systems {arguments.system} installs it")
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
