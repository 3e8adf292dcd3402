"""`python -m rtx_core COMMAND …`: what one does with the project besides running an experiment."""

import sys
from importlib import import_module

from rtx_core.errors import RtxError, unknown

# Each names a function that takes the words after the command; its module is imported when it is asked for.
COMMANDS = {
    "doctor": "rtx_core.doctor:main",  # is everything here that a run needs, and is what is here sound?
    "pack": "rtx_core.travel.pack:pack",  # one file with code, tokenised data and pending runs, for a machine without a network
    "away": "rtx_core.travel.away:away",  # there, in the unpacked file: makes its pending runs
    "bring": "rtx_core.travel.bring:bring",  # back home: records made elsewhere, verified, into results/
    "release": "rtx_core.release:main",  # records, manifest and checksums, for publication
}


def main(words: list[str]) -> None:
    name, *rest = words or ["help"]
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    module, _, function = COMMANDS[name].partition(":")
    getattr(import_module(module), function)(rest)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
